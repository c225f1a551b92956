"""The explorer and the puzzles of the server, and of the page without a server."""

import asyncio
import random
import time
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tests.tilewe_jax.web.support import joined, new_game, play_out, serving
from tests.tilewe_jax.web.test_local import Rows, local
from tilewe_jax import records
from tilewe_jax.host_games import make_host_game
from tilewe_jax.web import puzzles

Json = dict[str, Any]
OPTIONS = {"size": 7}
HOST = make_host_game("duo", **OPTIONS)


def random_record(seed: int) -> records.Record:
    chance, position, actions = random.Random(seed), HOST.init_from_deal(None), []
    while not position.is_terminal:
        actions.append(chance.choice(position.legal_actions()))
        position = position.after(actions[-1])
    return records.Record(None, tuple(actions), tuple(position.scores()), tuple(HOST.returns(position)))


def explored(client: TestClient, study: str, source: str, actions: tuple[int, ...] = ()) -> Json:
    """The answer once all games are read."""
    while True:
        body = {"number": 1, "actions": list(actions), "source": source}
        answer: Json = client.post(f"/api/studies/{study}/explore", json=body).json()
        if not answer.get("reading"):
            return answer
        time.sleep(0.01)


def test_sources_of_the_explorer(tmp_path: Path) -> None:
    content = "".join(records.lines(HOST, [random_record(seed) for seed in range(5)]))
    loaded = tmp_path / "loaded.jsonl"
    records.write(loaded, HOST, [random_record(seed) for seed in range(7)])
    with serving(tmp_path / "games", games=(loaded, tmp_path / "missing.jsonl")) as client:
        study = client.post("/api/studies", content=content).json()["id"]
        assert client.get(f"/api/studies/{study}").json()["explored"]
        answer = explored(client, study, "server")
        assert answer == {"moves": [], "games": 0, "reading": False, "full": False, "sources": ["server", "files", "study"]}
        for seed, (game, count) in enumerate((("duo", 1), ("duo", 2), ("triominos", 2))):
            created = new_game(client, game, OPTIONS if game == "duo" else {"players": 2})
            with joined(client, created, 0, 1) as players:
                play_out(players, random.Random(seed))
            if game == "triominos":
                record = client.get(f"/api/games/{created['id']}/record").content
                hidden = client.post("/api/studies", content=record).json()["id"]
                assert not client.get(f"/api/studies/{hidden}").json()["explored"]
            answer = explored(client, study, "server")
            assert answer["games"] == count  # hidden information is not explored
            assert sum(move["count"] for move in answer["moves"]) == count
        private = new_game(client, "duo", OPTIONS, public=False)
        with joined(client, private, 0, 1) as players:
            play_out(players, random.Random(5))
        assert explored(client, study, "server")["games"] == 2
        for source, count in (("files", 7), ("study", 5)):
            answer = explored(client, study, source)
            assert (answer["games"], sum(move["count"] for move in answer["moves"])) == (count, count)
            (first, *_) = answer["moves"]
            assert first["count"] == first["wins"] + first["draws"] + first["losses"]
            after = explored(client, study, source, (first["id"],))
            assert sum(move["count"] for move in after["moves"]) == first["count"]
            assert explored(client, study, source) == answer  # no game is counted twice
        for body in (
            {"number": 1},
            {"number": 1, "actions": [], "source": "x"},
            {"number": 1, "actions": [-1], "source": "book"},
        ):
            assert client.post(f"/api/studies/{study}/explore", json=body).status_code == 400
        assert (
            client.post(f"/api/studies/{study}/explore", json={"number": 9, "actions": [], "source": "book"}).status_code == 400
        )
    with serving(tmp_path / "games") as client:  # the games are read from the database
        answer = explored(client, study, "server")
        assert (answer["games"], answer["sources"]) == (2, ["server", "study"])
        assert client.post(f"/api/studies/{study}/explore", json=body | {"actions": [], "source": "files"}).status_code == 409


def test_the_opening_book_is_a_source(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        record = b"(;GM[Blokus Duo];B[e10,f10,g10,e9,e8])"
        study = client.post("/api/studies", content=record).json()["id"]
        answer = explored(client, study, "book")
        assert answer["sources"] == ["server", "book"]
        assert len(answer["moves"]) > 100
        best = answer["moves"][0]
        assert 0 < best["error"] < best["value"] < 1
        assert explored(client, study, "book", (best["id"],))["moves"]


def test_puzzles_of_the_server(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        counts = client.get("/api/puzzles").json()["puzzles"]
        assert counts == puzzles.counts()
        for game, count in counts.items():
            puzzle = client.get(f"/api/puzzles/{game}/{count}").json()
            check_puzzle(puzzle)
            path = f"/api/puzzles/{game}/1?move={client.get(f'/api/puzzles/{game}/1').json()['start']}"
            assert client.get(f"{path}&explain=0").json()["rule"]
            assert client.get(f"{path}&explain=1234567").status_code == 400
            assert client.get(f"/api/puzzles/{game}/{count + 1}").status_code == 404
            assert client.get(f"/api/puzzles/{game}/0").status_code == 404
        assert client.get("/api/puzzles/chess/1").status_code == 404
        assert client.get(f"/puzzle/{game}/1").headers["content-type"].startswith("text/html")


def check_puzzle(puzzle: Json) -> None:
    """The player has as many positions to answer as asked, in each of which the next move of the line is legal."""
    assert len(puzzle["frames"]) == len(puzzle["moves"]) + 1
    own = [move for move, each in enumerate(puzzle["moves"]) if move >= puzzle["start"] and each["player"] == puzzle["player"]]
    assert sorted(map(int, puzzle["legal"])) == own[: puzzle["asked"]]
    for move, legal in puzzle["legal"].items():
        ids = [action if isinstance(action, int) else action["id"] for action in legal]
        assert puzzle["moves"][int(move)]["id"] in ids


def test_puzzles_and_explorer_without_a_server() -> None:
    app = local(Rows())

    async def ask(method: str, path: str, body: str = "") -> Any:
        status, _, text = await app.request(method, path, body)
        return status, records.parse_json(text)

    async def talk() -> None:
        assert await ask("GET", "/api/puzzles") == (200, {"puzzles": puzzles.counts()})
        status, puzzle = await ask("GET", "/api/puzzles/santorini/1")
        assert status == 200
        check_puzzle(puzzle)
        status, study = await ask("POST", "/api/studies", "".join(records.lines(HOST, [random_record(1), random_record(2)])))
        assert status == 201
        request = '{"number": 1, "actions": [], "source": "study"}'
        status, answer = await ask("POST", f"/api/studies/{study['id']}/explore", request)
        assert (status, answer["games"], sum(move["count"] for move in answer["moves"])) == (200, 2, 2)

    asyncio.run(talk())
