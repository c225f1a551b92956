"""Positions of Triominos as facts: the placed tiles, the trays, the pile and the points. Plain Python.

The facts are ``placed``, the tiles on the table as in moves, ``["125-CAB@0,0", ...]``, one of them on 0,0; ``trays``, the
tiles of each player, ``[["001", "112"], ...]``; and ``current_player``, from 0. Optional are ``pile``, all other tiles in
drawing order, by default in an order that ``seed`` determines; ``points`` by player, by default 0; ``draws``, the number of
tiles drawn in this turn; ``passes``, the number of passes since the last placement; ``starter``, the first player of the round,
by default ``current_player``; ``round``, the number of previous rounds; and ``seed``, two words of 32 bits for the deals of
later rounds.
"""

import re
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from tilewe_jax.games.triominos.config import MAX_DRAWS, Config
from tilewe_jax.games.triominos.figure import Figure, name_of
from tilewe_jax.games.triominos.host import Placed, Position, shuffled
from tilewe_jax.games.triominos.tiles import ORIENTATIONS, Tile, corners, digits, neighbours, parse_tile, tile_id
from tilewe_jax.host import PositionFormat, fields_of, integer_of

_FIELDS = ("placed", "trays", "current_player")
_OPTIONAL = ("pile", "points", "draws", "passes", "starter", "round", "seed")
_PLACED = re.compile(r"([0-9-]{3,5})-([ABC]{3})@(-?[0-9]{1,3}),(-?[0-9]{1,3})")
MAX_POINTS = 1_000_000


def position_format(config: Config) -> PositionFormat:
    """Return the facts of positions of a game."""
    return PositionFormat(partial(read, config), write, _draw)


def read(config: Config, facts: Any) -> Position:
    """Return the position of facts.

    Raises ``ValueError`` for a tile in two places, tiles that do not match or are not connected, a pile that is larger than at
    the start of a round, and for other wrong facts.
    """
    facts = fields_of(facts, _FIELDS, _OPTIONAL)
    placed = _placed(config, facts["placed"])
    trays = _tiles_by_player(config, facts["trays"])
    seed = facts.get("seed", [0, 0])
    if not isinstance(seed, list) or len(seed) != 2 or not all(type(word) is int and 0 <= word < 1 << 32 for word in seed):
        raise ValueError(f"seed must be two integers from 0 to 4294967295, got {str(seed)[:80]}")
    used = {tile for tile, *_ in placed} | {tile for tray in trays for tile in tray}
    rest = [tile for tile in shuffled(config, (seed[0], seed[1])) if tile not in used]
    pile = _tiles(config, "pile", facts.get("pile", list(map(digits, rest))))
    _check_places(config, [tile for tile, *_ in placed], trays, pile)
    points = facts.get("points", [0] * config.players)
    is_list = isinstance(points, list) and len(points) == config.players
    if not is_list or not all(type(number) is int and abs(number) <= MAX_POINTS for number in points):
        raise ValueError(f"points must be {config.players} integers, got {str(points)[:80]}")
    player = integer_of(facts, "current_player", 0, config.players - 1)
    position = Position(
        config=config,
        placements=placed,
        trays=trays,
        pile=pile,
        points=tuple(points),
        current_player=player,
        draws=integer_of(facts, "draws", 0, MAX_DRAWS, 0),
        passes=integer_of(facts, "passes", 0, config.players, 0),
        starter=integer_of(facts, "starter", 0, config.players - 1, player),
        round=integer_of(facts, "round", 0, config.rounds - 1, 0),
        seed=(seed[0], seed[1]),
    )
    goes_on = max(points) < config.target and position.round < config.rounds - 1
    if position.is_terminal and goes_on:
        raise ValueError("the round is over, because a tray is empty or all players have passed, but the game goes on")
    return position


def write(position: Position) -> dict[str, Any]:
    """Return the facts of a position, including hidden information."""
    return {
        "placed": [
            f"{digits(tile)}-{ORIENTATIONS[orientation]}@{cell[0]},{cell[1]}" for tile, orientation, cell in position.placements
        ],
        "trays": [list(map(digits, tray)) for tray in position.trays],
        "current_player": position.current_player,
        "pile": list(map(digits, position.pile)),
        "points": list(position.points),
        "draws": position.draws,
        "passes": position.passes,
        "starter": position.starter,
        "round": position.round,
        "seed": list(position.seed),
    }


