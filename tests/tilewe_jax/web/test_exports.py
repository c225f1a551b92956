"""Pictures, studies and training runs."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.support import engine, joined, new_game, play_out, serving

DUO = b"(;GM[Blokus Duo]PB[Ada]PW[Bo];B[e10,f10,g10,e9,e8];W[j5,i5,h5,j6,j7])"


def test_pictures_and_animations(tmp_path: Path) -> None:
    with serving(tmp_path / "games") as client:
        created = new_game(client, "triominos", {"players": 2})
        path = f"/api/games/{created['id']}"
        assert client.get(f"{path}/animation").status_code == 409
        with joined(client, created, 0, 1) as players:
            play_out(players, random.Random(0), 4)
        light, dark = (client.get(f"{path}/picture?theme={theme}") for theme in ("light", "dark"))
        assert light.headers["content-type"] == "image/svg+xml"
        assert light.text != dark.text
        assert client.get(f"{path}/picture?move=0").text != light.text
        assert client.get(f"{path}/picture?move=5").status_code == 400
        assert client.get(f"{path}/picture?theme=pink").json()["field"] == "theme"
        assert client.get(f"{path}/animation?format=svg").text.startswith("<svg")
        gif = client.get(f"{path}/animation?format=gif")
        assert gif.content.startswith(b"GIF89a")
        assert gif.headers["content-disposition"].endswith('.gif"')


def test_studies(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        study = client.post("/api/studies", content=DUO + DUO).json()
        assert (study["games"], study["notes"]) == (2, [])
        text = b"(;GM[Blokus Duo]C[x](;B[e10](;W[j5])(;W[i5,j5]))(;B[e10,f10]))"
        book = client.post("/api/studies", content=text).json()
        assert (book["games"], book["notes"]) == (1, [])
        tree = client.get(f"/api/studies/{book['id']}").json()
        assert ([move["kind"] for move in tree["moves"]], tree["comments"]) == (["place"] * 2, {"0": "x"})
        shapes = [(each["move"], len(each["moves"]), len(each["frames"])) for each in tree["variations"]]
        assert shapes == [(0, 1, 1), (1, 1, 1)]
        replay = client.get(f"/api/studies/{study['id']}?number=2").json()
        assert (replay["game"], replay["names"], replay["number"]) == ("duo_official", ["Ada", "Bo"], 2)
        assert [len(replay[name]) for name in ("moves", "frames")] == [2, 3]
        url = f"/api/studies/{study['id']}/analysis"
        analysis = client.post(url, json={"number": 2, "move": 2}).json()
        assert analysis["candidates"]
        for body, field in (
            ({"move": 3}, "move"),
            ({"number": 3, "move": 0}, "number"),
            ({"move": 0, "simulations": 17}, "simulations"),
        ):
            assert client.post(url, json=body).json()["field"] == field
    with serving(tmp_path / "games") as client:
        assert client.get(f"/api/studies/{study['id']}").json()["games"] == 2
        assert client.post(url, json={"move": 0}).status_code == 503


def test_variations_of_a_study_there_and_back(tmp_path: Path) -> None:
    with serving(tmp_path / "games", engine()) as client:
        study = client.post("/api/studies", content=DUO).json()["id"]
        replay = client.get(f"/api/studies/{study}").json()
        first, second = (move["id"] for move in replay["moves"])

        def line(actions: list[int], **more: Any) -> Any:
            return client.post(f"/api/studies/{study}/line", json={"number": 1, "actions": actions, "move": 1, **more})

        known = line([first]).json()
        assert (known["moves"], known["frames"], known["over"]) == ([], [], None)
        assert second in known["legal"]
        assert {"id", "name", "piece", "cells"} <= known["orientations"][0].keys()
        other = next(action for action in known["legal"] if action != second)
        after = line([first, other]).json()
        assert ([move["id"] for move in after["moves"]], len(after["frames"])) == ([other], 1)
        illegal = next(action for action in range(5000) if action not in known["legal"])
        assert line([first], explain=illegal).json()["rule"]
        assert line([first], explain=other).json() == {"rule": None}
        assert line([first, illegal]).json()["field"] == "actions"
        for wrong in ({"move": 2}, {"move": -1}, {"number": 2}, {"explain": "x"}):
            assert line([first], **wrong).status_code == 400, wrong
        for actions in (["x"], [0] * 10_000, [True], "x"):
            assert line(actions).status_code == 400, actions  # type: ignore[arg-type]
        url = f"/api/studies/{study}/analysis"
        analysis = client.post(url, json={"number": 1, "move": 2, "actions": [first, other]}).json()
        assert analysis["candidates"]
        assert client.post(url, json={"move": 2, "actions": [first, illegal]}).json()["field"] == "number"

        tree = {"comments": {"2": "why?"}, "variations": [{"move": 1, "actions": [other], "comments": {"2": "better"}}]}
        shown = client.post(f"/api/studies/{study}/variations", json={"number": 1, **tree}).json()
        assert shown["variations"][0]["moves"] == after["moves"]
        assert shown["variations"][0]["frames"] == after["frames"]
        for form in ("jsonl", "blksgf"):
            file = client.post(f"/api/studies/{study}/record?format={form}", json={"number": 1, **tree})
            again = client.post("/api/studies", content=file.content).json()
            assert again["notes"] == []
            back = client.get(f"/api/studies/{again['id']}").json()
            assert {name: back[name] for name in ("comments", "variations")} == shown
            assert back["moves"] == replay["moves"]
        wrong = {"number": 1, "variations": [{"move": 1, "actions": [illegal]}]}
        refused = client.post(f"/api/studies/{study}/record", json=wrong).json()
        assert (refused["field"], "a variation after 1 moves" in refused["error"]) == ("variations", True)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    run = folder / "first"
    (run / "games").mkdir(parents=True)
    (folder / "no run").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "metrics.jsonl").write_text('{"iteration": 1}\n')
    config = {"game": {"id": "duo_official", "options": {}}, "iterations": 3}
    (run / "config.json").write_text(json.dumps(config))
    rows = [{"iteration": number, "loss": 1 / number} for number in (1, 2)]
    (run / "metrics.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows) + '{"iteration": 3, "loss": NaN}\n{"itera'
    )
    (run / "evaluations.jsonl").write_text('{"iteration": 2, "opponents": {}}\n')
    return folder


def test_runs(tmp_path: Path, runs: Path) -> None:
    def get(path: str) -> Any:
        return client.get(path).json()

    with serving(tmp_path / "games", runs=runs) as client:
        listed = get("/api/runs")["runs"]
        assert listed == [{"name": "first", "game": "duo_official", "rows": 3, "iterations": 3, "finished": True}]
        metrics = get("/api/runs/first/metrics?after=1")
        assert [row["iteration"] for row in metrics["metrics"]] == [2, 3]
        assert metrics["metrics"][1]["loss"] is None
        assert (len(metrics["evaluations"]), metrics["next"]) == (1, 3)
        assert get("/api/runs/first/games") == {"games": []}
        created = new_game(client, "duo_official")
        with joined(client, created, 0, 1) as players:
            actions = play_out(players, random.Random(0))
        (runs / "first" / "games" / "1.jsonl").write_text(client.get(f"/api/games/{created['id']}/record").text)
        (runs / "first" / "games" / "2.jsonl").write_text("{")
        (game,) = get("/api/runs/first/games")["games"]
        assert (game["file"], game["moves"], game["view"]["terminal"]) == ("1.jsonl", len(actions), True)
        for name in ("..%2Fsecret", "no run", "%2e%2e", "first%2F..%2F..%2Fsecret", "second"):
            assert client.get(f"/api/runs/{name}/metrics").status_code == 404, name
        assert client.get("/api/runs/first/metrics?after=-1").status_code == 400
    with serving(tmp_path / "games") as client:
        assert get("/api/runs") == {"runs": []}
