"""Whole games through the API, and the messages that each seat receives."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.support import KINDS, engine, joined, legal, new_game, play_out, serving
from tilewe_jax.formats import blksgf
from tilewe_jax.host_games import make_host_game
from tilewe_jax.records import read_on_host


@pytest.mark.parametrize(("game", "options", "seats"), KINDS, ids=[f"{kind[0]}-{kind[2]}" for kind in KINDS])
def test_a_whole_game_and_its_record(tmp_path: Path, game: str, options: dict[str, Any], seats: int) -> None:
    """All seats and a spectator see the same game; its record replays to the same end."""
    host = make_host_game(game, **options)
    with serving(tmp_path / "games") as client:
        created = new_game(client, game, options, seats)
        with joined(client, created, *range(seats), None) as clients:
            actions = play_out(clients[:seats], random.Random(game))
            states = [player.wait(lambda state: state["over"]) for player in clients]
            first = states[0]
            assert first["over"]["reason"] == "finished"
            assert sum(first["over"]["returns"]) == pytest.approx(1) or seats == 1
            for state in states:
                assert [state[name] for name in ("move", "view", "over")] == [first[name] for name in ("move", "view", "over")]
                assert state["legal"] is None
            received = [json.loads(text) for text in clients[-1].received]
            assert [move["id"] for message in received for move in message.get("moves", ())] == actions
            assert all(message.get("legal") is None for message in received)

        file = tmp_path / "game.jsonl"
        file.write_text(client.get(f"/api/games/{created['id']}/record").text)
        read, (record,) = read_on_host(file)
        position = read.init_from_deal(record.deal)
        for action in record.actions:
            position = position.after(action)
        assert (read.id, list(record.actions)) == (host.id, actions)
        assert position.is_terminal
        assert position.scores() == record.scores == tuple(first["over"]["scores"])
        replay = client.get(f"/api/games/{created['id']}/replay").json()
        assert len(replay["frames"]) == len(actions) + 1
        assert replay["frames"][-1] == first["view"]
        assert client.get(f"/api/games/{created['id']}/picture?move=3").text.startswith("<svg")


def secrets_of(position: Any, seat: int | None) -> list[str]:
    """The tiles that are hidden from a seat, as they would appear in a message."""
    trays = [tile for player, tray in enumerate(position.trays) if player != seat for tile in tray]
    return ['"' + "".join(map(str, tile)) for tile in (*trays, *position.pile)]


def test_hidden_tiles_are_never_sent(tmp_path: Path) -> None:
    """No message of any kind has a tile of another tray or of the pile, the deal or its seed."""
    chance = random.Random(7)
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(
            client, "triominos", {"players": 2, "tiles": 20, "game": "target", "target": 10_000, "max_rounds": 2}, 2
        )
        server = client.app.state.server  # type: ignore[attr-defined]
        room = client.portal.call(server.rooms.get, created["id"])  # type: ignore[union-attr]
        with joined(client, created, 0, 1, None) as clients:
            checked = [0] * 3

            def check(index: int, session: Any) -> None:
                """Check the new messages of a client."""
                hidden = secrets_of(session.position, index if index < 2 else None)
                for text in clients[index].received[checked[index] :]:
                    # The tile that ended a round may be hidden in the next round.
                    played = ['"' + move["tile"] for move in json.loads(text).get("moves", ()) if "tile" in move]
                    assert not [tile for tile in hidden if tile in text and tile not in played], text[:300]
                    assert "seed" not in text
                    assert "deal" not in text
                checked[index] = len(clients[index].received)

            while not room.session.over:
                session = room.session
                number = len(session.moves)
                for player in clients:
                    player.wait_for_move(number)
                for index, player in enumerate(clients):
                    if (index if index < 2 else None) == session.mover:
                        player.ask({"type": "explain", "action": chance.randrange(session.setup.host.num_actions)})
                    elif number % 5 == 0:
                        assert player.ask({"type": "explain", "action": 5})["rule"] == "it is not your turn"
                        for kind in ("hint", "analyze", "undo"):
                            assert player.ask({"type": kind})["type"] == "error"
                        assert player.move(session.position.legal_actions()[0])["type"] == "error"
                    check(index, session)
                mover = clients[session.mover]
                mover.wait(lambda state: state["legal"] is not None)
                if number % 10 == 0:
                    answer = mover.ask({"type": "analyze"})
                    assert {candidate["id"] for candidate in answer["candidates"]} <= set(legal(mover.state))
                check(session.mover, session)
                if number % 8 == 0 and session.position.round == 0:  # later answers name tiles of earlier rounds
                    for name in ("", "/record", "/replay"):
                        response = client.get(f"/api/games/{created['id']}{name}")
                        assert response.status_code == (409 if name == "/record" else 200)
                        assert not [tile for tile in secrets_of(session.position, None) if tile in response.text]
                mover.move_at_random(chance)
            final = clients[2].wait(lambda state: state["over"])
        assert any(isinstance(tray, list) for tray in final["view"]["trays"])
        rounds = final["rounds"]
        assert [sum(entry["points"][seat]["total"] for entry in rounds) for seat in range(2)] == final["over"]["scores"]
        assert len(rounds) == 2
        for entry in rounds:
            assert entry["reason"] in ("out", "stuck")
            for row in entry["points"]:
                assert sum(value for name, value in row.items() if name != "total") == row["total"]


def test_clients_resume_from_their_last_move(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo", {"size": 8})
        with joined(client, created, 0, 1) as players:
            play_out(players, random.Random(1), 5)
            received = [json.loads(text) for text in players[0].received]
            assert received[0]["start"] == make_host_game("duo", size=8).init_from_deal(None).view(seat=None)
            assert received[0]["orientations"]
            frames = [frame for message in received for frame in message.get("frames", ())]
        with joined(client, created, 0, after=3) as (again,):
            assert (again.state["move"], len(again.state["moves"])) == (5, 2)
            assert again.state["frames"] == frames[3:]
            assert "start" not in again.state
        with joined(client, created, None) as (spectator,):
            assert spectator.state["frames"] == frames
            assert client.get(f"/api/games/{created['id']}").json()["moves"] == spectator.state["moves"]
        with joined(client, created, 0, after=99) as (confused,):
            assert len(confused.state["moves"]) == 5


def test_games_survive_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, "triominos", {"players": 2, "game": "target"}, clock={"seconds": 600, "increment": 2})
        with joined(client, created, 0, 1) as players:
            play_out(players, random.Random(2), 30)
            before = [player.wait(lambda state: state["move"] == 30) for player in players]
    with serving(tmp_path / "games") as client, joined(client, created, 0, 1) as players:
        for player, old in zip(players, before, strict=True):
            player.wait(lambda state: all(seat["connected"] for seat in state["seats"]))
            for name in ("view", "legal", "rounds", "seats", "move"):
                assert player.state[name] == old[name], name
            assert player.state["clock"]["remaining"] == pytest.approx(old["clock"]["remaining"], abs=2)
        play_out(players, random.Random(3), 3)


def test_undo_and_redo(tmp_path: Path) -> None:
    chance = random.Random(4)
    with serving(tmp_path / "games", engine()) as client:
        created = new_game(client, "santorini")
        with joined(client, created, 0, 1) as (first, second):
            assert first.ask({"type": "undo"})["type"] == "error"
            play_out([first, second], chance, 4)
            board = second.state["view"]
            assert first.ask({"type": "undo"})["type"] == "ok"
            assert second.wait(lambda state: state["undo"] == 0)["move"] == 4
            assert first.ask({"type": "answer_undo", "accept": True})["type"] == "error"
            assert second.ask({"type": "answer_undo", "accept": False})["type"] == "ok"
            assert first.wait(lambda state: state["undo"] is None)["view"] == board
            assert second.ask({"type": "answer_undo", "accept": True})["type"] == "error"
            first.ask({"type": "undo"})
            assert second.ask({"type": "answer_undo", "accept": True})["type"] == "ok"
            state = first.wait(lambda state: state["move"] == 2)
            assert (state["undos"], state["moves"], state["redo"]) == (1, [], False)
            assert first.ask({"type": "redo"})["type"] == "error"
        with joined(client, created, 0, after=4) as (again,):  # it knows moves that were taken back
            assert len(again.state["moves"]) == 2
        with joined(client, created, 0, after=2, undos=1) as (again,):
            assert again.state["moves"] == []

        alone = new_game(client, "santorini", seats=[{"kind": "human"}, {"kind": "engine", "agent": "level:1"}])
        with joined(client, alone, 0) as (player,):
            player.move_at_random(chance)
            after = player.wait(lambda state: state["move"] == 2 and state["legal"])
            assert player.ask({"type": "undo"})["type"] == "ok"
            assert player.wait(lambda state: state["undos"] == 1)["move"] == 0
            assert player.state["redo"]
            assert player.ask({"type": "redo"})["type"] == "ok"
            assert player.wait(lambda state: state["move"] == 2)["view"] == after["view"]

        rated = new_game(client, "santorini", casual=False)
        with joined(client, rated, 0, 1) as players:
            play_out(players, chance, 2)
            for kind in ("undo", "hint", "analyze"):
                assert "casual" in players[0].ask({"type": kind})["error"]


def test_resignation_and_rematch(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo", {"size": 8}, [{"kind": "human", "name": "Ada\x00 \n L."}, {"kind": "human"}])
        path = f"/api/games/{created['id']}/rematch"
        assert client.post(path, json={"token": created["tokens"][0]}).status_code == 409
        with joined(client, created, 0, 1, None) as (first, second, spectator):
            assert first.state["seats"][0]["name"] == "Ada L."
            assert spectator.ask({"type": "resign"})["type"] == "error"
            assert second.ask({"type": "resign"})["type"] == "ok"
            over = first.wait(lambda state: state["over"])["over"]
            assert (over["reason"], over["seat"], over["returns"]) == ("resignation", 1, [1.0, 0.0])
            assert first.ask({"type": "resign"})["type"] == "error"
            assert client.post(path, json={"token": "x"}).status_code == 403
            again = client.post(path, json={"token": created["tokens"][0]}).json()
            assert again["seat"] == 1
            offer = second.wait(lambda state: state.get("rematch"))["rematch"]
            assert offer["id"] == again["id"]
            assert spectator.wait(lambda state: state.get("rematch"))["rematch"] == {"id": again["id"]}
            rematch = {"id": again["id"], "tokens": {1: again["token"], 0: offer["token"]}}
            with joined(client, rematch, 0, 1) as players:
                assert [player.state["you"] for player in players] == [0, 1]
                assert players[0].state["seats"][1]["name"] == "Ada L."
    with serving(tmp_path / "games") as client:  # after a restart, the server creates new tokens
        later = client.post(path, json={"token": created["tokens"][1]}).json()
        assert (later["id"], later["seat"]) == (again["id"], 0)
        with joined(client, {"id": later["id"], "tokens": {0: later["token"]}}, 0) as (player,):
            assert player.state["you"] == 0


def test_open_seats(tmp_path: Path) -> None:
    seats = [{"kind": "human"}, {"kind": "open"}]
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo", {"size": 8}, seats)
        private = new_game(client, "duo", {"size": 8}, seats, public=False)
        listed = client.get("/api/games").json()
        assert [(game["id"], game["open_seats"]) for game in listed] == [(created["id"], [1])]
        path = f"/api/games/{created['id']}/seats/1"
        taken = client.post(path, json={"name": "Bo"})
        assert taken.status_code == 201
        assert client.post(path, json={}).status_code == 409
        assert client.post(f"/api/games/{created['id']}/seats/7", json={}).status_code == 404
        assert client.post(f"/api/games/{private['id']}/seats/1", json={}).status_code == 403
        with joined(client, {"id": created["id"], "tokens": {1: taken.json()["token"]}}, 1) as (player,):
            assert player.state["seats"][1] == {"kind": "human", "name": "Bo", "agent": None, "connected": True}
        with client.websocket_connect(f"ws://localhost/api/games/{created['id']}/socket") as socket:
            socket.send_json({"type": "join", "token": created["tokens"][1]})  # the invitation is invalid now
            assert socket.receive_json()["field"] == "token"
        with joined(client, private, 1, name="Cy") as (player,):
            assert player.wait(lambda state: state["seats"][1]["kind"] == "human")["seats"][1]["name"] == "Cy"


def test_two_tabs_with_one_seat(tmp_path: Path) -> None:
    chance = random.Random(5)
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo", {"size": 8})
        with joined(client, created, 0, 0, 1) as (first, second, opponent):
            action, stale = (chance.choice(legal(player.state)) for player in (first, second))
            assert first.move(action)["type"] == "ok"
            assert second.ask({"type": "move", "action": stale, "move": 0})["field"] == "move"
            assert second.wait(lambda state: state["move"] == 1)["legal"] is None
            assert second.ask({"type": "move", "action": action})["type"] == "error"
            opponent.wait(lambda state: state["legal"])
            opponent.move_at_random(chance)
            second.wait(lambda state: state["move"] == 2)
            assert second.state["view"] == first.wait(lambda state: state["move"] == 2)["view"]
            second.move_at_random(chance)


def test_clocks(tmp_path: Path) -> None:
    chance = random.Random(6)
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo", {"size": 8}, clock={"seconds": 1, "increment": 10})
        with joined(client, created, 0, 1) as players:
            assert players[0].state["clock"] == {"remaining": [1, 1], "running": None}
            players[0].move_at_random(chance)
            clock = players[1].wait(lambda state: state["move"] == 1)["clock"]
            assert (clock["running"], clock["remaining"][0]) == (1, 1)
            players[1].wait(lambda state: state["legal"])
            players[1].move_at_random(chance)
            assert 10 < players[1].wait(lambda state: state["move"] == 2)["clock"]["remaining"][1] <= 11
            over = players[0].wait(lambda state: state["over"])
            assert (over["over"]["reason"], over["over"]["seat"], over["over"]["returns"]) == ("time", 0, [0.0, 1.0])
            assert over["clock"]["remaining"][0] == 0


@pytest.mark.parametrize(("game", "options", "seats"), KINDS[2:], ids=[f"{kind[0]}-{kind[2]}" for kind in KINDS[2:]])
def test_nobody_is_to_move_after_a_resignation(tmp_path: Path, game: str, options: dict[str, Any], seats: int) -> None:
    """The last state, replay frame and picture show the end; earlier frames do not."""
    with serving(tmp_path / "games") as client:
        created = new_game(client, game, options, seats)
        with joined(client, created, *range(seats)) as players:
            play_out(players, random.Random(game), 2)
            players[0].ask({"type": "resign"})
            state = players[-1].wait(lambda state: state["over"])
        again = client.get(f"/api/games/{created['id']}").json()
        replay = client.get(f"/api/games/{created['id']}/replay").json()
        assert state["over"]["seat"] == 0
        assert state["over"]["returns"][0] == 0
        assert state["view"] == again["view"] == again["frames"][-1] == replay["frames"][-1]
        assert [frame["terminal"] for frame in replay["frames"]] == [False, False, True]
        assert "to move" not in client.get(f"/api/games/{created['id']}/picture").text
        assert state["view"].get("winner", 1) == 1


def test_names_of_invited_players(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo", {"size": 8}, [{"kind": "human", "name": "Ada"}, {"kind": "human", "name": "Friend"}])
        with joined(client, created, 0, None) as (first, spectator):
            with joined(client, created, 1, name="Bo") as (second,):
                assert first.wait(lambda state: state["seats"][1]["name"] == "Bo")["seats"][0]["name"] == "Ada"
                assert second.ask({"type": "name", "name": " Cy\n "})["type"] == "ok"
                spectator.wait(lambda state: state["seats"][1]["name"] == "Cy")
                for refused in ({}, {"name": " "}, {"name": 5}, {"name": "x" * 1000}):
                    assert second.ask({"type": "name", **refused})["field"] == "name"
                assert spectator.ask({"type": "name", "name": "Di"})["type"] == "error"
                second.ask({"type": "resign"})
            with joined(client, created, 1, name="Eve") as (second,):
                assert second.state["seats"][1]["name"] == "Cy", "names are final after the end"


def test_phrases(tmp_path: Path) -> None:
    """All clients hear the phrases of players, at a limited rate for each seat."""
    with serving(tmp_path / "games") as client:
        created = new_game(client, "santorini")
        with joined(client, created, 0, 1, None) as (first, second, spectator):
            assert first.ask({"type": "say", "phrase": "hello"})["type"] == "ok"
            for player in (second, spectator):
                heard = player.until(lambda message: message["type"] == "said")
                assert heard == {"type": "said", "seat": 0, "phrase": "hello"}
            for wrong in ({}, {"phrase": "what I like"}, {"phrase": ["hello"]}):
                assert second.ask({"type": "say", **wrong})["field"] == "phrase"
            assert "spectators" in spectator.ask({"type": "say", "phrase": "hello"})["error"]
            answers = [first.ask({"type": "say", "phrase": "bye"})["type"] for _ in range(9)]
            assert answers[0] == "ok"
            assert answers[-1] == "error"
            assert second.ask({"type": "say", "phrase": "thanks"})["type"] == "ok"


def test_lists_say_who_is_to_move(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, "santorini")

        def mover() -> int | None:
            (listed,) = client.get(f"/api/games?ids={created['id']}").json()
            seat: int | None = listed["mover"]
            return seat

        assert mover() == 0
        with joined(client, created, 0, 1) as players:
            players[0].move_at_random(random.Random(1))
            assert mover() == 1
            players[1].ask({"type": "resign"})
            assert mover() is None


def test_lists_of_games(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        private = new_game(client, "duo", {"size": 8}, public=False)["id"]
        old = new_game(client, "santorini")["id"]
        for _ in range(51):
            new_game(client, "santorini")
        newest = [game["id"] for game in client.get("/api/games").json()]
        assert len(newest) == 50
        assert not {private, old} & set(newest)
        listed = client.get(f"/api/games?ids={private},{old},nothing").json()
        assert {game["id"] for game in listed} == {private, old}
        assert client.get("/api/games?ids=").json() == []
        assert client.get(f"/api/games?ids={','.join(map(str, range(201)))}").json()["field"] == "ids"


def test_browsers_get_a_page_for_unknown_addresses(tmp_path: Path) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    with serving(tmp_path / "games") as client:
        for path in ("/nothing", "/game", "/game/a/b", "/api/nothing", "/api/studies", "/static/nothing.js"):
            page, plain = client.get(path, headers=browser), client.get(path)
            assert page.status_code == plain.status_code
            assert page.status_code in (404, 405)
            assert page.headers["content-type"].startswith("text/html")
            assert plain.json()["error"]
        assert client.post("/nothing", headers=browser).json()["error"]


def test_a_record_for_pentobi(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, "duo_official")
        with joined(client, created, 0, 1) as players:
            actions = play_out(players, random.Random(0), 8)
        (sgf,) = blksgf.parse(client.get(f"/api/games/{created['id']}/record?format=blksgf").text)
        assert list(sgf.actions) == actions
