"""Helpers of the server tests: a server in this process, and clients that play at random."""

import contextlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tilewe_jax.host_games import OFFERS
from tilewe_jax.web.app import create_app
from tilewe_jax.web.catalog import Agent
from tilewe_jax.web.engines import EnginePool
from tilewe_jax.web.limits import Limits
from tilewe_jax.web.store import Store

Json = dict[str, Any]

GENEROUS = Limits(
    message_rate=1e6,
    message_burst=1e6,
    request_rate=1e6,
    request_burst=1e6,
    creation_rate=1e6,
    creation_burst=1e6,
    attempt_rate=1e6,
    attempt_burst=1e6,
    compilation_rate=1e6,
    compilation_burst=1e6,
    engine_seconds=0,
)
"""Limits that no test reaches by accident."""
AGENTS = {name: [Agent("level:1", "beginner", 0), Agent("level:2", "easy", 300)] for name in OFFERS}
KINDS: list[tuple[str, Json, int]] = [
    ("duo", {"voluntary_pass": True, "size": 8}, 2),
    ("classic_2", {"size": 8}, 2),
    ("tilewe", {"players": 1, "size": 6}, 1),
    ("tilewe", {"players": 3, "size": 6}, 3),
    ("santorini", {"size": 4, "placement": "chosen"}, 2),
    ("triominos", {"players": 2, "game": "target", "target": 60, "start": "highest"}, 2),
]
"""Games with options and numbers of players, of every kind."""


def engine(fault: str = "none", **options: Any) -> EnginePool:
    """A pool of fake engines, see ``fake_engine``."""
    return EnginePool([sys.executable, "-m", "tests.tilewe_jax.web.fake_engine", fault], first_delay=0.05, **options)


@contextlib.contextmanager
def serving(data: Path, engines: EnginePool | None = None, limits: Limits = GENEROUS, **options: Any) -> Iterator[TestClient]:
    """A server in this process."""
    app = create_app(Store(data), engines, options.pop("agents", AGENTS), limits=limits, **options)
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def new_game(client: TestClient, game: str, options: Json | None = None, seats: int | list[Json] = 2, **more: Any) -> Json:
    """Create a game; return its id and tokens by seat."""
    described = [{"kind": "human"}] * seats if isinstance(seats, int) else seats
    response = client.post("/api/games", json={"game": game, "options": options or {}, "seats": described, **more})
    assert response.status_code == 201, response.text
    created = response.json()
    return {"id": created["id"], "tokens": {seat["seat"]: seat["token"] for seat in created["seats"]}}


class Player:
    """A client that has joined a game."""

    def __init__(self, socket: Any, token: str | None, after: int = 0, **more: Any) -> None:
        self.socket = socket
        self.received: list[str] = []
        self.send({"type": "join", "token": token, "after": after, **more})
        self.state = self.until(lambda message: message["type"] == "state")

    def send(self, message: Json) -> None:
        self.socket.send_text(json.dumps(message))

    def receive(self) -> Json:
        text = self.socket.receive_text()
        self.received.append(text)
        message: Json = json.loads(text)
        if message["type"] == "state":
            self.state = message
        return message

    def until(self, wanted: Callable[[Json], bool]) -> Json:
        """Read messages until one is wanted; return it."""
        while not wanted(message := self.receive()):
            pass
        return message

    def ask(self, message: Json) -> Json:
        """Send a message and return its answer."""
        ref = f"q{len(self.received)}"
        self.send({**message, "ref": ref})
        return self.until(lambda answer: answer.get("ref") == ref)

    def wait(self, wanted: Callable[[Json], bool]) -> Json:
        """Read messages until the state is wanted; return it."""
        while not wanted(self.state):
            self.receive()
        return self.state

    def wait_for_move(self, number: int) -> Json:
        """Read messages until ``number`` moves were made; return the state."""
        return self.wait(lambda state: state["move"] >= number)

    def move(self, action: int) -> Json:
        return self.ask({"type": "move", "action": action, "move": self.state["move"]})

    def move_at_random(self, chance: random.Random) -> int:
        """Make a random move, which must be accepted; return its action."""
        action = chance.choice(legal(self.state))
        answer = self.move(action)
        assert answer["type"] == "ok", answer
        self.wait(lambda state: state["move"] >= answer["move"])
        return action


def legal(state: Json) -> list[int]:
    """Return the ids of the legal actions in a state."""
    return [action if isinstance(action, int) else action["id"] for action in state["legal"]]


@contextlib.contextmanager
def joined(client: TestClient, game: Json, *seats: int | None, **more: Any) -> Iterator[list[Player]]:
    """Join a game at seats; ``None`` for a spectator."""
    with contextlib.ExitStack() as stack:
        players = []
        for seat in seats:
            socket = stack.enter_context(client.websocket_connect(f"ws://localhost/api/games/{game['id']}/socket"))
            players.append(Player(socket, None if seat is None else game["tokens"][seat], **more))
        yield players


def play_out(players: list[Player], chance: random.Random, moves: int = 10_000) -> list[int]:
    """Play at random until the end, or ``moves`` moves; return the actions."""
    actions: list[int] = []
    before = max(player.state["move"] for player in players)
    while len(actions) < moves:
        number = before + len(actions)
        for player in players:
            player.wait_for_move(number)
        if players[0].state["over"]:
            break
        mover = players[players[0].state["view"]["current_player"]]
        mover.wait(lambda state: state["legal"] is not None)
        actions.append(mover.move_at_random(chance))
    return actions
