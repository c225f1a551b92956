"""The command that serves games to browsers and bots."""

import contextlib
import importlib.util
import ipaddress
import logging
import os
import re
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewe_jax.arguments import Option
from tilewe_jax.cli.analyze import AGENT
from tilewe_jax.cli.common import Agents, Folder, Trust, UsageError, err, out
from tilewe_jax.cli.tables import Rows
from tilewe_jax.settings import assignments, changed, listing
from tilewe_jax.utils.words import did_you_mean

if TYPE_CHECKING:
    from tilewe_jax.web.catalog import Agent
    from tilewe_jax.web.limits import Limits
    from tilewe_jax.web.monitor import Monitor

SECONDS = 10.0
"""Time limit of a search, for agents that support one."""
SECONDS_WITHOUT_READING = 60
"""Time after which the system closes a connection whose client does not read."""
TITLES = ("beginner", "easy", "medium", "hard", "expert", "master", "grandmaster")


@dataclass(frozen=True)
class Serve(Trust):
    """Serve games in a browser: against people, engines and networks, with analyses, studies and a view of training runs.

    Games are stored in a file, and continue after a restart. Engines are separate processes, which start in the background.
    Bots play through the interface of tilewe_jax/web/README.md. Needs the extra: pip install 'tilewe-jax[web]'.
    """

    port: int = 8080
    """Port to listen on; 0 for a free one."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 admits other machines."""
    names: Annotated[tuple[str, ...], Option("NAME ...")] = ()
    """Host names under which others reach the server, besides localhost and its addresses."""
    agents: Agents = ()
    """Agents to offer besides the levels: for all games, or as GAME=AGENT, like duo=best:num_simulations=4096. Analyses of a
    game show the opening book of an agent with the setting book."""
    data: Path = Path("tilewe-jax-games.sqlite")
    """File of the games; created if needed."""
    sync: bool = False
    """Wait for the disk after each move, up to a tenth of a second, so that a power failure loses no move."""
    runs: Folder = None
    """Folder with training runs, which are shown during and after training."""
    live: Annotated[str, Option("GAME")] = "duo_official"
    """Game whose self-play the page shows live on a grid of a thousand boards: a polyomino game or santorini."""
    engines: int = 2
    """Number of engine processes, each with a core and about a gigabyte. With more than one, one process is for analyses, so
    that games do not wait for them. 0 starts none, for people and bots."""
    games: Annotated[tuple[Path, ...], Option("FILE ...")] = ()
    """Files of games, records or .blksgf, whose moves the explorer of a study counts."""
    offline: Folder = None
    """Let people keep the page in their browsers, and play there without a network: at one screen, or against players in plain
    Python. FOLDER is the unpacked npm package pyodide, as for the command site."""
    metrics: Annotated[tuple[str, ...], Option("ADDRESS ...")] = ()
    """Addresses or networks like 10.0.0.0/8 that may read the measurements at /metrics, besides this machine."""

    log: Annotated[str, Option("FILE")] = ""
    """Append a JSON line for each request, WebSocket and refusal to this file, or to standard error for -. After the file was
    moved, for example by logrotate, the server starts a new one. Warnings go to standard error."""
    limit: Annotated[tuple[str, ...], Option("NAME=VALUE ...")] = ()
    """Change limits of clients, of connections and of the database, like games=5000 days=30; --list-limits explains them."""
    list_limits: bool = False
    """Print the limits with their defaults, and end."""
    trusted_proxy: Annotated[tuple[str, ...], Option("ADDRESS ...")] = ()
    """Addresses or networks of the reverse proxies in front of this server, like 127.0.0.1. The server takes the address and
    the scheme of a client from their headers X-Forwarded-For and X-Forwarded-Proto, so that limits count each client."""
    base_path: Annotated[str, Option("PATH")] = ""
    """Path of the page on its host, like /games, if a reverse proxy serves other pages at other paths. The proxy must pass
    paths unchanged."""

    def _check(self) -> None:
        """Check the options that need no other options. Raises ``UsageError``."""
        if not 0 <= self.port < 1 << 16:
            raise UsageError(f"--port must be 0 to 65535, not {self.port}")
        if self.engines < 0:
            raise UsageError(f"--engines must be at least 0, not {self.engines}")
        if self.agents and not self.engines:
            raise UsageError("--agents needs --engines of at least 1, got 0")
        for name in self.names:
            if not _is_host_name(name):
                raise UsageError(f"--names must be host names like games.example.org, not {name!r}")
        if self.base_path and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", self.base_path):
            raise UsageError(f"--base-path must be a path like /games, without a slash at its end, not {self.base_path!r}")
        needed = ("prometheus_client", "starlette", "uvicorn", "websockets")
        missing = [name for name in needed if importlib.util.find_spec(name) is None]
        if missing:
            raise UsageError(f"serve needs {', '.join(missing)}: pip install 'tilewe-jax[web]'")
        from tilewe_jax.host_games import OFFERS

        if self.live not in (choices := [name for name, offer in OFFERS.items() if not offer.is_hidden]):
            hint = did_you_mean(self.live, choices)
            raise UsageError(f"--live must be one of {', '.join(choices)}, not {self.live!r}{hint}")
        if self.runs is not None and not self.runs.is_dir():
            raise UsageError(f"--runs: {self.runs} is not a folder")
        for path in self.games:
            if not path.is_file():
                raise UsageError(f"--games: {path} is not a file")

    def _limits(self) -> "Limits":
        """The limits. Raises ``UsageError``."""
        from tilewe_jax.web.limits import Limits

        try:
            return changed(Limits(), assignments(self.limit, "--limit", "NAME"), "--list-limits explains the limits")
        except ValueError as error:
            text = str(error).replace("unknown setting", "unknown limit")
            raise UsageError(text if text.startswith("--limit") else f"--limit: {text}") from None

    def _offline(self) -> dict[str, bytes] | None:
        """The files of the page without a server. Raises ``UsageError``."""
        from tilewe_jax.web.site import SiteError, site_files

        if self.offline is None:
            return None
        try:
            return site_files(self.offline, is_at_server=True)
        except (OSError, SiteError) as error:
            raise UsageError(f"--offline: {error}") from None

    def _print_limits(self) -> None:
        table = Rows("limit", "value", "about", wrap=("about",))
        for row in listing(self._limits()):
            table.add(row["name"], f"{row['default']:,.6g}", row["description"])
        table.print(out)

    def _monitor(self) -> "Monitor":
        """The measurements, with the log. Raises ``UsageError``."""
        from tilewe_jax.web.monitor import Journal, Monitor

        try:
            return Monitor(Journal(self.log) if self.log else None)
        except OSError as error:
            raise UsageError(f"--log: {self.log} cannot be written: {error.strerror}") from None

    def run(self) -> None:
        if self.list_limits:
            self._print_limits()
            return
        self._check()
        limits = self._limits()
        offline = self._offline()
        metrics_clients = [_network("--metrics", text) for text in self.metrics]
        proxies = [_network("--trusted-proxy", text) for text in self.trusted_proxy]
        import uvicorn

        from tilewe_jax.web.app import LOCAL_NAMES, create_app
        from tilewe_jax.web.engines import EnginePool
        from tilewe_jax.web.guard import LOOPBACK
        from tilewe_jax.web.live import Live
        from tilewe_jax.web.sockets import fitted, server_config
        from tilewe_jax.web.store import Store
        from tilewe_jax.web.stored import StoreError

        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
        # The check of agents with networks starts JAX, which warns of forks. Engine processes execute another program at once.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        agents = offered_agents(self.agents) if self.engines else {}
        monitor, listener = self._monitor(), self._listen()
        try:
            store = Store(self.data, self.sync, 1e6 * limits.disk_megabytes)
        except (OSError, StoreError) as error:
            listener.close()
            raise UsageError(f"--data: {error}") from None
        limits = fitted(limits)
        app = create_app(
            store,
            EnginePool([*engine_command(agents), *self.imports_as_arguments()], self.engines) if self.engines else None,
            agents,
            analysis_agents={name: analysis_agent(offered) for name, offered in agents.items()},
            host_names=(*LOCAL_NAMES, socket.gethostname(), *self.names),
            runs=self.runs,
            live=Live([sys.executable, "-m", "tilewe_jax.web.live_games", "--game", self.live]) if self.engines else None,
            limits=limits,
            monitor=monitor,
            metrics_clients=(*LOOPBACK, *metrics_clients),
            base_path=self.base_path,
            games=self.games,
            offline=offline,
        )
        config = server_config(app, limits, monitor, proxies)
        host, port = listener.getsockname()[:2]
        address = ipaddress.ip_address(host.partition("%")[0])
        is_everywhere = address.is_unspecified
        loopback = "::1" if ":" in host else "127.0.0.1"
        out.print(_url(loopback if is_everywhere else host, port, self.base_path))
        sys.stdout.flush()
        if not address.is_loopback:
            own = _address_in_network(listener.family) if is_everywhere else None
            where = f" at {_url(own, port, self.base_path)}" if own else ""
            err.print(f"others on the network can reach this server{where}, and play and watch without a password")
        with contextlib.suppress(KeyboardInterrupt):  # how a server ends
            uvicorn.Server(config).run(sockets=[listener])

    def _listen(self) -> socket.socket:
        """Open the socket of the server."""
        try:
            if not self.host.strip():
                raise ValueError("it is empty")
            family, _, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
        except (OSError, ValueError) as error:  # UnicodeError, a ValueError, for a part of more than 63 letters
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"--host must be a name or address of this machine, not {self.host!r} ({reason})") from None
        listener = socket.socket(family, socket.SOCK_STREAM)
        if sys.platform != "win32":  # on Windows it would let two servers listen on one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            # Without the limit, closing a connection would wait forever for a client that does not read.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SECONDS_WITHOUT_READING * 1000)
        try:
            listener.bind(address)
            listener.listen(1024)
        except OSError as error:
            listener.close()
            hint = "; choose another port" if self.port else ""
            raise UsageError(
                f"cannot listen on port {self.port} of {self.host}: {os.strerror(error.errno or 0)}{hint}"
            ) from None
        return listener


