"""Load test of the game server: simulated people play many games against each other and against engines."""

import asyncio
import contextlib
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

GAMES = ("duo_official", "santorini", "triominos", "classic_2")
"""Games that people play against each other."""
ENGINE_GAMES = ("santorini", "duo_official")
ENGINE = "level:1"
MEAN_SECONDS = 2.0
"""Mean of the exponentially distributed time of a move."""


def serve(games: int, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Measure a server with many games, half of them against engines. Finished games restart.

    Args:
        games: number of games in parallel.
        seconds: time to measure, after all have joined and the engines have made their first moves.
        seed: seed of the moves and times.

    Returns percentiles of the milliseconds from a move to its acknowledgement, the moves per second, the CPU cores that the
    server uses, and its memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tilewe_jax.cli.benchmarks.serve", str(Path(folder) / "games")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
            try:
                assert process.stdout
                port = int(process.stdout.readline())
                return asyncio.run(_Load(port, process.pid, games, seed).measure(seconds))
            finally:
                process.terminate()


class _Load:
    """The simulated people of all games."""

    def __init__(self, port: int, pid: int, games: int, seed: int) -> None:
        self._port, self._games = port, games
        self._chance = random.Random(seed)
        self._process = psutil.Process(pid)
        self._seconds: list[float] = []
        self._engine_moves = 0
        self._ended = 0
        self._is_measuring = False

    async def measure(self, seconds: float) -> dict[str, Any]:
        before = self._process.memory_info().rss
        tasks = [asyncio.create_task(self._play(number)) for number in range(self._games)]
        done, _ = await asyncio.wait([asyncio.create_task(self._warm_up()), *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        used = self._process.cpu_times()
        middle = self._process.memory_info().rss
        self._is_measuring = True
        await asyncio.sleep(seconds)
        self._is_measuring = False
        after = self._process.cpu_times()
        rss = self._process.memory_info().rss
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(result, asyncio.CancelledError):
                raise RuntimeError("a player has failed") from result
        ordered = sorted(self._seconds)

        def percentile(part: float) -> float:
            return round(1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))], 1) if ordered else 0.0

        return {
            "games": self._games,
            "seconds": seconds,
            "moves_per_second": round(len(ordered) / seconds, 1),
            "engine_moves_per_second": round(self._engine_moves / seconds, 1),
            "games_ended": self._ended,
            "ack_p50_ms": percentile(0.5),
            "ack_p90_ms": percentile(0.9),
            "ack_p99_ms": percentile(0.99),
            "ack_max_ms": percentile(1.0),
            "server_cores": round((after.user + after.system - used.user - used.system) / seconds, 2),
            "memory_mb_before": before >> 20,
            "memory_mb_joined": middle >> 20,
            "memory_mb_after": rss >> 20,
        }

    async def _warm_up(self) -> None:
        """Wait for the first moves of the engines, which compile first, at most five minutes."""
        end = time.monotonic() + 300
        while self._engine_moves < self._games // 2 and time.monotonic() < end:
            await asyncio.sleep(0.1)
        self._engine_moves = 0

    async def _play(self, number: int) -> None:
        """Play games in sequence."""
        against_engine = number % 2 == 1
        names = ENGINE_GAMES if against_engine else GAMES
        game = names[number // 2 % len(names)]
        seats = [{"kind": "human"}, {"kind": "engine", "agent": ENGINE} if against_engine else {"kind": "human"}]
        await asyncio.sleep(MEAN_SECONDS * self._chance.random())
        while True:
            created = await asyncio.to_thread(self._post, "/api/games", {"game": game, "seats": seats})
            await asyncio.gather(*(self._sit(created["id"], seat["token"]) for seat in created["seats"]))
            self._ended += self._is_measuring

    async def _sit(self, game: str, token: str) -> None:
        """Play a seat of a game."""
        from websockets.asyncio.client import connect

        sent: dict[int, float] = {}
        async with connect(
            f"ws://127.0.0.1:{self._port}/api/games/{game}/socket", compression=None, ping_interval=None
        ) as connection:
            await connection.send(json.dumps({"type": "join", "token": token, "after": 0}))
            async for text in connection:
                message = json.loads(text)
                if message["type"] == "ok":
                    if self._is_measuring:
                        self._seconds.append(time.perf_counter() - sent[message["ref"]])
                elif message["type"] != "state":
                    raise RuntimeError(str(message))
                else:
                    agents = [seat["agent"] for seat in message["seats"]]
                    self._engine_moves += sum(agents[move["player"]] is not None for move in message["moves"])
                    if message["over"]:
                        return
                    number = message["move"]
                    if message["legal"] and number not in sent:
                        sent[number] = 0.0
                        asyncio.get_running_loop().create_task(self._move(connection, sent, message))

    async def _move(self, connection: Any, sent: dict[int, float], state: dict[str, Any]) -> None:
        """Wait, and make a random move."""
        await asyncio.sleep(self._chance.expovariate(1 / MEAN_SECONDS))
        from websockets.exceptions import ConnectionClosed

        action = self._chance.choice(state["legal"])
        number = state["move"]
        move = {"type": "move", "action": action if isinstance(action, int) else action["id"], "move": number, "ref": number}
        sent[number] = time.perf_counter()
        with contextlib.suppress(OSError, ConnectionClosed):
            await connection.send(json.dumps(move))

    def _post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)


def main(data: str) -> None:
    """Run a server without limits per address."""
    import uvicorn

    from tilewe_jax.cli.serve import engine_command, offered_agents
    from tilewe_jax.web.app import create_app
    from tilewe_jax.web.engines import EnginePool
    from tilewe_jax.web.limits import Limits
    from tilewe_jax.web.sockets import server_config
    from tilewe_jax.web.store import Store

    limits = Limits(
        connections_per_address=10_000,
        connections=10_000,
        request_rate=1e6,
        request_burst=1e6,
        creation_rate=1e6,
        creation_burst=1e6,
        attempt_rate=1e6,
        attempt_burst=1e6,
        http_connections=10_000,
        http_connections_per_address=10_000,
        questions_per_address=10_000,
        engine_seconds=0,
    )
    agents = offered_agents(())
    app = create_app(Store(data), EnginePool(engine_command(agents)), agents, limits=limits)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(server_config(app, limits)).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
