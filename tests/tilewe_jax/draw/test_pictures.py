"""Pictures: golden files, equality with the page, contrast of colours, replays and animations."""

import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from tests.browser import browser_page
from tests.tilewe_jax.draw.games import GAMES, GOLDEN, golden, options_of, recorded, replay_of
from tilewe_jax import replay as render
from tilewe_jax import tilewe
from tilewe_jax.draw.pictures import draw, draw_grid, scene, summary
from tilewe_jax.draw.shapes import Options, outline
from tilewe_jax.draw.theme import COLORS, PALETTE
from tilewe_jax.games.polyomino.pieces import DRAWINGS
from tilewe_jax.host_games import make_host_game
from tilewe_jax.records import RecordError
from tilewe_jax.replay import animation, page
from tilewe_jax.replay.frames import analyses_of_answers, bounds_of_rounds, middle, numbers_of, replay
from tilewe_jax.utils.extras import MissingExtraError

SVG = "{http://www.w3.org/2000/svg}"


def test_pictures_equal_the_golden_files() -> None:
    """If a change is intended, run ``python -m tests.tilewe_jax.draw.games``."""
    drawn = dict(golden())
    assert sorted(drawn) == sorted(path.name for path in GOLDEN.glob("*.svg"))
    for name, picture in drawn.items():
        assert picture == (GOLDEN / name).read_text("utf-8"), f"{name} differs from the golden picture"


def test_pictures_are_xml_without_scripts_and_links() -> None:
    for name, picture in golden():
        root = ET.fromstring(picture)
        assert root.tag == f"{SVG}svg"
        for element in root.iter():
            assert element.tag.removeprefix(SVG) in ["svg", "g", "rect", "circle", "path", "text", "animate"], name
            assert not {"href", "style", "onload"} & set(element.attrib)


def test_browsers_draw_the_same_elements() -> None:
    """``boardSvg`` in a browser equals the Python drawing in every position of each game."""
    fields = ("coordinates", "last", "numbers", "legal", "heat", "frontier", "bounds")
    positions = [
        (view, look)
        for name in GAMES
        for game in [replay_of(name)]
        for view, look in zip(game["frames"], options_of(game, "light"), strict=True)
    ]
    names = {f"var(--tilewe-{color})": value for color, value in PALETTE["light"].items()}

    def flat(element: ET.Element) -> list[Any]:
        return [element.tag, dict(element.attrib), [flat(child) for child in element] or (element.text or "")]

    def resolved(node: list[Any]) -> list[Any]:
        tag, attributes, inside = node
        colored = {key: names.get(value, value) for key, value in attributes.items()}
        return [tag, colored, [resolved(child) for child in inside] if isinstance(inside, list) else inside]

    with browser_page() as browser:
        browser.set_content(f'<script type="module">{page.script()}\nwindow.boardSvg = boardSvg;</script>')
        browser.wait_for_function("() => Boolean(window.boardSvg)")
        drawn = browser.evaluate(
            """(given) => {
              const flat = (node) => [
                node.tagName,
                Object.fromEntries([...node.attributes].map(({ name, value }) => [name, value])),
                node.children.length ? [...node.children].map(flat) : node.textContent,
              ];
              return given.map(([view, options]) => [...boardSvg(view, options).children].map(flat));
            }""",
            [[view, {field: getattr(look, field) for field in fields}] for view, look in positions],
        )
    for (view, look), elements in zip(positions, drawn, strict=True):
        expected = [flat(ET.fromstring(part)) for part in scene(view, look, legend=False).parts]
        assert [resolved(element) for element in elements] == expected


def test_the_page_has_the_same_colours_and_pieces() -> None:
    script = page.script()
    palette = re.search(r"export const PALETTE = (\{.*?\n\});", script, re.DOTALL)
    drawings = re.search(r"const DRAWINGS = (\{.*?\});", script, re.DOTALL)
    assert palette
    assert drawings
    assert literal(palette[1]) == PALETTE
    assert literal(drawings[1]) == DRAWINGS
    assert set(PALETTE["light"]) == set(PALETTE["dark"])


def literal(text: str) -> Any:
    """Parse an object of strings in JavaScript."""
    quoted = re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', text)
    return json.loads(re.sub(r",(\s*\})", r"\1", quoted))


def test_the_element_is_self_contained() -> None:
    script = page.script()
    assert "</script" not in script
    assert re.findall(r"https?://[^\"'`\s]+", script) == ["http://www.w3.org/2000/svg"]
    assert not re.search(
        r"^\s*import\b|\bimport\(|\.style\b|\.innerHTML\b|setAttribute\(\"style\"|\beval\(", script, re.MULTILINE
    )