def engine_command(agents: Mapping[str, Sequence["Agent"]]) -> list[str]:
    """Return the command line of an engine process with these agents."""
    named = {agent.agent for listed in agents.values() for agent in listed if not agent.agent.startswith("level:")}
    named |= {analysis_agent(listed) for listed in agents.values()} - {AGENT}
    others = ["--others", *sorted(named)] if named else []
    options = ["--agent", AGENT, "--batch", "16", "--score-playouts", "8", "--game", "santorini", *others]
    return [sys.executable, "-m", "tilewe_jax", "analyze", *options]


def analysis_agent(offered: Sequence["Agent"]) -> str:
    """Return the agent of the analyses of a game: ``AGENT``, with the opening book of the first offered agent that has one."""
    settings = [item for agent in offered for item in agent.agent.split(":", 1)[-1].split(",")]
    book = next((item for item in settings if item.startswith("book=") and item != "book=false"), None)
    return f"{AGENT},{book}" if book else AGENT


def offered_agents(texts: Sequence[str]) -> dict[str, list["Agent"]]:
    """Return the levels and the given agents by game. Raises ``UsageError`` for an unknown game or an invalid agent."""
    from tilewe_jax.agents.levels import LEVELS
    from tilewe_jax.host_games import OFFERS
    from tilewe_jax.web.catalog import Agent

    offered: dict[str, list[Agent]] = {name: [] for name in OFFERS}
    for name, levels in LEVELS.items():
        for number, level in enumerate(levels, 1):
            title = TITLES[min(number, len(TITLES)) - 1]
            agent = Agent(f"level:{number}", title, level.elo, _seconds(name, level.agent))
            offered.setdefault(name, []).append(agent)
    for text in texts:
        game, equals, agent_text = text.partition("=")
        is_named = bool(equals) and ":" not in game
        if is_named and game not in OFFERS:
            raise UsageError(
                f"--agents: unknown game {game!r} in {text!r}{did_you_mean(game, OFFERS)}; games are {', '.join(OFFERS)}"
            )
        agent_name = agent_text if is_named else text
        errors = {name: _error_of(name, agent_name) for name in ([game] if is_named else OFFERS)}
        playable = [name for name, error in errors.items() if error is None]
        if not playable:
            raise UsageError(f"--agents: {text!r}: {next(iter(errors.values()))}")
        for name in playable:
            if all(agent.agent != agent_name for agent in offered[name]):
                offered[name].append(Agent(agent_name, agent_name, None, _seconds(name, agent_name)))
        if len(playable) < len(errors):
            name, error = next((name, error) for name, error in errors.items() if error)
            err.print(f"{agent_name} is offered for {', '.join(playable)} only; {name}: {error}")
    return offered


