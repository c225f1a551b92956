"""Triominos in plain Python: positions on the host, which name the rule that an illegal action breaks. Needs no JAX.

The rules are written a second time here, over dictionaries of cells and vertices (``figure``), with the deal of the next round.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from random import Random
from typing import Any

from tilewe_jax.draw.pictures import draw, register
from tilewe_jax.draw.shapes import Options
from tilewe_jax.games.triominos.config import (
    DRAW_SCORE,
    FIRST_TRIPLE_SCORE,
    FIRST_ZEROS_SCORE,
    MAX_DRAWS,
    OUT_SCORE,
    PASS_SCORE,
    VERSION,
    Config,
)
from tilewe_jax.games.triominos.drawing import DRAWING
from tilewe_jax.games.triominos.figure import Figure, Placement, name_of, read_placement
from tilewe_jax.games.triominos.tiles import (
    ORIENTATIONS,
    Cell,
    Tile,
    corners,
    digits,
    neighbours,
    outline,
    parse_tile,
    rank,
    tile_id,
    vertices,
)
from tilewe_jax.host import HostGame, IllegalActionError, Rounds, Table, common_view
from tilewe_jax.utils.checks import action_id, out_of_range

register("triominos", DRAWING)

DRAW, PASS = "draw", "pass"
_UINT32 = 0xFFFFFFFF


@dataclass(frozen=True)
class Position:
    """A position of Triominos with all that is hidden in it; immutable, a ``tilewe_jax.host.HostPosition``.

    An action is an id, as the game on the device numbers it, or what it stands for: a placement ``("125", "CAB", (2, -1))``,
    ``"draw"`` or ``"pass"``.

    >>> position = Position.start(Config(players=2, tiles=10, tray=2), seed=(1, 2))
    >>> position.current_player, position.trays[1]
    (1, ((1, 1, 2), (1, 2, 2)))
    >>> after = position.after(position.action(("112", "ABC", (0, 0))))
    >>> after.scores()
    (0, 4)
    >>> [after.describe(action) for action in after.legal_actions()]
    [('111', 'ACB', (-1, 0)), 'draw']
    >>> after.explain(after.config.pass_)
    'nobody passes who can draw: 0 of 3 tiles were drawn in this turn, and the pile has 6'
    """

    config: Config
    placements: tuple[tuple[Tile, int, Cell], ...]
    """The placed tiles, by ascending id, each with its orientation (index of ``ORIENTATIONS``) and cell."""
    trays: tuple[tuple[Tile, ...], ...]
    """The tiles of each player, by ascending id."""
    pile: tuple[Tile, ...]
    """The tiles of the pile, in the order in which they will be drawn."""
    points: tuple[int, ...]
    """Points of all rounds so far."""
    current_player: int
    """The player to move, from 0."""
    draws: int
    """Tiles drawn in this turn."""
    passes: int
    """Passes since a tile was placed."""
    round: int
    """Number of rounds before this one."""
    seed: tuple[int, int]
    """Two words of 32 bits, which decide the deals of later rounds."""

    @classmethod
    def start(cls, config: Config, seed: tuple[int, int]) -> "Position":
        """The start of a new game, dealt as ``rules.init`` deals it by these two words of 32 bits."""
        return _deal(config, (0,) * config.players, 0, seed, range(config.players))

    @classmethod
    def from_deal(cls, config: Config, deal: Any) -> "Position":
        """The start of the game of a deal, see ``TriominosGame.deal``. Raises ``ValueError`` for what is no deal."""
        order, starter, seed = read_deal(config, deal)
        return _start_round(config, (0,) * config.players, 0, seed, order, starter)

    @cached_property
    def figure(self) -> Figure:
        """The placed tiles."""
        figure = Figure()
        for placement in self.placements:
            figure.place(*placement)
        return figure

    # ---- A position by the ids of actions: ``HostPosition``

    @property
    def is_terminal(self) -> bool:
        """Whether the round, and with it the game, is over: where the game goes on, the next round is dealt at once."""
        return not all(self.trays) or self.passes == self.config.players

    def scores(self) -> tuple[int, ...]:
        """The points, by seat."""
        return self.points

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty at the end."""
        config = self.config
        if self.is_terminal:
            return []
        first = config.draw if self.placements else config.first
        legal = [action for action in range(first, config.num_actions) if self.explain(action) is None]
        beside = {neighbour for *_, cell in self.placements for neighbour in neighbours(cell)}
        for cell in beside - set(self.figure.tiles):
            for third in range(config.numbers):
                placement = self._complete(cell, third)
                if not isinstance(placement, str) and self._rule_against_placing(*placement) is None:
                    legal.append(config.wrapped(cell) * config.numbers + third)
        return sorted(legal)

    def explain(self, action: int) -> str | None:
        """The rule that an action breaks, in words; ``None`` where the action is legal."""
        action = action_id(action)
        if self.is_terminal:
            return "the game is over"
        if not 0 <= action < self.config.num_actions:
            return out_of_range(self.config.num_actions)
        if action >= self.config.draw:
            return self._rule_against_word(DRAW if action == self.config.draw else PASS)
        placement = self._decode(action)
        return placement if isinstance(placement, str) else self._rule_against_placing(*placement)

    def after(self, action: int) -> "Position":
        """The position after an action; where that ends a round but not the game, the start of the next round.

        Raises ``IllegalActionError``, which names the rule that the action breaks.
        """
        action = action_id(action)
        if rule := self.explain(action):
            raise IllegalActionError(f"action {action} is illegal: {rule}")
        if action == self.config.draw:
            tray = self.trays[self.current_player] + self.pile[:1]
            return replace(self._gain(DRAW_SCORE), trays=self._trays_with(tray), pile=self.pile[1:], draws=self.draws + 1)
        if action == self.config.pass_:
            return replace(self._gain(PASS_SCORE), passes=self.passes + 1)._end_turn()
        placed = self._decode(action)
        assert not isinstance(placed, str)
        placements = sorted([*self.placements, placed], key=lambda placement: tile_id(placement[0]))
        tray = tuple(tile for tile in self.trays[self.current_player] if tile != placed[0])
        after = replace(
            self._gain(self._score(placed[0], placed[2])[0]),
            placements=tuple(placements),
            trays=self._trays_with(tray),
            passes=0,
        )
        return after._end_turn()

    def action_name(self, action: int) -> str:
        """The name of a legal action: ``125-CAB@2,-1``, ``draw`` or ``pass``. Raises ``IllegalActionError``."""
        what = self.describe(action)
        return what if isinstance(what, str) else f"{what[0]}-{what[1]}@{what[2][0]},{what[2][1]}"

    def action_of_name(self, name: str) -> int:
        """The inverse of ``action_name``. Raises as ``action``, and ``ValueError`` for what is no name."""
        tile, dash, rest = name.partition("-")
        orientation, at, location = rest.partition("@")
        if not dash and not at:
            return self.action(name)
        try:
            column, row = (int(number) for number in location.split(","))
        except ValueError:
            raise ValueError(f"{name!r} is no action; actions look like 125-CAB@2,-1, draw and pass") from None
        return self.action((tile, orientation, (column, row)))

    def text(self, color: bool = False, *, last_action: int | None = None, seat: int | None = None, open: bool = True) -> str:
        """The placed tiles, with a dot in each; points, trays and the size of the pile.

        Args:
          color: whether to use ANSI escapes, which make the numbers bold.
          last_action: the action that led here; the tile that it has placed has a star in place of the dot.
          seat: where not ``open``, the player whose tray is shown; ``None`` for a spectator.
          open: whether all trays are shown, as they always are at the end; of others the number of tiles stands there.
        """
        cells = [cell for *_, cell in self.placements]
        lines = _draw_tiles(cells, self.figure.numbers, color, self._last_cell(last_action))
        for player, (points, tray) in enumerate(zip(self.points, self.trays, strict=True)):
            is_mover = player == self.current_player and not self.is_terminal
            turn = (f" to move, {self.draws} drawn" if self.draws else " to move") if is_mover else ""
            is_shown = open or self.is_terminal or player == seat
            held = " ".join(map(digits, tray)) if is_shown else f"{len(tray)} tiles"
            lines.append(f"player {player + 1}: {points} points, {held or 'no tiles'}{turn}")
        end = ", everybody has passed" if all(self.trays) else ", a tray is empty"
        return "\n".join([*lines, f"pile: {len(self.pile)} tiles{end if self.is_terminal else ''}"])

    def svg(self, *, last_action: int | None = None) -> str:
        """The table and all trays as a picture; the tile that ``last_action`` has placed is marked."""
        cell = self._last_cell(last_action)
        return draw(self.view(open=True), Options(last=None if cell is None else _cell_view(cell)))

    def _repr_svg_(self) -> str:
        return self.svg()

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        """The position as JSON values, see ``tilewe_jax.draw``: of the trays that ``seat`` may not see, the sizes alone."""
        view = common_view(self, "triominos", seat)
        is_open = open or view["terminal"]
        free = {neighbour for *_, cell in self.placements for neighbour in neighbours(cell)} - set(self.figure.tiles)
        return view | {
            "tiles": [_placement_view(*placement) for placement in self.placements],
            "trays": [
                list(map(digits, tray)) if is_open or player == seat else len(tray) for player, tray in enumerate(self.trays)
            ],
            "pile": len(self.pile),
            "draws": self.draws,
            "passes": self.passes,
            "round": self.round,
            "target": self.config.target if self.config.game == "target" else None,
            "frontier": [_cell_view(cell) for cell in sorted(free if self.placements else [(0, 0)])],
        }

    def action_view(self, action: int) -> dict[str, Any]:
        """A legal action with its points, without those that a round's end brings: these depend on the trays of all.

        Raises ``IllegalActionError``.
        """
        action = action_id(action)
        view: dict[str, Any] = {"id": action, "name": self.action_name(action)}
        if action >= self.config.draw:
            is_draw = action == self.config.draw
            return view | {"kind": DRAW if is_draw else PASS, "gain": DRAW_SCORE if is_draw else PASS_SCORE}
        placement = self._decode(action)
        assert not isinstance(placement, str)
        tile, _, cell = placement
        gain, reason = self._score(tile, cell)
        return view | {"kind": "place", **_placement_view(*placement), "gain": gain, "reason": reason}

    def __str__(self) -> str:
        return self.text()

    # ---- Actions by placements and words

    def action(self, what: Placement | str) -> int:
        """The id of a legal action, given as a placement, ``"draw"`` or ``"pass"``.

        All orientations in which a triple looks alike are accepted. The first tile of a round is placed on (0, 0) as ABC.
        Raises ``IllegalActionError``, which names the rule that the action breaks, or ``ValueError`` for what is no action.
        """
        if isinstance(what, str):
            if what not in (DRAW, PASS):
                raise ValueError(f"{what!r} is no action; actions are {DRAW}, {PASS}, or a tile, an orientation and a location")
            if rule := "the game is over" if self.is_terminal else self._rule_against_word(what):
                raise IllegalActionError(rule)
            return self.config.draw if what == DRAW else self.config.pass_
        tile, orientation, cell = read_placement(what)
        if rule := "the game is over" if self.is_terminal else self._rule_against_placing(tile, orientation, cell):
            raise IllegalActionError(rule)
        if not self.placements:
            return self.config.first + tile_id(tile)
        third = corners(tile, orientation)[self._free_corner(cell)]
        return self.config.wrapped(cell) * self.config.numbers + third

    def describe(self, action: int) -> Placement | str:
        """A legal action as a placement, ``"draw"`` or ``"pass"``: the inverse of ``action``. Raises ``IllegalActionError``."""
        action = action_id(action)
        if rule := self.explain(action):
            raise IllegalActionError(f"action {action} is illegal: {rule}")
        if action >= self.config.draw:
            return DRAW if action == self.config.draw else PASS
        placed = self._decode(action)
        assert not isinstance(placed, str)
        tile, orientation, cell = placed
        return digits(tile), ORIENTATIONS[orientation], cell

    def openers(self) -> list[Tile]:
        """The tiles with which the player to move may begin a round with ``start="highest"``."""
        tray = self.trays[self.current_player]
        highest = max(rank(tile) for tile in tray)
        return [tile for tile in tray if rank(tile) == highest or tile == (0, 0, 0)]

    # ---- Rules

    def _rule_against_word(self, word: str) -> str | None:
        """The rule against drawing or passing in a game that is not over."""
        if not self.placements and self.config.start == "highest":
            return f"the round begins with the highest tile, {self._opener_names()}, and nobody draws or passes before"
        may_draw = bool(self.pile) and self.draws < MAX_DRAWS
        if word == DRAW and not may_draw:
            reason = f"{MAX_DRAWS} tiles were drawn in this turn" if self.draws == MAX_DRAWS else "the pile is empty"
            return f"{reason}, so no other may be drawn"
        if word == PASS and may_draw:
            return (
                f"nobody passes who can draw: {self.draws} of {MAX_DRAWS} tiles were drawn in this turn, and the pile has"
                f" {len(self.pile)}"
            )
        return None

    def _rule_against_placing(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The rule against a placement in a game that is not over."""
        if tile not in self.config.tile_list:
            return f"the tile {name_of(tile)} is not among the {self.config.tiles} of this game"
        if rule := self.figure.broken_rule(tile, orientation, cell):
            return rule
        if tile not in self.trays[self.current_player]:
            return f"the tile {name_of(tile)} is not on the tray of player {self.current_player + 1}"
        return None if self.placements else self._rule_against_opening(tile, orientation, cell)

    def _rule_against_opening(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The rule against a valid placement as the first one of a round."""
        if cell != (0, 0) or corners(tile, orientation) != corners(tile, 0):
            return f"the first tile is placed on (0, 0) as {ORIENTATIONS[0]} here; the other ways give the same table, rotated"
        if self.config.start == "highest" and tile not in self.openers():
            return f"the round begins with the highest tile, {self._opener_names()}"
        return None

    def _score(self, tile: Tile, cell: Cell) -> tuple[int, str]:
        """The points of a legal placement, and in words what they have beyond the numbers on the tile."""
        if self.placements or self.config.start != "highest":
            points, hexagons, bridge = self.figure.score(tile, cell, self.config.hex_scores)
            reason = ("hexagon", "two hexagons", "three hexagons")[hexagons - 1] if hexagons else "bridge" if bridge else ""
        else:
            is_zeros, is_triple = tile == (0, 0, 0), len(set(tile)) == 1
            points = sum(tile) + (FIRST_ZEROS_SCORE if is_zeros else FIRST_TRIPLE_SCORE if is_triple else 0)
            reason = "zeros first" if is_zeros else "triple first" if is_triple else ""
        return points, f"{reason} +{points - sum(tile)}" if reason else ""

    def _end_turn(self) -> "Position":
        """The next player to move; at the end of a round, the round scored, and the next one dealt where the game goes on."""
        after = replace(self, current_player=(self.current_player + 1) % self.config.players, draws=0)
        if not self.is_terminal:
            return after
        values = [sum(map(sum, tray)) for tray in self.trays]
        if all(self.trays):
            winners = [player for player, value in enumerate(values) if value == min(values)]
            bonus = sum(values) - len(values) * min(values)
        else:
            winners = [player for player, tray in enumerate(self.trays) if not tray]
            bonus = OUT_SCORE + sum(values)
        points = tuple(score + bonus * (player in winners) for player, score in enumerate(self.points))
        if max(points) >= self.config.target or self.round + 1 >= self.config.rounds:
            return replace(after, points=points)
        may_start = winners if self.config.start == "winner" else range(self.config.players)
        return _deal(self.config, points, self.round + 1, self.seed, may_start)

    def _gain(self, points: int) -> "Position":
        """The position with more points for the player to move."""
        gained = (score + points * (player == self.current_player) for player, score in enumerate(self.points))
        return replace(self, points=tuple(gained))

    def _trays_with(self, tray: Sequence[Tile]) -> tuple[tuple[Tile, ...], ...]:
        """The trays, with this one for the player to move."""
        own = tuple(sorted(tray, key=tile_id))
        return (*self.trays[: self.current_player], own, *self.trays[self.current_player + 1 :])

    def _opener_names(self) -> str:
        return " or ".join(map(name_of, self.openers()))

    # ---- Ids

    def _last_cell(self, action: int | None) -> Cell | None:
        """The cell of the tile that the action which led here has placed; ``None`` where it has placed none in this round."""
        if action is None or action >= self.config.draw or not self.placements:
            return None
        if action >= self.config.first:
            return 0, 0
        taken = [self.config.wrapped(cell) for *_, cell in self.placements]
        return unwrap(self.config, action // self.config.numbers, taken)

    def _decode(self, action: int) -> tuple[Tile, int, Cell] | str:
        """The placement of an action below ``Config.draw``, legal or not; or in words why it stands for none."""
        if action >= self.config.first:
            return self.config.tile_list[action - self.config.first], 0, (0, 0)
        if not self.placements:
            return f"a round begins with a tile on (0, 0): actions {self.config.first} to {self.config.draw - 1}"
        taken = [self.config.wrapped(cell) for *_, cell in self.placements]
        return self._complete(unwrap(self.config, action // self.config.numbers, taken), action % self.config.numbers)

    def _complete(self, cell: Cell, third: int) -> tuple[Tile, int, Cell] | str:
        """The placement on a cell whose free corner gets the number ``third``; or in words why there is none."""
        if cell in self.figure.tiles:
            return f"{cell} is taken by the tile {name_of(self.figure.tiles[cell])}"
        if rule := self.figure.detachment(cell):
            return rule
        numbers = [self.figure.numbers.get(vertex, third) for vertex in vertices(cell)]
        numbers[self._free_corner(cell)] = third
        if rule := self.figure.mismatch(cell, numbers):
            return rule
        a, b, c = sorted(numbers)
        for orientation in range(sum(cell) % 2, len(ORIENTATIONS), 2):
            if list(corners((a, b, c), orientation)) == numbers:
                return (a, b, c), orientation, cell
        return f"no tile has the numbers {', '.join(map(str, numbers))} at the left, middle and right corner of {cell}"

    def _free_corner(self, cell: Cell) -> int:
        """The corner whose number an action gives, see ``table.free_corner``."""
        right, _, left = (neighbour in self.figure.tiles for neighbour in neighbours(cell))
        return 2 if left else 0 if right else 1


def _deal(config: Config, points: tuple[int, ...], number: int, seed: tuple[int, int], may_start: Collection[int]) -> Position:
    """The start of round ``number``, exactly as ``rules.deal`` deals it."""
    round_seed = _hash32(_hash32(seed[0], number), seed[1])
    words = [_hash32(round_seed, i) for i in range(config.tiles + config.players)]
    order = sorted(range(config.tiles), key=lambda tile: (words[tile], tile))
    if config.start == "highest":
        may_start = _holders_of_highest(config, order)
    starter = max(may_start, key=lambda player: words[config.tiles + player] >> 1)
    return _start_round(config, points, number, seed, order, starter)


def read_deal(config: Config, deal: Any) -> tuple[list[int], int, tuple[int, int]]:
    """The ids of the tiles in the order in which a deal gives them out, the starting player, and the seed of later deals.

    Raises ``ValueError`` for what is no deal of this game.
    """
    error = ValueError(
        f"a deal is tiles, all {config.tiles} in the order in which they are dealt and drawn; starter, a player from"
        " 0; and seed, two words of 32 bits"
    )
    if not isinstance(deal, dict) or not all(isinstance(deal.get(name), list) for name in ("tiles", "seed")):
        raise error
    tiles, starter, seed = deal["tiles"], deal.get("starter"), deal["seed"]
    words = len(seed) == 2 and all(type(word) is int and 0 <= word <= _UINT32 for word in seed)
    if type(starter) is not int or not 0 <= starter < config.players or not words:
        raise error
    order = [tile_id(parse_tile(str(tile))) for tile in tiles]
    if sorted(order) != list(range(config.tiles)):
        raise error
    if config.start == "highest" and starter not in _holders_of_highest(config, order):
        raise ValueError(f"player {starter + 1} does not hold the highest tile of this deal, and so does not start")
    return order, starter, (seed[0], seed[1])


def _trays(config: Config, order: Sequence[int]) -> tuple[tuple[Tile, ...], ...]:
    """The tiles of each player, by ascending id, where tiles are dealt in this order."""
    dealt = [order[player * config.dealt : (player + 1) * config.dealt] for player in range(config.players)]
    return tuple(tuple(config.tile_list[tile] for tile in sorted(tray)) for tray in dealt)


def _holders_of_highest(config: Config, order: Sequence[int]) -> list[int]:
    """The players who may begin a round with ``start="highest"``, where tiles are dealt in this order."""
    ranks = [sorted(map(rank, tray), reverse=True) for tray in _trays(config, order)]
    return [player for player in range(config.players) if ranks[player] == max(ranks)]


def _start_round(
    config: Config, points: tuple[int, ...], number: int, seed: tuple[int, int], order: Sequence[int], starter: int
) -> Position:
    """The start of round ``number`` with the tiles in this order."""
    return Position(
        config=config,
        placements=(),
        trays=_trays(config, order),
        pile=tuple(config.tile_list[tile] for tile in order[config.players * config.dealt :]),
        points=points,
        current_player=starter,
        draws=0,
        passes=0,
        round=number,
        seed=seed,
    )


def _hash32(bits: int, number: int) -> int:
    """``tilewe_jax.bits.hash32`` of Python integers below 2**32."""
    x = bits ^ (number * 0x9E3779B9 & _UINT32)
    x = (x ^ x >> 16) * 0x7FEB352D & _UINT32
    x = (x ^ x >> 15) * 0x846CA68B & _UINT32
    return x ^ x >> 16


def unwrap(config: Config, number: int, taken: Collection[int]) -> Cell:
    """The cell of the plane of a cell of the torus, by its number.

    Args:
      config: the settings.
      number: of a cell that is taken or beside one; for others the result is arbitrary, though a cell with that number.
      taken: the numbers of all taken cells.
    """
    # On the torus the figure has no gap and does not close, and it has cell (0, 0): follow it from there to the left and up.
    coordinates = []
    for length, line_of in (
        (config.columns, lambda cell: cell % config.columns),
        (config.rows, lambda cell: cell // config.columns),
    ):
        lines = {line_of(cell) for cell in taken}
        begin = -1
        while begin % length in lines:
            begin -= 1
        coordinates.append(begin + (line_of(number) - begin) % length)
    return coordinates[0], coordinates[1]


def _draw_tiles(cells: Sequence[Cell], numbers: dict[Cell, int], color: bool, last: Cell | None) -> list[str]:
    """Lines of text with a triangle for each cell: half a tile's width is two characters, a row of cells two lines."""
    if not cells:
        return ["(no tile is placed)"]
    left, top = min(x for x, _ in numbers), min(y for _, y in numbers)
    canvas: dict[tuple[int, int], str] = {}
    for cell in cells:
        line = 2 * (cell[1] - top) + 1
        (x, base), (_, apex), _ = vertices(cell)
        at = 2 * (x - left)
        up = base > apex
        canvas.update(
            {
                (line, at + 1): "/" if up else "\\",
                (line, at + 3): "\\" if up else "/",
                (line, at + 2): "*" if cell == last else ".",
            }
        )
        canvas.update({(2 * (base - top), at + i): "-" for i in range(1, 4)})
    for (x, y), number in numbers.items():
        canvas[2 * (y - top), 2 * (x - left)] = f"\x1b[1m{number}\x1b[0m" if color else str(number)
    height, width = max(line for line, _ in canvas) + 1, max(at for _, at in canvas) + 1
    return ["".join(canvas.get((line, at), " ") for at in range(width)).rstrip() for line in range(height)]


def _cell_view(cell: Cell) -> dict[str, Any]:
    """A cell, and its left, middle and right corner in the plane, as JSON values."""
    return {"cell": list(cell), "points": [[round(x, 4), round(y, 4)] for x, y in outline(cell)]}


def _placement_view(tile: Tile, orientation: int, cell: Cell) -> dict[str, Any]:
    """A tile in its place as JSON values, the numbers in the order of the corners."""
    return {"tile": digits(tile), **_cell_view(cell), "numbers": list(corners(tile, orientation))}


def host_game(config: Config) -> HostGame:
    """Triominos in plain Python."""
    return HostGame(
        id="triominos",
        version=VERSION,
        num_players=config.players,
        num_actions=config.num_actions,
        max_steps=config.max_steps,
        init_from_deal=partial(Position.from_deal, config),
        has_hidden_information=True,
        new_deal=partial(_new_deal, config),
        rounds=Rounds(first_round, table_of_rounds),
    )


def _new_deal(config: Config, chance: Random) -> dict[str, Any]:
    order = chance.sample(range(config.tiles), config.tiles)
    may_start = _holders_of_highest(config, order) if config.start == "highest" else range(config.players)
    return {
        "tiles": [digits(config.tile_list[tile]) for tile in order],
        "starter": chance.choice(may_start),
        "seed": [chance.getrandbits(32), chance.getrandbits(32)],
    }


# ---- The table of rounds


def first_round(position: Position) -> Table:
    """The table at the start of a game."""
    return (_empty_round(position),)


_COLUMNS = ("tiles", "bonus", "hexagons", "bridges", "draws", "passes", "end")
"""Where points come from: numbers of placed tiles, opening bonuses, hexagons, bridges, draws, passes, the end of a round."""


def _empty_round(position: Position) -> dict[str, Any]:
    points = [dict.fromkeys((*_COLUMNS, "total"), 0) for _ in position.trays]
    return {"round": position.round, "starter": position.current_player, "points": points, "reason": None, "winners": None}


def table_of_rounds(rounds: Table, before: Position, action: int, after: Position) -> Table:
    """The table after an action: for each round and seat where its points came from, and how the round has ended."""
    mover = before.current_player
    gains = _gains(before, action)
    points = [dict(row) for row in rounds[-1]["points"]]
    for column, gain in gains.items():
        points[mover][column] += gain
        points[mover]["total"] += gain
    current = {**rounds[-1], "points": points}
    has_ended = after.is_terminal or after.round != before.round
    if not has_ended:
        return (*rounds[:-1], current)
    for seat, row in enumerate(points):
        end = after.points[seat] - before.points[seat] - (sum(gains.values()) if seat == mover else 0)
        row["end"] += end
        row["total"] += end
    is_out = action < before.config.draw and len(before.trays[mover]) == 1
    current["reason"] = "out" if is_out else "stuck"
    current["winners"] = [seat for seat, row in enumerate(points) if row["end"]] or ([mover] if is_out else [])
    return (*rounds[:-1], current) if after.is_terminal else (*rounds[:-1], current, _empty_round(after))


def _gains(position: Position, action: int) -> dict[str, int]:
    """The points that an action brings at once, by where they come from."""
    gain = int(position.action_view(action)["gain"])
    what = position.describe(action)
    if isinstance(what, str):
        return {"draws" if what == "draw" else "passes": gain}
    tile = tuple(map(int, what[0]))
    numbers = sum(tile)
    column = "bonus"
    if position.placements and position.figure.hexagons(what[2]):
        column = "hexagons"
    elif position.placements and position.figure.bridge(what[2]):
        column = "bridges"
    return {"tiles": numbers, column: gain - numbers}