# Viénot, Brettel and Mollon 1999, as refined by Machado et al. 2009 for full dichromacy; linear RGB.
VISIONS = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def linear(color: str) -> np.ndarray:
    """Convert a colour to linear RGB."""
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Convert linear RGB to Oklab (Ottosson 2020), in which distances are perceptually uniform."""
    return np.asarray(TO_LAB) @ np.cbrt(np.asarray(TO_LMS) @ np.clip(rgb, 0, 1))


def contrast(first: str, second: str) -> float:
    """Return the contrast of WCAG 2."""
    light, dark = sorted((float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", PALETTE)
def test_colours_are_distinguishable(theme: str) -> None:
    ink = PALETTE[theme]
    for vision, matrix in VISIONS.items():
        for first, second in combinations(COLORS, 2):
            distance = np.linalg.norm(
                oklab(np.asarray(matrix) @ linear(ink[first])) - oklab(np.asarray(matrix) @ linear(ink[second]))
            )
            assert distance > 0.11, f"{first} and {second} are too much alike with {vision}"
    for color in COLORS:
        assert contrast(ink[color], ink[f"{color}-ink"]) > 3.2
        assert contrast(ink[color], ink[f"{color}-mark"]) > 1.7
        assert contrast(ink[color], ink["board"]) > 1.4
    for name in ("ink", "muted", "accent"):
        for ground in ("paper", "panel"):
            assert contrast(ink[name], ink[ground]) > 4.5, f"{name} on {ground}"
    for kind in ("tile", "tile-double", "tile-triple"):
        assert contrast(ink["tile-ink"], ink[kind]) > 7


@pytest.mark.parametrize("name", GAMES)
def test_hostile_names_are_escaped(name: str) -> None:
    hostile = ("\x00\x1b[31m\ud800", "x" * 5000, "</script>&<b>\"'")
    game = {**replay_of(name), "names": hostile[: replay_of(name)["frames"][0]["num_players"]]}
    for picture in (animation.animated_svg(game), draw(game["frames"][-1], names=hostile, caption=hostile[1])):
        ET.fromstring(picture.encode())
    text = page.page(game, "".join(hostile))
    text.encode()
    assert text.count("</script>") == 2
    assert "<b>" not in text


def test_outlines_follow_pieces() -> None:
    square = outline([(0, 0)], 10, 0, 0, 1, 2)
    assert square == "M7 1Q9 1 9 3L9 7Q9 9 7 9L3 9Q1 9 1 7L1 3Q1 1 3 1Z"
    assert outline([(0, 0), (1, 1)], 10, 0, 0, 1, 2).count("Z") == 2, "cells that touch corner to corner are two areas"
    ring = [(x, y) for x in range(3) for y in range(3) if (x, y) != (1, 1)]
    assert outline(ring, 10, 0, 0, 1, 2).count("Z") == 2, "an area with a hole has two outlines"
    assert middle([[0, 0], [1, 0], [2, 0]]) == [1, 0]


def test_each_piece_is_one_shape() -> None:
    board = make_host_game("duo_official").init_from_deal(None)
    pieces = 0
    while not board.is_terminal:
        assert board.svg().count('class="tilewe-piece') == pieces
        action = board.legal_actions()[-1]
        board, pieces = board.after(action), pieces + 1
        assert board.svg(last_action=action).count("tilewe-last") == 1


def test_pieces_have_the_numbers_of_their_moves() -> None:
    game = replay_of("duo")
    final = numbers_of(game, len(game["moves"]))
    assert sorted(final.values()) == [i + 1 for i, move in enumerate(game["moves"]) if move["kind"] == "place"]
    for name, number in final.items():
        assert [int(part) for part in name.split(",")] in game["moves"][number - 1]["cells"]


def test_bounds_are_constant_within_a_round() -> None:
    frames = replay_of("triominos")["frames"]
    again = {**frames[-1], "tiles": []}
    bounds = bounds_of_rounds([*frames, again, frames[3]])
    assert bounds[: len(frames)] == [bounds[0]] * len(frames)
    assert bounds[len(frames)] == bounds[-1] != bounds[0]


def test_gains_include_the_points_of_the_end_of_a_round() -> None:
    game = replay_of("triominos")
    for before, move, after in zip(game["frames"], game["moves"], game["frames"][1:], strict=False):
        assert after["scores"][move["player"]] - before["scores"][move["player"]] == move["gain"]


def test_invalid_replays_are_rejected() -> None:
    game = recorded("duo")
    with pytest.raises(RecordError, match="move 2"):
        replace(game, actions=(game.actions[0], game.actions[0])).replay()
    with pytest.raises(ValueError, match="analyses"):
        game.replay([None])
    hidden = recorded("triominos")
    partial_replay = replay(hidden.game, hidden.deal, hidden.actions[:4], seat=0, open=False)
    assert all(isinstance(frame["trays"][1], int) for frame in partial_replay["frames"])


def test_answers_of_a_search_become_analyses() -> None:
    game = recorded("duo")
    candidate = {"action": game.actions[1], "visits": 5, "prior": 0.5, "value": [0.25, 0.75], "principal_variation": ["x"]}
    answer = {"turn": 1, "value": [0.25, 0.75], "score_lead": None, "candidates": [candidate]}
    analyses = analyses_of_answers(game.game, None, game.actions, [answer])
    assert [analysis is not None for analysis in analyses] == [turn == 1 for turn in range(len(game.actions) + 1)]
    assert game.replay(analyses)["analyses"][1]["candidates"][0]["name"] == game.replay()["moves"][1]["name"]
    for damaged in (
        {"turn": 99},
        {**answer, "value": ["high"]},
        {**answer, "value": [float("nan")]},
        {"turn": 1},
        {**answer, "candidates": 3},
    ):
        with pytest.raises(ValueError, match=r"turn"):
            analyses_of_answers(game.game, None, game.actions, [damaged])


def test_a_grid_has_all_boards() -> None:
    views = replay_of("santorini")["frames"][:7]
    root = ET.fromstring(draw_grid(views, columns=3, captions=list("abcdefg")))
    assert len(root.findall(f"{SVG}svg")) == 7
    assert [text.text for text in root.findall(f"{SVG}text")] == list("abcdefg")
    with pytest.raises(ValueError, match="views"):
        draw_grid([])
    with pytest.raises(ValueError, match="options"):
        draw_grid(views, [Options()])
    with pytest.raises(ValueError, match="columns"):
        draw_grid(views, columns=-1)
    with pytest.raises(ValueError, match="'blue'"):
        Options(theme="blue")


def test_animations_show_positions_in_order() -> None:
    game = replay_of("duo")
    root = ET.fromstring(animation.animated_svg(game, seconds=1, last_seconds=2))
    total = len(game["moves"]) + 2

    def texts_at(time: float) -> str:
        words = []
        for part in root.iter(f"{SVG}g"):
            animate = part.find(f"{SVG}animate")
            if animate is None:
                continue
            starts = [float(key) * total for key in animate.attrib["keyTimes"].split(";")]
            values = animate.attrib["values"].split(";")
            assert starts[0] == 0
            assert len(starts) == len(values)
            assert all(before != after for before, after in pairwise(values))
            if values[sum(start <= time for start in starts) - 1] == "visible":
                words += [text.text or "" for text in part.iter(f"{SVG}text")]
        return " ".join(words)

    assert "Start" in texts_at(0.5)
    for move, action in enumerate(game["moves"], 1):
        shown = texts_at(move + 0.5)
        assert f"{move}. " in shown
        assert action["name"] in shown
        assert "Start" not in shown


def test_a_gif_has_all_positions() -> None:
    image_module = pytest.importorskip("PIL.Image")
    pytest.importorskip("resvg_py")
    game = replay_of("duo")
    data = animation.gif(game, width=120, seconds=0.5, last_seconds=2)
    with image_module.open(io.BytesIO(data)) as image:
        assert image.n_frames == len(game["frames"])
        assert image.width == 120
        assert image.info["loop"] == 0
        image.seek(image.n_frames - 1)
        assert image.info["duration"] == 2000
    with pytest.raises(ValueError, match="pixels"):
        animation.gif(game, width=9000)


def test_pixels_need_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match="render"):
        animation.png(draw(replay_of("duo")["frames"][0]))
    with pytest.raises(MissingExtraError, match="render"):
        animation.gif(replay_of("duo"))


def test_notebooks_show_positions_and_boards() -> None:
    for name in GAMES:
        game = recorded(name)
        position = game.game.init_from_deal(game.deal)
        assert position._repr_svg_() == position.svg()
        assert draw(position.view())._repr_svg_().startswith("<svg")
        assert summary(position.view()) in position.svg()
    board = tilewe.Board(2)
    board.push(board.generate_legal_moves()[0])
    picture = board._repr_svg_()
    assert picture.count("tilewe-piece") == picture.count("tilewe-last") == 1


def test_notebooks_show_states() -> None:
    import jax

    from tests.search.tictactoe import TicTacToe
    from tilewe_jax import make

    game = make("duo", size=6)
    state = game.init(jax.random.key(0))
    assert render.picture(game, state) == game.host(state).svg().replace('class="tilewe-last"', "")
    states = jax.tree.map(lambda leaf: jax.numpy.stack([leaf] * 5), state)
    assert render.grid(game, states, limit=4).count("<svg") == 5
    tictactoe = TicTacToe()
    assert "<text" in render.picture(tictactoe, tictactoe.init(jax.random.key(0)))
