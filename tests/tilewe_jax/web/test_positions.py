"""Games, studies and files from positions that a client sets up, on the server and without one."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.support import joined, new_game, play_out, serving
from tilewe_jax.host_games import make_host_game
from tilewe_jax.web.local import Local

Json = dict[str, Any]
SMALL: list[tuple[str, Json]] = [
    ("duo_official", {"size": 7}),
    ("classic_2", {"size": 8}),
    ("santorini", {"size": 3}),
    ("triominos", {"players": 2, "tiles": 20}),
]


def some_position(game: str, options: Json, moves: int = 4) -> Json:
    host, chance = make_host_game(game, **options), random.Random(3)
    position = host.init_from_deal(host.new_deal(chance))
    for _ in range(moves):
        position = position.after(chance.choice(position.legal_actions()))
    assert host.positions
    return host.positions.write(position)


@pytest.mark.parametrize(("game", "options"), SMALL, ids=[game for game, _ in SMALL])
def test_games_start_from_positions_and_are_kept(game: str, options: Json, tmp_path: Path) -> None:
    facts, chance = some_position(game, options), random.Random(1)
    with serving(tmp_path / "games") as client:
        checked = client.post("/api/positions", json={"game": game, "options": options, "position": facts}).json()
        assert (checked["rule"], checked["position"], checked["over"]) == (None, facts, False)
        created = new_game(client, game, options, position=facts)
        with joined(client, created, 0, 1) as players:
            assert players[0].state["set_up"]
            shown = client.get(f"/api/games/{created['id']}").json()["view"]
            assert shown["scores"] == checked["view"]["scores"]
            play_out(players, chance, 1)
    with serving(tmp_path / "games") as client, joined(client, created, 0, 1) as players:
        assert players[0].state["move"] == 1
        play_out(players, chance)
        again = client.post(f"/api/games/{created['id']}/rematch", json={"token": created["tokens"][0]}).json()
        record = client.get(f"/api/games/{created['id']}/record").text
        deal = json.loads(record.splitlines()[1])["deal"]
        assert deal["position"] == facts
        assert client.get(f"/api/games/{again['id']}").json()["view"]["scores"] == checked["view"]["scores"]
        study = client.post("/api/studies", content=record).json()
        replay = client.get(f"/api/studies/{study['id']}").json()
        assert replay["frames"][0] == checked["view"]
        line = client.post(f"/api/studies/{study['id']}/line", json={"number": 1, "actions": [], "move": 0}).json()
        assert line["position"] == facts


@pytest.mark.parametrize(("game", "options"), SMALL, ids=[game for game, _ in SMALL])
def test_positions_of_games(game: str, options: Json, tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, game, options)
        address = f"/api/games/{created['id']}/position"
        with joined(client, created, 0, 1) as players:
            play_out(players, random.Random(1), 3)
            answer = client.get(address, params={"move": 2})
            if game == "triominos":
                assert answer.status_code == 409  # it would show hidden tiles
            else:
                assert client.post("/api/positions", json=answer.json()).json()["position"] == answer.json()["position"]
                shown = client.get(f"/api/games/{created['id']}/replay").json()["frames"]
                assert client.post("/api/positions", json=answer.json()).json()["view"] == shown[2]
            assert client.get(address, params={"move": 4}).status_code == 400
            play_out(players, random.Random(1))
        assert client.get(address).json()["options"] == created_options(client, created)


def created_options(client: Any, created: Json) -> Json:
    """The options of a game, as the server shows them."""
    options: Json = client.get(f"/api/games/{created['id']}").json()["options"]
    return options


def test_the_score_table_starts_with_the_points_of_the_position(tmp_path: Path) -> None:
    options = {"players": 2, "tiles": 20}
    facts = {**some_position("triominos", options), "points": [30, -5]}
    with serving(tmp_path / "games") as client:
        created = new_game(client, "triominos", options, position=facts)
        with joined(client, created, 0, 1) as players:
            rows = players[0].state["rounds"][0]["points"]
            assert [(row["start"], row["total"]) for row in rows] == [(30, 30), (-5, -5)]
            play_out(players, random.Random(1))
            rows = players[0].state["rounds"][0]["points"]
            assert [row["total"] for row in rows] == players[0].state["over"]["scores"]


def test_files_of_pentobi_start_from_positions(tmp_path: Path) -> None:
    facts = {"placed": {"blue": ["e10,f10"], "yellow": ["j5"]}, "current_color": "yellow"}
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo_official", position=facts)
        text = client.get(f"/api/games/{created['id']}/record?format=blksgf").text
        assert "AB[e10,f10]AW[j5]PL[W]" in text
        study = client.post("/api/studies", content=text).json()
        assert client.get(f"/api/studies/{study['id']}").json()["frames"][0]["scores"] == [2, 1]
        edited = client.post(
            f"/api/studies/{study['id']}/record?format=blksgf", json={"number": 1, "comments": {"0": "hm"}}
        ).text
        assert "AB[e10,f10]AW[j5]PL[W]C[hm]" in edited


def test_wrong_positions_are_refused_with_the_rule(tmp_path: Path) -> None:
    wrong = {"placed": {"blue": ["a1"]}, "current_color": "blue"}
    won = {"heights": ["000", "030", "000"], "workers": [["b2", "a1"], ["c3", "a3"]], "current_player": 1}
    with serving(tmp_path / "games") as client:
        answer = client.post("/api/positions", json={"game": "duo_official", "position": wrong}).json()
        assert answer == {"rule": "a piece of blue must cover e10: the first piece starts there"}
        start = client.post("/api/positions", json={"game": "triominos", "options": {"tiles": 20}}).json()
        assert len(start["position"]["trays"]) == 2
        for body in ([], {"game": "chess"}, {"game": "duo", "options": 1}, "x"):
            assert client.post("/api/positions", json=body).status_code == 400
        seats = [{"kind": "human"}] * 2
        for game, options, position, rule in (
            ("duo_official", {}, wrong, "must cover e10"),
            ("duo_official", {}, "x", "a position must be an object"),
            ("triominos", {}, "x", "a position must be an object"),
            ("santorini", {"size": 3}, won, "this position is finished"),
        ):
            request = {"game": game, "options": options, "seats": seats, "position": position}
            answer = client.post("/api/games", json=request)
            assert (answer.status_code, answer.json()["field"]) == (400, "position")
            assert rule in answer.json()["error"]


def test_a_pile_without_order_is_shuffled_for_each_game(tmp_path: Path) -> None:
    facts = some_position("triominos", {"tiles": 35})
    given = {name: value for name, value in facts.items() if name not in ("pile", "seed")}
    with serving(tmp_path / "games") as client:
        games = [new_game(client, "triominos", {"tiles": 35}, position=given)["id"] for _ in range(3)]
        assert all("deal" not in client.get(f"/api/games/{game}").text for game in games)
    deals = [json.dumps(_deal(tmp_path / "games", game)) for game in games]
    assert len(set(deals)) == 3


def _deal(data: Path, game: str) -> Any:
    from tilewe_jax.web.store import Store

    store = Store(data)
    stored = store.game(game)
    store.close()
    assert stored
    return stored.setup["deal"]


def test_positions_without_a_server() -> None:
    rows: dict[str, str] = {}

    async def save(key: str, text: str | None) -> None:
        rows[key] = text or ""

    async def check() -> None:
        app = Local({}, save)
        facts = some_position("santorini", {})
        status, _, body = await app.request("POST", "/api/positions", json.dumps({"game": "santorini", "position": facts}))
        assert (status, json.loads(body)["position"]) == (200, facts)
        study = json.loads((await app.request("POST", "/api/studies", json.loads(body)["record"]))[2])
        seats = [{"kind": "human"}, {"kind": "engine", "agent": "heuristic"}]
        request = {"game": "santorini", "seats": seats, "position": facts}
        game = json.loads((await app.request("POST", "/api/games", json.dumps(request)))[2])
        view = json.loads((await app.request("GET", f"/api/games/{game['id']}", ""))[2])["view"]
        assert view == json.loads((await app.request("GET", f"/api/studies/{study['id']}", ""))[2])["frames"][0]
        question = {"number": 1, "move": 0}
        _, _, answer = await app.request("POST", f"/api/studies/{study['id']}/analysis", json.dumps(question))
        assert json.loads(answer)["candidates"]

    asyncio.run(check())