def _error_of(game: str, agent: str) -> str | None:
    """Return the reason why an agent cannot play a game, or ``None``. Prepares it as an engine does, without compilation."""
    from tilewe_jax.agents.analysis import AgentAnalyzer
    from tilewe_jax.host_games import make_host_game
    from tilewe_jax.interop.analysis_requests import GameSpec

    settings = {"agent": agent, "max_seconds": _seconds(game, agent)}
    try:
        analyzer = AgentAnalyzer(agent, batch=1)
        analyzer.prepare(GameSpec(make_host_game(game), {}), {name: value for name, value in settings.items() if value})
    except (MemoryError, OSError, ValueError) as error:
        return " ".join(str(error).split())
    return None


def _network(option: str, text: str) -> "ipaddress.IPv4Network | ipaddress.IPv6Network":
    """Return the network in a value of an option. Raises ``UsageError``."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        reason = " (the address has bits outside of the network)" if "host bits" in str(error) else ""
        raise UsageError(f"{option} must be addresses or networks like 10.0.0.0/8, not {text!r}{reason}") from None


def _is_host_name(name: str) -> bool:
    """Return whether a text is a valid host name in a URL, as browsers send it."""
    part = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
    return len(name) <= 253 and re.fullmatch(rf"{part}(\.{part})*\.?", name) is not None


def _url(host: str, port: int, base_path: str) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{base_path}/"


def _address_in_network(family: int) -> str | None:
    """Return the address of this machine on its network, or ``None``."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # With addresses for documentation, the system chooses an interface and sends nothing.
            probe.connect(("2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1", 9))
            host = str(probe.getsockname()[0])
    except OSError:
        return None
    return None if ipaddress.ip_address(host.partition("%")[0]).is_unspecified else host


def _seconds(game: str, agent: str) -> float | None:
    """Return the time limit of an agent in a game; ``None`` if it does not support one, see ``SearchProgram``."""
    from tilewe_jax.agents.levels import BEST

    if agent.partition(":")[0] == "best":
        agent = BEST.get(game, "puct")
    return SECONDS if agent.startswith("puct") and game != "triominos" else None
