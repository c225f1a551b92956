"""The command that serves games to browsers and bots."""

import contextlib
import importlib.util
import logging
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from experiments.commands.analyze import AGENT
from experiments.commands.common import (
    Agents,
    Flag,
    OptionalFolder,
    Trust,
    UsageError,
    err,
    out,
)

if TYPE_CHECKING:
    from tilewe_jax.web.catalog import Agent

SECONDS = 10.0
"""Limit of the time of a search, for agents that can keep one."""
SECONDS_WITHOUT_READING = 60
"""A client that has not taken what it was sent for so long is cut off by the system."""
TITLES = ("beginner", "easy", "medium", "hard", "expert", "master", "grandmaster")


@dataclass(frozen=True)
class Serve(Trust):
    """Serve games in a browser: against people, engines and networks, with analyses, studies and a view of training runs.

    Games are kept in a file, and go on after a restart. Engines are processes of their own, which start in the background.
    Bots take part through a documented interface, see tilewe_jax/web/README.md. Needs the extra: pip install 'tilewe-jax[web]'.
    """

    port: int = 8080
    """Port to listen on; 0 takes a free one."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 lets other machines in."""
    names: Annotated[tuple[str, ...], arg(metavar="NAME ...", help_behavior_hint="")] = ()
    """Names of this machine by which others may reach the server, besides localhost and its addresses."""
    agents: Agents = ()
    """Agents to offer besides the levels: for all games, or as GAME=AGENT, like duo=best:num_simulations=4096."""
    data: Annotated[Path, arg(metavar="FILE")] = Path("tilewe-jax-games.sqlite")
    """File of the games; made where there is none."""
    sync: Flag = False
    """Have each move wait for the disk, so that not even a power failure loses one; it takes up to a tenth of a second then."""
    runs: OptionalFolder = None
    """Folder with the folders of training runs, to be shown while they go on and after."""
    live: Annotated[str, arg(metavar="GAME")] = "duo_official"
    """Game whose self-play the page shows as it goes on, a grid of a thousand boards: a polyomino game or santorini."""
    engines: int = 2
    """Number of engine processes, each of which takes a core and about a gigabyte. With more than one, one of them makes the
    analyses and is started with the first, so that no game waits for them. 0 starts none: people and bots play."""

    def run(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise UsageError(f"--port must be 0 to 65535, not {self.port}")
        if self.engines < 0:
            raise UsageError(f"--engines must be at least 0, not {self.engines}")
        missing = [name for name in ("starlette", "uvicorn", "websockets") if importlib.util.find_spec(name) is None]
        if missing:
            raise UsageError(f"serve needs {', '.join(missing)}: pip install 'tilewe-jax[web]'")
        from tilewe_jax.web.catalog import GAMES

        if self.live not in (choices := [name for name in GAMES if name != "triominos"]):
            raise UsageError(f"--live must be one of {', '.join(choices)}, not {self.live!r}")
        if self.runs is not None and not self.runs.is_dir():
            raise UsageError(f"--runs: there is no folder {self.runs}")
        import uvicorn

        from tilewe_jax.web.app import LOCAL_NAMES, create_app
        from tilewe_jax.web.engines import EnginePool
        from tilewe_jax.web.live import Live
        from tilewe_jax.web.store import Store, StoreError

        agents = offered_agents(self.agents) if self.engines else {}
        listener = self._listen()
        try:
            store = Store(self.data, self.sync)
        except (OSError, StoreError) as error:
            listener.close()
            raise UsageError(f"--data: {error}") from None
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
        app = create_app(
            store,
            EnginePool([*engine_command(agents), *self.imports_as_arguments()], self.engines) if self.engines else None,
            agents,
            analysis_agent=AGENT,
            host_names=(*LOCAL_NAMES, socket.gethostname(), *self.names),
            runs=self.runs,
            live=Live([sys.executable, "-m", "experiments.live", "--game", self.live]) if self.engines else None,
        )
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the address of a client is not what it says itself
            ws="websockets-sansio",
            ws_max_size=1 << 14,
            ws_per_message_deflate=False,  # a small message must not become a large one here
            ws_ping_interval=20,
            ws_ping_timeout=20,
            limit_concurrency=4_000,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=3,
        )
        host, port = listener.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        out.print(f"http://{name}:{port}/", markup=False, soft_wrap=True)
        sys.stdout.flush()
        if host not in ("127.0.0.1", "::1"):
            err.print("others on the network can reach this server, and play and watch without a password", soft_wrap=True)
        with contextlib.suppress(KeyboardInterrupt):  # how a server ends
            uvicorn.Server(config).run(sockets=[listener])

    def _listen(self) -> socket.socket:
        """The socket that the server listens on."""
        try:
            family, _, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise UsageError(f"--host: {self.host} is no address of this machine ({error.strerror})") from None
        listener = socket.socket(family, socket.SOCK_STREAM)
        if sys.platform != "win32":  # where it would let two servers listen on one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            # A connection whose other end does not read is lost after this time; to close it would wait for that, for ever.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SECONDS_WITHOUT_READING * 1000)
        try:
            listener.bind(address)
            listener.listen(1024)
        except OSError as error:
            listener.close()
            hint = "; another program uses it, so choose another one" if self.port else ""
            raise UsageError(
                f"cannot listen on port {self.port} of {self.host}: {os.strerror(error.errno or 0)}{hint}"
            ) from None
        return listener


def engine_command(agents: Mapping[str, Sequence["Agent"]]) -> list[str]:
    """The command line of an engine process that knows these agents."""
    named = {agent.agent for listed in agents.values() for agent in listed if not agent.agent.startswith("level:")}
    others = ["--others", *sorted(named)] if named else []
    options = ["--agent", AGENT, "--batch", "16", "--score-playouts", "8", "--game", "santorini", *others]
    return [sys.executable, "-m", "experiments", "analyze", *options]


def offered_agents(texts: Sequence[str]) -> dict[str, list["Agent"]]:
    """By game, the levels and the agents that are given as text. Raises ``UsageError`` for a game that is not offered."""
    from experiments.levels import LEVELS
    from tilewe_jax.web.catalog import GAMES, Agent

    offered: dict[str, list[Agent]] = {name: [] for name in GAMES}
    for name, levels in LEVELS.items():
        for number, level in enumerate(levels, 1):
            title = TITLES[min(number, len(TITLES)) - 1]
            agent = Agent(f"level:{number}", title, level.elo, _seconds(name, level.agent))
            offered.setdefault(name, []).append(agent)
    for text in texts:
        game, equals, name_of_agent = text.partition("=")
        is_named = bool(equals) and ":" not in game
        if is_named and game not in GAMES:
            raise UsageError(f"--agents: there is no game {game!r} in {text!r}; games are {', '.join(GAMES)}")
        for name in [game] if is_named else GAMES:
            what = name_of_agent if is_named else text
            offered[name].append(Agent(what, what, None, _seconds(name, what)))
    return offered


def _seconds(game: str, agent: str) -> float | None:
    """The limit of time of an agent in a game; ``None`` where it cannot keep one, see ``SearchProgram``."""
    from experiments.levels import BEST

    if agent.partition(":")[0] == "best":
        agent = BEST.get(game, "puct")
    return SECONDS if agent.startswith("puct") and game != "triominos" else None
