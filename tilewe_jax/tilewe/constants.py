"""The constants of `tilewe`, and its functions of tiles and pieces. A tile is a number, ``x + 20 * y``, a1 = 0.

Functions accept all integers of ``operator.index`` and raise ``TypeError`` for other types. They raise ``AttributeError`` for
an invalid tile, piece or rotation.
"""

from collections.abc import Sequence as _Sequence

from tilewe_jax.games.polyomino import pieces as _pieces
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS as _ORIENTATIONS
from tilewe_jax.utils.checks import index as _index

Tile = int
Piece = int
Rotation = int
Color = int

SIZE = 20
A01, B01, C01, D01, E01, F01, G01, H01, I01, J01, K01, L01, M01, N01, O01, P01, Q01, R01, S01, T01 = range(0, 20)
A02, B02, C02, D02, E02, F02, G02, H02, I02, J02, K02, L02, M02, N02, O02, P02, Q02, R02, S02, T02 = range(20, 40)
A03, B03, C03, D03, E03, F03, G03, H03, I03, J03, K03, L03, M03, N03, O03, P03, Q03, R03, S03, T03 = range(40, 60)
A04, B04, C04, D04, E04, F04, G04, H04, I04, J04, K04, L04, M04, N04, O04, P04, Q04, R04, S04, T04 = range(60, 80)
A05, B05, C05, D05, E05, F05, G05, H05, I05, J05, K05, L05, M05, N05, O05, P05, Q05, R05, S05, T05 = range(80, 100)
A06, B06, C06, D06, E06, F06, G06, H06, I06, J06, K06, L06, M06, N06, O06, P06, Q06, R06, S06, T06 = range(100, 120)
A07, B07, C07, D07, E07, F07, G07, H07, I07, J07, K07, L07, M07, N07, O07, P07, Q07, R07, S07, T07 = range(120, 140)
A08, B08, C08, D08, E08, F08, G08, H08, I08, J08, K08, L08, M08, N08, O08, P08, Q08, R08, S08, T08 = range(140, 160)
A09, B09, C09, D09, E09, F09, G09, H09, I09, J09, K09, L09, M09, N09, O09, P09, Q09, R09, S09, T09 = range(160, 180)
A10, B10, C10, D10, E10, F10, G10, H10, I10, J10, K10, L10, M10, N10, O10, P10, Q10, R10, S10, T10 = range(180, 200)
A11, B11, C11, D11, E11, F11, G11, H11, I11, J11, K11, L11, M11, N11, O11, P11, Q11, R11, S11, T11 = range(200, 220)
A12, B12, C12, D12, E12, F12, G12, H12, I12, J12, K12, L12, M12, N12, O12, P12, Q12, R12, S12, T12 = range(220, 240)
A13, B13, C13, D13, E13, F13, G13, H13, I13, J13, K13, L13, M13, N13, O13, P13, Q13, R13, S13, T13 = range(240, 260)
A14, B14, C14, D14, E14, F14, G14, H14, I14, J14, K14, L14, M14, N14, O14, P14, Q14, R14, S14, T14 = range(260, 280)
A15, B15, C15, D15, E15, F15, G15, H15, I15, J15, K15, L15, M15, N15, O15, P15, Q15, R15, S15, T15 = range(280, 300)
A16, B16, C16, D16, E16, F16, G16, H16, I16, J16, K16, L16, M16, N16, O16, P16, Q16, R16, S16, T16 = range(300, 320)
A17, B17, C17, D17, E17, F17, G17, H17, I17, J17, K17, L17, M17, N17, O17, P17, Q17, R17, S17, T17 = range(320, 340)
A18, B18, C18, D18, E18, F18, G18, H18, I18, J18, K18, L18, M18, N18, O18, P18, Q18, R18, S18, T18 = range(340, 360)
A19, B19, C19, D19, E19, F19, G19, H19, I19, J19, K19, L19, M19, N19, O19, P19, Q19, R19, S19, T19 = range(360, 380)
A20, B20, C20, D20, E20, F20, G20, H20, I20, J20, K20, L20, M20, N20, O20, P20, Q20, R20, S20, T20 = range(380, 400)
TILES = list(range(SIZE * SIZE))
TILE_COORDS = [(tile % SIZE, tile // SIZE) for tile in TILES]
TILE_NAMES = ["abcdefghijklmnopqrst"[x] + str(y + 1) for x, y in TILE_COORDS]

ROTATIONS = [NORTH, EAST, SOUTH, WEST, NORTH_F, EAST_F, SOUTH_F, WEST_F] = list(range(8))
ROTATION_COUNT = len(ROTATIONS)
ROTATION_NAMES = list(_pieces.ROTATION_NAMES)

COLORS = [BLUE, YELLOW, RED, GREEN] = list(range(4))
COLOR_COUNT = len(COLORS)
COLOR_NAMES = ["blue", "yellow", "red", "green"]
NO_COLOR = COLOR_COUNT

PIECES = [O1, I2, I3, L3, O4, I4, L4, Z4, T4, F5, I5, L5, N5, P5, T5, U5, V5, W5, X5, Y5, Z5] = list(range(21))
PIECE_COUNT = N_PIECES = len(PIECES)
PIECE_NAMES = list(_pieces.PIECE_NAMES)
NO_PIECE = PIECE_COUNT


_ORIENTATION = [
    [_pieces.ORIENTATION_OF_CELLS[_pieces.rotate(cells, rotation)] for rotation in ROTATIONS] for cells in _pieces.PIECE_CELLS
]

N_PIECE_TILES = list(_pieces.PIECE_SIZES)
N_PIECE_CONTACTS = [len(_ORIENTATIONS[rotations[NORTH]].contacts) for rotations in _ORIENTATION]
N_PIECE_CORNERS = [len(_ORIENTATIONS[rotations[NORTH]].corners) for rotations in _ORIENTATION]


def tile_in_bounds(tile: Tile) -> bool:
    """Return whether a number is a tile."""
    return 0 <= _index(tile) < len(TILES)


def tile_to_coords(tile: Tile) -> tuple[int, int]:
    """Return the (x, y) of a tile."""
    return TILE_COORDS[check_tile(tile, "tile must be in bounds")]


def coords_in_bounds(coords: _Sequence[int]) -> bool:
    """Return whether an (x, y) is on the board."""
    x, y = _pair(coords)
    return 0 <= x < SIZE and 0 <= y < SIZE


def coords_to_tile(coords: _Sequence[int]) -> Tile:
    """Return the tile at (x, y). Raises ``AttributeError`` beyond the board."""
    if not coords_in_bounds(coords):
        raise AttributeError("coords must be in bounds")
    x, y = _pair(coords)
    return x + SIZE * y


def n_piece_tiles(piece: Piece) -> int:
    """Return the number of tiles of a piece."""
    return N_PIECE_TILES[_check_piece(piece)]


def n_piece_contacts(piece: Piece) -> int:
    """Return the number of tiles of a piece that can lie on an open corner."""
    return N_PIECE_CONTACTS[_check_piece(piece)]


def n_piece_corners(piece: Piece) -> int:
    """Return the number of open corners of a piece on an empty board."""
    return N_PIECE_CORNERS[_check_piece(piece)]


def piece_tiles(piece: Piece, rotation: Rotation) -> list[Tile]:
    """Return the tiles of a piece at the bottom left of the board, ascending."""
    return [x + SIZE * y for x, y in _cells(piece, rotation)]


def piece_contacts(piece: Piece, rotation: Rotation) -> list[Tile]:
    """Return the ``piece_tiles`` that can lie on an open corner, ascending."""
    return [x + SIZE * y for x, y in _ORIENTATIONS[orientation(piece, rotation)].contacts]


def piece_tile_coords(piece: Piece, rotation: Rotation = NORTH, contact: Tile | None = None) -> list[tuple[int, int]]:
    """Return the sorted (x, y) of the tiles of a piece, relative to the bottom left of its bounding box, or to a contact."""
    x0, y0 = 0, 0
    if contact is not None:
        if contact not in piece_contacts(piece, rotation):
            raise AttributeError("contact must be one of the contacts of the piece in this rotation")
        x0, y0 = TILE_COORDS[contact]
    return sorted((x - x0, y - y0) for x, y in _cells(piece, rotation))


# Names of version 0.0.1.
tile_to_index = _index
in_bounds = coords_in_bounds


def out_of_bounds(coords: _Sequence[int]) -> bool:
    """Return whether an (x, y) is beyond the board."""
    return not coords_in_bounds(coords)


def check_tile(tile: Tile, message: str) -> int:
    """Return a tile as an ``int``. Raises ``AttributeError`` with the message for an invalid tile."""
    if not tile_in_bounds(tile):
        raise AttributeError(message)
    return _index(tile)


def orientation(piece: Piece, rotation: Rotation) -> int:
    """Return the index into ``ORIENTATIONS`` of a piece in any of the eight rotations."""
    piece = _check_piece(piece)
    if not 0 <= _index(rotation) < ROTATION_COUNT:
        raise AttributeError("rotation must be valid")
    return _ORIENTATION[piece][_index(rotation)]


def _cells(piece: Piece, rotation: Rotation) -> tuple[_pieces.Cell, ...]:
    return _ORIENTATIONS[orientation(piece, rotation)].cells


def _check_piece(piece: Piece) -> int:
    if not 0 <= _index(piece) < PIECE_COUNT:
        raise AttributeError("piece must be valid")
    return _index(piece)


def _pair(coords: _Sequence[int]) -> tuple[int, int]:
    try:
        x, y = coords
    except (TypeError, ValueError):
        raise TypeError(f"coords must be a sequence of two integers, (x, y), not {coords!r}") from None
    return _index(x), _index(y)
