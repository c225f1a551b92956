"""Kill a server at random moments while clients play, and check that it knows all acknowledged moves after each restart.

python -m tests.tilewe_jax.web.killing [KILLS]
"""

import asyncio
import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

GAMES = [("duo_official", {}), ("santorini", {}), ("triominos", {}), ("classic_2", {"size": 14})]


class Process:
    """A server process, started by the command line."""

    def __init__(self, data: Path, *arguments: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "tilewe_jax", "serve", "--port", str(port), "--data", str(data), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout
        line = self.process.stdout.readline()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", line)
        assert match, (line, self.process.communicate(timeout=10)[1])
        self.port = int(match[1])
        while True:
            with contextlib.suppress(OSError):
                self.get("/")
                break
            time.sleep(0.005)

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as response:
            return bytes(response.read())

    def post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        """End the server by Ctrl-C; return its exit code and standard error."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err


class Script:
    """A client of one seat, which remembers acknowledged moves and survives restarts of the server."""

    def __init__(self, game: str, seat: int, token: str, chance: random.Random) -> None:
        self.game, self.seat, self.token, self.chance = game, seat, token, chance
        self.moves: list[int] = []
        """Actions of the game that the client received."""
        self.acknowledged: dict[int, int] = {}
        """Acknowledged actions by number of the move."""
        self.over = False

    def take(self, state: dict[str, Any]) -> None:
        """Take the new moves of a state, and check that it agrees with the known ones."""
        first = state["move"] - len(state["moves"])
        actions = [move["id"] for move in state["moves"]]
        assert first <= len(self.moves), "moves are missing"
        assert self.moves[first:] == actions[: len(self.moves) - first], "a move has changed"
        self.moves[first:] = actions
        for number, action in self.acknowledged.items():
            assert self.moves[number : number + 1] == [action], f"acknowledged move {number} is lost"
        self.over = state["over"] is not None

    async def play(self, port: int) -> None:
        """Play until the game is over or the server is gone."""
        with contextlib.suppress(OSError, WebSocketException, asyncio.TimeoutError):
            async with connect(f"ws://127.0.0.1:{port}/api/games/{self.game}/socket") as socket:
                await socket.send(json.dumps({"type": "join", "token": self.token, "after": len(self.moves)}))
                asked: dict[int, int] = {}
                while not self.over:
                    message = json.loads(await asyncio.wait_for(socket.recv(), 60))
                    if message["type"] == "state":
                        self.take(message)
                        number = message["move"]
                        if message["legal"] and number not in asked:
                            action = self.chance.choice(message["legal"])
                            asked[number] = action if isinstance(action, int) else action["id"]
                            move = {"type": "move", "action": asked[number], "move": number, "ref": number}
                            await socket.send(json.dumps(move))
                    elif message["type"] == "ok":
                        self.acknowledged[message["ref"]] = asked[message["ref"]]
                    else:
                        raise AssertionError(message)


async def _play(scripts: list[Script], server: Process, seconds: float | None) -> None:
    """Run the clients; kill the server after ``seconds``, or never for ``None``."""
    playing = [asyncio.create_task(script.play(server.port)) for script in scripts if not script.over]
    if seconds is not None:
        await asyncio.sleep(seconds)
        server.process.send_signal(signal.SIGKILL)
    await asyncio.gather(*playing)


def kill_often(data: Path, kills: int, games: int = 12, seed: int = 0) -> dict[str, int]:
    """Kill a server ``kills`` times; return counts of games and moves. Asserts that no acknowledged move is lost."""
    chance = random.Random(seed)
    scripts: list[Script] = []
    checks = 0
    for round_number in range(kills + 1):
        server = Process(data, "--engines", "0")
        try:
            while sum(not script.over for script in scripts) < 2 * games:
                game, options = GAMES[len(scripts) // 2 % len(GAMES)]
                seats = [{"kind": "human"}] * 2
                created = server.post("/api/games", {"game": game, "options": options, "seats": seats})
                scripts += [Script(created["id"], seat["seat"], seat["token"], chance) for seat in created["seats"]]
            # After the start the server must know all acknowledged moves.
            for script in scripts:
                script.take(json.loads(server.get(f"/api/games/{script.game}")))
                checks += len(script.acknowledged)

            asyncio.run(_play(scripts, server, 0.1 + 0.5 * chance.random() if round_number < kills else None))
        finally:
            server.kill()
    assert all(script.over for script in scripts)
    acknowledged = sum(len(script.acknowledged) for script in scripts)
    return {"kills": kills, "games": len(scripts) // 2, "acknowledged": acknowledged, "checks": checks}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(kill_often(Path(folder) / "games", int(sys.argv[1]) if len(sys.argv) > 1 else 20))
