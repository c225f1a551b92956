"""The validator of Triominos against traces of another program and the figures of its rules."""

import json
from typing import Any

import pytest

from tests.support import SAMPLES, sampled_and_full, traces
from tests.tilewe_jax.games.triominos import reference
from tilewe_jax.games.triominos import explain, validate
from tilewe_jax.games.triominos.figure import Figure
from tilewe_jax.games.triominos.tiles import (
    ORIENTATIONS,
    cells_around,
    faces_up,
    neighbours,
    parse_tile,
    tile_id,
    tiles,
    vertices,
)

OTHER_HEX_SCORES = (50, 60, 70)
HEXAGON = [
    ("044", "CAB", (0, 0)),
    ("014", "ACB", (1, 0)),
    ("144", "CAB", (2, 0)),
    ("344", "BAC", (0, 1)),
    ("445", "ACB", (2, 1)),
]


def placed(entry: list[Any]) -> tuple[str, str, tuple[int, int]]:
    tile, orientation, x, y = entry[:4]
    return tile, ORIENTATIONS[orientation], (x, y)


@sampled_and_full
@pytest.mark.parametrize("name", ["random_56", "ring_56", "random_84"])
def test_validity_and_scores_of_traces(name: str, full: bool) -> None:
    num_positions = 0
    for position in traces(f"triominos/oracle_{name}.jsonl.gz", full):
        figure = Figure()
        for tile, orientation, x, y in position["board"]:
            figure.place(parse_tile(tile), orientation, (x, y))
        for number, (tile, orientation, x, y, verdict, *scored, _) in enumerate(position["cand"]):
            rule = figure.broken_rule(parse_tile(tile), orientation, (x, y))
            assert (rule is None) == (verdict == 1)
            assert (rule is not None and "faces" in rule) == (verdict == -1)
            if verdict == 1:
                assert list(figure.score(parse_tile(tile), (x, y), OTHER_HEX_SCORES)) == scored
            if number == num_positions % len(position["cand"]):
                placements = [placed(entry) for entry in position["board"]]
                result = validate(placements, *placed([tile, orientation, x, y]), OTHER_HEX_SCORES)
                assert result == ((True, *scored[:2], bool(scored[2])) if verdict == 1 else (False, 0, 0, False))
        num_positions += 1
    assert num_positions > (5000 if full else 500)


@sampled_and_full
def test_reference_replays_recorded_rounds(full: bool) -> None:
    """The slow reference agrees with the recorded placements, scores and winners."""
    for record in traces("triominos/rounds.jsonl.gz")[:: 1 if full else 4]:  # all kinds of rounds in both cases
        hands = [[parse_tile(tile) for tile in hand] for hand in record["hands"]]
        pile = [parse_tile(tile) for tile in record["pile"]]
        if record["start"] == "highest":
            assert record["starter"] in reference.starters(hands)
        played = reference.Round(hands, pile, record["starter"], record["start"] == "highest")
        for player, what, count, scores in record["log"]:
            assert not played.reason
            assert played.player == player
            legal = played.placements()
            assert len(legal) == count
            if what == "draw":
                assert played.may_draw
                played.draw()
            elif what == "pass":
                assert played.may_pass
                played.pass_()
            else:
                tile, orientation, x, y = what
                triple = len(set(tile)) == 1
                assert (parse_tile(tile), orientation % 2 if triple else orientation, (x, y)) in legal
                played.place((parse_tile(tile), orientation, (x, y)))
            assert played.scores == scores
        assert (played.reason, played.winners) == (record["reason"], record["winners"])


def test_figures_of_the_rules() -> None:
    expected = {
        "hexagon": (62, 1, False),
        "double_hexagon": (112, 2, True),
        "triple_hexagon": (162, 3, True),
        "bridge_completed": (48, 0, True),
        "bridge_extended": (51, 0, True),
    }
    for figure in json.loads((SAMPLES / "triominos" / "doc_figures.json").read_text()):
        if figure["new"]:
            result = validate([placed(entry) for entry in figure["board"]], *placed(figure["new"]))
            assert result[0]
            assert result[1:] == expected.pop(figure["fig"]), figure["fig"]
    assert not expected


def test_tiles_are_numbered_by_their_highest_number() -> None:
    every = tiles(6)
    assert len(every) == 84
    assert every[:56] == tiles(5)
    assert [tile_id(tile) for tile in every] == list(range(84))
    assert (sum(map(sum, every[:56])), sum(map(sum, every))) == (420, 756)


def test_geometry_is_consistent() -> None:
    for cell in ((0, 0), (1, 0), (-3, 2), (4, -7)):
        for corner, neighbour in enumerate(neighbours(cell)):
            assert faces_up(neighbour) != faces_up(cell)
            shared = set(vertices(cell)) & set(vertices(neighbour))
            assert shared == set(vertices(cell)) - {vertices(cell)[corner]}
            assert cell in neighbours(neighbour)
        for vertex in vertices(cell):
            assert len(set(cells_around(vertex))) == 6
            assert all(vertex in vertices(other) for other in cells_around(vertex))


@pytest.mark.parametrize(
    ("tile", "orientation", "location", "words"),
    [
        ("345", "ABC", (1, 1), "valid: 62 points, 12 for the tile and 50 for a hexagon"),
        ("345", "ACB", (1, 1), "invalid: (1, 1) faces up, but ACB"),
        ("0-4-4", "ABC", (1, 1), "invalid: the tile 0-4-4"),
        ("345", "ABC", (2, 0), "invalid: (2, 0) is taken by the tile 1-4-4"),
        ("245", "ABC", (1, 1), "invalid: the left corner of (1, 1) must be 3"),
        ("345", "ABC", (9, 1), "invalid: no tile shares an edge with (9, 1)"),
        ("001", "CBA", (-1, 0), "invalid: the middle corner of (-1, 0) must be"),
    ],
)
def test_explanations(tile: str, orientation: str, location: tuple[int, int], words: str) -> None:
    assert explain(HEXAGON, tile, orientation, location).startswith(words)


def test_first_placements() -> None:
    assert validate([], "555", "ABC", (0, 0)) == (True, 15, 0, False)
    assert validate([], "012", "BAC", (1, 0)) == (True, 3, 0, False)
    assert explain([], "012", "ABC", (2, 0)).startswith("invalid: the first tile must")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], "521", "ABC", (0, 0)), "invalid tile '521'"),
        (([], "127", "ABC", (0, 0)), "invalid tile '127'"),
        (([], "1-25", "ABC", (0, 0)), "invalid tile '1-25'"),
        (([], "125", "abc", (0, 0)), "orientation must .*BAC, got 'abc'"),
        (([], "125", "ABC", (0.5, 0)), "location must"),
        (([], "125", "ABC", 3), "location must"),
        (([("125", "ABC", (0, 0)), ("125", "ACB", (1, 0))], "001", "ABC", (2, 0)), "placement 2 .*1-2-5"),
        (([("125", "ABC", (0, 0)), ("001", "ACB", (1, 0))], "001", "ABC", (2, 0)), "placement 2 .*corner"),
        (([("125", "ABC")], "001", "ABC", (2, 0)), "placement must"),
    ],
)
def test_invalid_input_is_rejected(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate(*arguments)
    with pytest.raises(ValueError, match=message):
        explain(*arguments)
