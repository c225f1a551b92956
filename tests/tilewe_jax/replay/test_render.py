"""``tilewe-jax render``: pictures, animations and pages of recorded games, and invalid input."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.browser import browser_page
from tests.tilewe_jax.cli.test_cli import run
from tests.tilewe_jax.draw.games import GAMES, recorded
from tilewe_jax.formats import blksgf
from tilewe_jax.interop.analysis import names_of
from tilewe_jax.records import FORMAT


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a file for each kind of game, with the same game twice."""
    folder = tmp_path_factory.mktemp("games")
    paths = {}
    for name, (game_id, options, _) in GAMES.items():
        game = recorded(name)
        header = {"format": FORMAT, "game": game_id, "options": options, "version": game.game.version, "seed": None}
        line = {"deal": game.deal, "actions": game.actions, **(game.result or {}), "players": game.names}
        paths[name] = folder / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps(row) + "\n" for row in (header, line, line)))
    return paths


def test_formats(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, arguments, prefix in (
        ("a.svg", [], b"<svg "),
        ("b.svg", ["--move", "0", "--theme", "dark", "--numbers"], b"<svg "),
        ("c.svg", ["--format", "animated-svg"], b"<svg "),
        ("d.svg", ["--format", "grid"], b"<svg "),
        ("e.gif", [], b"GIF89a"),
        ("f.html", ["--number", "2"], b"<!doctype html>"),
    ):
        if name == "e.gif":
            pytest.importorskip("resvg_py")
        code, out, err = run(capsys, "render", str(files["duo"]), "--out", str(tmp_path / name), *arguments)
        assert code == 0, err
        assert out.endswith(f"{tmp_path / name}\n")
        content = (tmp_path / name).read_bytes()
        assert content.startswith(prefix)
        if name.endswith("svg"):
            ET.fromstring(content)
    assert (tmp_path / "d.svg").read_text().count("<svg") == 3
    assert "Start" in (tmp_path / "b.svg").read_text()


def test_games_of_pentobi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unfinished game, and a game without moves."""
    (tmp_path / "g.blksgf").write_text("(;GM[Blokus Duo];B[e10,f10,f9,g9,g8])(;GM[Blokus])")
    assert len(blksgf.read(tmp_path / "g.blksgf")) == 2
    code, _, err = run(capsys, "render", str(tmp_path / "g.blksgf"), "--out", str(tmp_path / "g.svg"))
    assert (code, err.count("\n")) == (0, 1)
    assert "g.blksgf: game 2 " in err
    assert (tmp_path / "g.svg").read_text().count("tilewe-piece") == 1


def test_bad_input_gets_one_line(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, game = tmp_path / "out.svg", recorded("duo")
    target.write_text("before")
    damaged, illegal, answers = (tmp_path / name for name in ("damaged.jsonl", "illegal.jsonl", "answers.jsonl"))
    damaged.write_text("{}\n")
    header, line, _ = files["duo"].read_text().splitlines()
    illegal.write_text(f"{header}\n{json.dumps({**json.loads(line), 'actions': [*game.actions[:1], *game.actions[:1]]})}\n")
    answers.write_text('{"id": 1, "turn": 700}\n')
    page = str(tmp_path / "out.html")
    for file, arguments, code, message in (
        (files["duo"], ["--out", str(tmp_path / "x.png")], 2, ".svg, .gif, .html"),
        (files["duo"], ["--out", str(tmp_path / "none" / "x.svg")], 2, str(tmp_path / "none")),
        (files["duo"], ["--out", str(target), "--number", "3"], 2, "--number"),
        (files["duo"], ["--out", str(target), "--number", "0"], 2, "--number"),
        (files["duo"], ["--out", str(target), "--move", "999"], 2, "--move"),
        (files["duo"], ["--out", str(target), "--move", "1", "--format", "grid"], 2, "--move"),
        (files["duo"], ["--out", str(target), "--analyses", str(answers)], 2, "--analyses"),
        (files["duo"], ["--out", str(target), "--theme", "blue"], 2, "--theme"),
        (files["duo"], ["--out", str(target), "--format", "png"], 2, "--format"),
        (files["duo"], ["--out", page, "--analyses", str(answers)], 1, "answers.jsonl: turn"),
        (files["duo"], ["--out", page, "--analyses", str(answers), "--number", "2"], 1, "game 2"),
        (files["duo"], ["--out", page, "--analyses", str(damaged.parent / "no")], 1, "No such file"),
        (damaged, ["--out", str(target)], 1, "damaged.jsonl"),
        (tmp_path / "no.jsonl", ["--out", str(target)], 1, "No such file"),
        (illegal, ["--out", str(target)], 1, "illegal.jsonl: game 1: move 2: "),
        (illegal, ["--out", str(target), "--format", "grid"], 1, "illegal.jsonl: game 1: move 2: "),
    ):
        result, out, err = run(capsys, "render", str(file), *arguments)
        assert (result, out) == (code, "")
        assert message in err
        assert err.count("\n") == 1
    assert target.read_text() == "before"
    assert not Path(page).exists()


def test_pixels_need_an_extra(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    code, _, err = run(capsys, "render", str(files["duo"]), "--out", str(tmp_path / "game.gif"))
    assert (code, err.count("\n")) == (1, 1)
    assert "tilewe-jax[render]" in err
    assert not (tmp_path / "game.gif").exists()


def answers_of(name: str) -> list[dict[str, Any]]:
    """Return answers like those of ``rate --out``, with the first legal moves of each position as candidates."""
    game = recorded(name)
    position, answers = game.game.init_from_deal(game.deal), []
    for turn, action in enumerate(game.actions):
        value = [1 / game.game.num_players] * game.game.num_players
        candidates = [
            {"action": legal, "visits": 3, "prior": 0.5, "value": value, "principal_variation": names_of(position, [legal])}
            for legal in position.legal_actions()[:3]
        ]
        answers.append({"id": 1, "turn": turn, "value": value, "score_lead": None, "candidates": candidates})
        position = position.after(action)
    return answers


def test_pages_in_a_browser(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys, switches and the graph of a page of each kind of game; on a phone, its width."""
    for name, file in files.items():
        answers, page_file = tmp_path / f"{name}.answers", tmp_path / f"{name}.html"
        answers.write_text("".join(json.dumps(answer) + "\n" for answer in answers_of(name)))
        code, _, err = run(capsys, "render", str(file), "--out", str(page_file), "--analyses", str(answers))
        assert (code, err) == (0, "")
    with browser_page() as page:
        page.set_viewport_size({"width": 375, "height": 900})
        for name in files:
            page.goto(f"file://{tmp_path / name}.html")
            page.locator("tilewe-game .board svg").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 375
        page.set_viewport_size({"width": 1280, "height": 900})
        for name in files:
            game = recorded(name)
            page.goto(f"file://{tmp_path / name}.html")
            element = page.locator("tilewe-game")
            caption = element.locator(".caption")
            assert caption.text_content() == "Start"
            element.locator(".board").focus()
            page.keyboard.press("ArrowLeft")
            for move in range(1, 5):
                page.keyboard.press("ArrowRight")
                assert caption.text_content().startswith(f"{move}. ")
            assert element.locator(".moves [aria-current=true]").text_content().startswith("4.")
            page.keyboard.press("End")
            assert caption.text_content().startswith(f"{len(game.actions)}. ")
            page.keyboard.press("ArrowRight")
            assert element.get_by_label("Next move").is_disabled()
            page.keyboard.press("Home")
            assert caption.text_content() == "Start"
            page.keyboard.press("PageDown")
            page.keyboard.press("n")
            assert element.get_by_role("button", name="Move numbers").get_attribute("aria-pressed") == "true"
            element.get_by_role("button", name="Heat map").click()
            assert element.locator(".candidates tbody tr").count() >= 1
            element.locator(".graph").click(position={"x": 2, "y": 20})
            assert caption.text_content() == "Start"
            element.get_by_text("Board as text").click()
            element.locator("pre", has_text="player 1").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 1280
            assert page.evaluate("document.querySelector('tilewe-game').replay.names[1]") == game.names[1]


def test_the_element_loads_files_and_reports_errors() -> None:
    from tests.tilewe_jax.draw.games import replay_of
    from tilewe_jax.replay.page import script

    replay = replay_of("santorini")
    policy = "default-src 'self'; style-src 'self'; script-src 'self'"
    bodies = {
        "http://game.test/": ("text/html", '<!doctype html><script type="module" src="tilewe-game.js"></script>'),
        "http://game.test/tilewe-game.js": ("text/javascript", script()),
        "http://game.test/replay.json": ("application/json", json.dumps(replay)),
        "http://game.test/wrong.json": ("application/json", '{"frames": []}'),
        "http://game.test/favicon.ico": ("image/x-icon", ""),
    }

    def answer(route: Any) -> None:
        kind, body = bodies[route.request.url]
        route.fulfill(body=body, headers={"Content-Type": kind, "Content-Security-Policy": policy})

    with browser_page() as page:
        page.route("**/*", answer)
        page.goto("http://game.test/")
        page.evaluate('document.body.innerHTML = \'<tilewe-game src="replay.json" move="20"></tilewe-game>\'')
        caption = page.locator("tilewe-game .caption")
        caption.wait_for()
        assert caption.text_content().startswith("20. ")
        assert page.locator("tilewe-game .board svg rect").count() > 10
        assert page.evaluate("getComputedStyle(document.querySelector('tilewe-game')).display") == "block"
        moves = page.evaluate(
            """() => {
              const game = document.querySelector("tilewe-game"), seen = [];
              game.addEventListener("tilewe-move", ({ detail }) => seen.push(detail.move));
              game.move = 5; game.move = 5; game.move = 99999; game.move = -3;
              return seen;
            }"""
        )
        assert moves == [5, len(replay["moves"]), 0]
        page.locator("tilewe-game .play").click()
        page.locator("tilewe-game .caption", has_text="1. ").wait_for()
        page.evaluate("document.querySelector('tilewe-game').setAttribute('src', 'wrong.json')")
        page.locator("tilewe-game .message", has_text="frames").wait_for()
