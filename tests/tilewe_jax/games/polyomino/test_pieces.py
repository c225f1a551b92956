import json

from hypothesis import given
from hypothesis import strategies as st

from tests.support import SAMPLES
from tilewe_jax.games.polyomino import pieces
from tilewe_jax.games.polyomino.config import VARIANTS, Config
from tilewe_jax.games.polyomino.movegen import growth


def test_counts() -> None:
    """Numbers of pieces, orientations and placements."""
    assert len(pieces.PIECE_NAMES) == 21
    assert sum(pieces.PIECE_SIZES) == 89
    assert len(pieces.ORIENTATIONS) == 91
    assert sum(len(orientation.contacts) for orientation in pieces.ORIENTATIONS) == 309


def fitting(config: Config) -> int:
    side = range(config.size)
    return sum(config.fits(orientation, (x, y)) for orientation in pieces.ORIENTATIONS for x in side for y in side)


def test_numbers_of_placements() -> None:
    assert fitting(VARIANTS["tilewe"]()) == 30_433
    assert fitting(VARIANTS["duo"]()) == 13_729


def test_orientations_agree_with_the_trace() -> None:
    mine = iter(enumerate(pieces.ORIENTATIONS))
    first_triple = 0
    for piece in json.loads((SAMPLES / "tilewe" / "pieces.json").read_text())["pieces"]:
        assert pieces.PIECE_NAMES[piece["id"]] == piece["name"]
        for theirs in piece["orientations"]:
            _, orientation = next(mine)
            assert (orientation.piece, orientation.rotation) == (piece["id"], theirs["rotation_id"])
            assert [list(cell) for cell in orientation.cells] == theirs["cells"]
            assert [list(cell) for cell in orientation.contacts] == theirs["contacts"]
            assert first_triple == theirs["first_triple_id"]
            first_triple += len(orientation.contacts)
    assert next(mine, None) is None


@given(st.sampled_from(range(21)), st.sampled_from(range(8)))
def test_every_rotation_of_every_piece_is_an_orientation(piece: int, rotation: int) -> None:
    cells = pieces.rotate(pieces.PIECE_CELLS[piece], rotation)
    assert pieces.ORIENTATIONS[pieces.ORIENTATION_OF_CELLS[cells]].piece == piece


def test_shapes_grow_from_earlier_parts() -> None:
    grown = set()
    for shape, parts in growth(tuple(range(91))):
        assert len(shape) == 1 if parts is None else (parts[0] | parts[1] == shape and grown.issuperset(parts))
        grown.add(shape)
    assert grown.issuperset(frozenset(orientation.cells) for orientation in pieces.ORIENTATIONS)
    assert len(grown) == 118  # 91 orientations and 27 auxiliary shapes; each costs time.
