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
        assert (book["games"], len(book["notes"])) == (3, 1)  # each variation is a game
        assert len(client.get(f"/api/studies/{book['id']}?number=3").json()["moves"]) == 1
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