def _check_places(config: Config, table: Sequence[Tile], trays: Sequence[Sequence[Tile]], pile: Sequence[Tile]) -> None:
    """Raise ``ValueError`` unless each tile is in one place, and the pile is not larger than at the start of a round."""
    places = {
        "on the table": table,
        **{f"on the tray of player {player}": tray for player, tray in enumerate(trays, 1)},
        "in the pile": pile,
    }
    place_of: dict[Tile, str] = {}
    for place, tiles in places.items():
        for tile in tiles:
            if (other := place_of.setdefault(tile, place)) != place or tiles.count(tile) > 1:
                where = f"twice {place}" if other == place else f"{other} and {place}"
                raise ValueError(f"the tile {name_of(tile)} is {where}")
    if missing := [name_of(tile) for tile in config.tile_list if tile not in place_of]:
        raise ValueError(f"the pile must contain all other tiles; missing are {', '.join(missing[:10])}")
    most = config.tiles - config.players * config.dealt
    if len(pile) > most:
        raise ValueError(f"the pile must have at most {most} tiles, as at the start of a round, got {len(pile)}")


def _draw(facts: Any, chance: Random) -> Any:
    """Draw a seed, which determines the order of the pile, if the facts lack one."""
    if not isinstance(facts, dict):
        return facts
    return {"seed": [chance.getrandbits(32), chance.getrandbits(32)], **facts}


def _placed(config: Config, names: Any) -> tuple[Placed, ...]:
    """Return the placed tiles by ascending id. Raises ``ValueError`` unless they match and are connected with (0, 0)."""
    if not isinstance(names, list):
        raise ValueError(f'placed must be a list of tiles, like "125-CAB@0,0", got {str(names)[:80]}')
    figure, placed = Figure(), []
    for name in names:
        match = _PLACED.fullmatch(name) if isinstance(name, str) else None
        if not match or match[2] not in ORIENTATIONS:
            raise ValueError(f"a placed tile must be like 125-CAB@2,-1, got {str(name)[:40]!r}")
        tile, cell = _tile(config, match[1]), (int(match[3]), int(match[4]))
        numbers = corners(tile, ORIENTATIONS.index(match[2]))
        # A tile with equal numbers has equivalent orientations; the first one is used, as in play.
        parity = ORIENTATIONS.index(match[2]) % 2
        orientation = next(i for i in range(parity, len(ORIENTATIONS), 2) if corners(tile, i) == numbers)
        if rule := figure.contradiction(tile, orientation, cell):
            raise ValueError(f"the tile {name} does not fit: {rule}")
        figure.place(tile, orientation, cell)
        placed.append((tile, orientation, cell))
    _check_connected(figure)
    return tuple(sorted(placed, key=lambda each: tile_id(each[0])))


def _check_connected(figure: Figure) -> None:
    """Raise ``ValueError`` unless all tiles are connected by edges with a tile on (0, 0)."""
    reached, waiting = set(), [(0, 0)] if (0, 0) in figure.tiles else []
    while waiting:
        reached.add(cell := waiting.pop())
        waiting += [other for other in neighbours(cell) if other in figure.tiles and other not in reached]
    if apart := [cell for cell in figure.tiles if cell not in reached]:
        raise ValueError(f"the tile on {apart[0]} is not connected by edges with a tile on (0, 0)")


def _tiles_by_player(config: Config, trays: Any) -> tuple[tuple[Tile, ...], ...]:
    if not isinstance(trays, list) or len(trays) != config.players:
        raise ValueError(f"trays must be {config.players} lists of tiles, got {str(trays)[:80]}")
    return tuple(tuple(sorted(_tiles(config, f"trays[{player}]", tray), key=tile_id)) for player, tray in enumerate(trays))


def _tiles(config: Config, field: str, names: Any) -> tuple[Tile, ...]:
    if not isinstance(names, list):
        raise ValueError(f'{field} must be a list of tiles, like ["001", "125"], got {str(names)[:80]}')
    return tuple(_tile(config, name) for name in names)


def _tile(config: Config, name: Any) -> Tile:
    if not isinstance(name, str):
        raise ValueError(f"a tile must be a text like 125, got {str(name)[:40]}")
    tile = parse_tile(name)
    if tile not in config.tile_list:
        raise ValueError(f"the tile {name_of(tile)} is not among the {config.tiles} of this game")
    return tile
