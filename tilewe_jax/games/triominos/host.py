"""Triominos in plain Python: host positions that explain why an action is illegal. Imports no JAX.

This is a second implementation of the rules, on dictionaries of cells and vertices (``figure``).
"""

from bisect import insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass
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
    HIGHEST,
    ORIENTATIONS,
    Cell,
    Tile,
    corners,
    digits,
    faces_up,
    neighbours,
    outline,
    parse_tile,
    rank,
    tile_id,
    tiles,
    vertices,
)
from tilewe_jax.host import HostGame, IllegalActionError, Rounds, Table, common_view, require_legal
from tilewe_jax.utils.checks import action_id, out_of_range

register("triominos", DRAWING)

DRAW, PASS = "draw", "pass"
Placed = tuple[Tile, int, Cell]
"""A placed tile: its numbers, its orientation (index of ``ORIENTATIONS``) and its cell."""
_UINT32 = 0xFFFFFFFF

_MATCHES: dict[tuple[bool, Tile], list[tuple[Tile, int]]] = {}
"""The tiles that match the placed tiles on a cell, each with its first orientation there. The key is whether the cell faces up,
with the numbers at its left, middle and right corner; -1 stands for a number that is not known yet, of one corner at most."""
for _tile in tiles(HIGHEST):
    _turns = {(turn % 2 == 0, corners(_tile, turn)): turn for turn in reversed(range(len(ORIENTATIONS)))}
    for (_is_up, (_left, _middle, _right)), _turn in _turns.items():
        for _known in ((_left, _middle, _right), (-1, _middle, _right), (_left, -1, _right), (_left, _middle, -1)):
            _MATCHES.setdefault((_is_up, _known), []).append((_tile, _turn))


@dataclass(frozen=True)
class Position:
    """An immutable position of Triominos, including hidden information, a ``tilewe_jax.host.HostPosition``.

    An action is given by its id, the same as on the device, or by a placement ``("125", "CAB", (2, -1))``, ``"draw"`` or
    ``"pass"``.

    >>> position = Position.start(Config(players=2, tiles=10, tray=2), seed=(1, 2))
    >>> position.current_player, position.trays[1]
    (1, ((1, 1, 2), (1, 2, 2)))
    >>> after = position.after(position.action(("112", "ABC", (0, 0))))
    >>> after.scores()
    (0, 4)
    >>> [after.describe(action) for action in after.legal_actions()]
    [('111', 'ACB', (-1, 0)), 'draw']
    >>> after.explain(after.config.pass_)
    'a player who can draw cannot pass: 0 of 3 tiles were drawn in this turn, and the pile has 6'
    """

    config: Config
    placements: tuple[Placed, ...]
    """The placed tiles by ascending id."""
    trays: tuple[tuple[Tile, ...], ...]
    """The tiles of each player by ascending id."""
    pile: tuple[Tile, ...]
    """The tiles of the pile in drawing order."""
    points: tuple[int, ...]
    """Points of all rounds so far."""
    current_player: int
    """The player to move, from 0."""
    draws: int
    """Number of tiles drawn in this turn."""
    passes: int
    """Number of passes since the last placement."""
    starter: int
    """The first player of the round."""
    round: int
    """Number of previous rounds."""
    seed: tuple[int, int]
    """Seed of the deals of later rounds, two words of 32 bits."""

    @classmethod
    def start(cls, config: Config, seed: tuple[int, int]) -> "Position":
        """The initial position of a game, dealt like ``rules.init`` by a seed of two words of 32 bits."""
        return _deal(config, (0,) * config.players, 0, seed, range(config.players))

    @classmethod
    def from_deal(cls, config: Config, deal: Any) -> "Position":
        """The initial position of a deal, see ``TriominosGame.deal``. Raises ``ValueError`` for an invalid deal."""
        order, starter, seed = read_deal(config, deal)
        return _start_round(config, (0,) * config.players, 0, seed, order, starter)

    @cached_property
    def figure(self) -> Figure:
        """The placed tiles."""
        figure = Figure()
        for placement in self.placements:
            figure.place(*placement)
        return figure

    @cached_property
    def _legal_placements(self) -> dict[int, Placed]:
        """The legal placements by action id, ascending."""
        config, tray = self.config, self.trays[self.current_player]
        if self.is_terminal:
            return {}
        if not self.placements:
            placements = {config.first + tile_id(tile): (tile, 0, (0, 0)) for tile in tray}
            return {action: placed for action, placed in placements.items() if self._rule_against_opening(*placed) is None}
        legal: dict[int, Placed] = {}
        known = self.figure.numbers
        for cell in self.figure.frontier:
            left, middle, right = vertices(cell)
            numbers = known.get(left, -1), known.get(middle, -1), known.get(right, -1)
            for tile, orientation in _MATCHES.get((faces_up(cell), numbers), ()):
                if tile in tray:
                    third = corners(tile, orientation)[self._free_corner(cell)]
                    legal[config.wrapped(cell) * config.numbers + third] = tile, orientation, cell
        return dict(sorted(legal.items()))

    # ---- Methods of ``HostPosition``, with action ids

    @property
    def is_terminal(self) -> bool:
        """True if the game is over. A position after the last action of an earlier round is the start of the next round."""
        return not all(self.trays) or self.passes == self.config.players

    def scores(self) -> tuple[int, ...]:
        """Points by seat."""
        return self.points

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty at the end."""
        if self.is_terminal:
            return []
        words = ((DRAW, self.config.draw), (PASS, self.config.pass_))
        return [*self._legal_placements, *(action for word, action in words if self._rule_against_word(word) is None)]

    def explain(self, action: int) -> str | None:
        """The rule that an action breaks, in words; ``None`` if the action is legal."""
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
        """The position after an action; at the end of a round, the start of the next one. Raises ``IllegalActionError``."""
        placed = self._legal_placements.get(action_id(action))
        if placed is None:
            if require_legal(self, action) == self.config.draw:
                tray = self.trays[self.current_player] + self.pile[:1]
                gained = self._gained(DRAW_SCORE)
                return self._with(points=gained, trays=self._trays_with(tray), pile=self.pile[1:], draws=self.draws + 1)
            return self._with(points=self._gained(PASS_SCORE), passes=self.passes + 1)._end_turn()
        placements, figure = list(self.placements), self.figure.copy()
        insort(placements, placed, key=lambda placement: tile_id(placement[0]))
        figure.place(*placed)
        tray = tuple(tile for tile in self.trays[self.current_player] if tile != placed[0])
        return self._with(
            points=self._gained(self._score(placed[0], placed[2])[0]),
            placements=tuple(placements),
            figure=figure,
            trays=self._trays_with(tray),
            passes=0,
        )._end_turn()

    def action_name(self, action: int) -> str:
        """The name of a legal action: ``125-CAB@2,-1``, ``draw`` or ``pass``. Raises ``IllegalActionError``."""
        described = self.describe(action)
        if isinstance(described, str):
            return described
        tile, orientation, (column, row) = described
        return f"{tile}-{orientation}@{column},{row}"

    def action_of_name(self, name: str) -> int:
        """The inverse of ``action_name``. Raises like ``action``, and ``ValueError`` for an invalid name."""
        tile, dash, rest = name.partition("-")
        orientation, at, location = rest.partition("@")
        if not dash and not at:
            return self.action(name)
        try:
            column, row = (int(number) for number in location.split(","))
        except ValueError:
            raise ValueError(f"invalid action {name!r}; an action is like 125-CAB@2,-1, draw or pass") from None
        return self.action((tile, orientation, (column, row)))

    def text(self, color: bool = False, *, last_action: int | None = None, seat: int | None = None, open: bool = True) -> str:
        """The placed tiles with a dot in each, the points, the trays and the size of the pile.

        Args:
          color: whether to show the numbers in bold, with ANSI escapes.
          last_action: the previous action; the tile that it placed has a star instead of the dot.
          seat: the player whose tray is shown unless ``open``; ``None`` for a spectator.
          open: whether to show all trays, which are always shown at the end. Of hidden trays only the size is shown.
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
        """The table and all trays as an SVG document; the tile placed by ``last_action``, the previous action, is marked."""
        cell = self._last_cell(last_action)
        return draw(self.view(open=True), Options(last=None if cell is None else _cell_view(cell)))

    def _repr_svg_(self) -> str:
        return self.svg()

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        """The position as JSON values, see ``tilewe_jax.draw``. Of trays hidden from ``seat`` only the size is included."""
        view = common_view(self, "triominos", seat)
        is_open = open or view["terminal"]
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
            "frontier": [_cell_view(cell) for cell in sorted(self.figure.frontier or [(0, 0)])],
        }

    def action_view(self, action: int) -> dict[str, Any]:
        """A legal action with its points, except points for the end of a round. Raises ``IllegalActionError``."""
        action = action_id(action)
        view: dict[str, Any] = {"id": action, "name": self.action_name(action)}
        if action >= self.config.draw:
            is_draw = action == self.config.draw
            return view | {"kind": DRAW if is_draw else PASS, "gain": DRAW_SCORE if is_draw else PASS_SCORE}
        placement = self._placed(action)
        gain, reason = self._score(placement[0], placement[2])
        return view | {"kind": "place", **_placement_view(*placement), "gain": gain, "reason": reason}

    def __str__(self) -> str:
        return self.text()

    # ---- Actions by placements and words

    def action(self, what: Placement | str) -> int:
        """The id of a legal action given by a placement, ``"draw"`` or ``"pass"``.

        Equivalent orientations of a triple are all accepted. The first tile of a round is placed on (0, 0) as ABC.
        Raises ``IllegalActionError`` for an illegal action, ``ValueError`` for an invalid one.
        """
        if isinstance(what, str):
            if what not in (DRAW, PASS):
                raise ValueError(f"invalid action {what!r}; an action is {DRAW}, {PASS}, or (tile, orientation, location)")
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
        """A legal action as a placement, ``"draw"`` or ``"pass"``, the inverse of ``action``. Raises ``IllegalActionError``."""
        action = require_legal(self, action)
        if action >= self.config.draw:
            return DRAW if action == self.config.draw else PASS
        tile, orientation, cell = self._placed(action)
        return digits(tile), ORIENTATIONS[orientation], cell

    def openers(self) -> list[Tile]:
        """The tiles that the player to move may place first with ``start="highest"``."""
        tray = self.trays[self.current_player]
        highest = max(rank(tile) for tile in tray)
        return [tile for tile in tray if rank(tile) == highest or tile == (0, 0, 0)]

    # ---- Rules

    def _rule_against_word(self, word: str) -> str | None:
        """The rule that drawing or passing breaks before the end of a game, if any."""
        if not self.placements and self.config.start == "highest":
            return f"the round starts with the highest tile, {self._opener_names()}, before any draw or pass"
        may_draw = bool(self.pile) and self.draws < MAX_DRAWS
        if word == DRAW and not may_draw:
            reason = f"{MAX_DRAWS} tiles were drawn in this turn" if self.draws == MAX_DRAWS else "the pile is empty"
            return f"no more tiles can be drawn: {reason}"
        if word == PASS and may_draw:
            drawn = f"{self.draws} of {MAX_DRAWS} tiles were drawn in this turn"
            return f"a player who can draw cannot pass: {drawn}, and the pile has {len(self.pile)}"
        return None

    def _rule_against_placing(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The rule that a placement breaks before the end of a game, if any."""
        if tile not in self.config.tile_list:
            return f"the tile {name_of(tile)} is not among the {self.config.tiles} of this game"
        if rule := self.figure.broken_rule(tile, orientation, cell):
            return rule
        if tile not in self.trays[self.current_player]:
            return f"the tile {name_of(tile)} is not on the tray of player {self.current_player + 1}"
        return None if self.placements else self._rule_against_opening(tile, orientation, cell)

    def _rule_against_opening(self, tile: Tile, orientation: int, cell: Cell) -> str | None:
        """The rule that a valid placement breaks as the first of a round, if any."""
        if cell != (0, 0) or corners(tile, orientation) != corners(tile, 0):
            return f"the first tile must be placed on (0, 0) as {ORIENTATIONS[0]}; other placements are rotations of this one"
        if self.config.start == "highest" and tile not in self.openers():
            return f"the round starts with the highest tile, {self._opener_names()}"
        return None

    def _score(self, tile: Tile, cell: Cell) -> tuple[int, str]:
        """The points of a legal placement, and its bonus in words."""
        if self.placements or self.config.start != "highest":
            points, hexagons, bridge = self.figure.score(tile, cell, self.config.hex_scores)
            reason = ("hexagon", "two hexagons", "three hexagons")[hexagons - 1] if hexagons else "bridge" if bridge else ""
        else:
            is_zeros, is_triple = tile == (0, 0, 0), len(set(tile)) == 1
            points = sum(tile) + (FIRST_ZEROS_SCORE if is_zeros else FIRST_TRIPLE_SCORE if is_triple else 0)
            reason = "zeros first" if is_zeros else "triple first" if is_triple else ""
        return points, f"{reason} +{points - sum(tile)}" if reason else ""

    def _end_turn(self) -> "Position":
        """Pass the turn to the next player. At the end of a round, score it and deal the next round of the game, if any."""
        after = self._with(current_player=(self.current_player + 1) % self.config.players, draws=0)
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
            return after._with(points=points)
        may_start = winners if self.config.start == "winner" else range(self.config.players)
        return _deal(self.config, points, self.round + 1, self.seed, may_start)

    def _with(self, **changes: Any) -> "Position":
        """The position with other values of some fields; changed placements need a changed ``figure``."""
        after = object.__new__(Position)
        after.__dict__.update(self.__dict__, **changes)
        after.__dict__.pop("_legal_placements", None)
        return after

    def _gained(self, points: int) -> tuple[int, ...]:
        """The points by seat after a gain of the player to move."""
        return tuple(score + points * (player == self.current_player) for player, score in enumerate(self.points))

    def _trays_with(self, tray: Sequence[Tile]) -> tuple[tuple[Tile, ...], ...]:
        """The trays with another tray for the player to move."""
        own = tuple(sorted(tray, key=tile_id))
        return (*self.trays[: self.current_player], own, *self.trays[self.current_player + 1 :])

    def _opener_names(self) -> str:
        return " or ".join(map(name_of, self.openers()))

    # ---- Ids

    def _last_cell(self, action: int | None) -> Cell | None:
        """The cell of the tile placed by the previous action; ``None`` if it placed no tile in this round."""
        if action is None or action >= self.config.draw or not self.placements:
            return None
        if action >= self.config.first:
            return 0, 0
        taken = [self.config.wrapped(cell) for *_, cell in self.placements]
        return unwrap(self.config, action // self.config.numbers, taken)

    def _placed(self, action: int) -> Placed:
        """The placement of a legal action below ``Config.draw``."""
        return self._legal_placements[action]

    def _decode(self, action: int) -> Placed | str:
        """The placement of an action below ``Config.draw``, legal or not; or the reason why it has no placement."""
        if action >= self.config.first:
            return self.config.tile_list[action - self.config.first], 0, (0, 0)
        if not self.placements:
            return f"a round starts with a tile on (0, 0): actions {self.config.first} to {self.config.draw - 1}"
        taken = [self.config.wrapped(cell) for *_, cell in self.placements]
        return self._complete(unwrap(self.config, action // self.config.numbers, taken), action % self.config.numbers)

    def _complete(self, cell: Cell, third: int) -> Placed | str:
        """The placement on a cell with the number ``third`` at its free corner; or the reason why it is impossible."""
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
        """The corner whose number is part of the action id, see ``table.free_corner``."""
        right, _, left = (neighbour in self.figure.tiles for neighbour in neighbours(cell))
        return 2 if left else 0 if right else 1


def _deal(config: Config, points: tuple[int, ...], number: int, seed: tuple[int, int], may_start: Collection[int]) -> Position:
    """The start of round ``number``, with the same deal as ``rules.deal``."""
    words = _words(config, number, seed)
    order = sorted(range(config.tiles), key=lambda tile: (words[tile], tile))
    if config.start == "highest":
        may_start = starters(config, order)
    starter = max(may_start, key=lambda player: words[config.tiles + player] >> 1)
    return _start_round(config, points, number, seed, order, starter)


def _words(config: Config, number: int, seed: tuple[int, int]) -> list[int]:
    """Random words for the order of the tiles, and for the first player, of round ``number``."""
    round_seed = _hash32(_hash32(seed[0], number), seed[1])
    return [_hash32(round_seed, i) for i in range(config.tiles + config.players)]


def shuffled(config: Config, seed: tuple[int, int]) -> list[Tile]:
    """All tiles in a random order, the dealing order of a first round with this seed."""
    words = _words(config, 0, seed)
    return sorted(config.tile_list, key=lambda tile: (words[tile_id(tile)], tile))


def read_deal(config: Config, deal: Any) -> tuple[list[int], int, tuple[int, int]]:
    """Parse a deal: the ids of the tiles in dealing order, the first player, and the seed of later deals.

    Raises ``ValueError`` for an invalid deal.
    """
    error = ValueError(
        f"a deal must have tiles, all {config.tiles} in dealing order; starter, the first player from 0; and seed, two words of"
        " 32 bits"
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
    if starter not in starters(config, order):
        raise ValueError(f"starter must hold the highest tile of the deal, got player {starter + 1}")
    return order, starter, (seed[0], seed[1])


def _trays(config: Config, order: Sequence[int]) -> tuple[tuple[Tile, ...], ...]:
    """The tiles of each player by ascending id, for tiles dealt in this order."""
    dealt = [order[player * config.dealt : (player + 1) * config.dealt] for player in range(config.players)]
    return tuple(tuple(config.tile_list[tile] for tile in sorted(tray)) for tray in dealt)


def starters(config: Config, order: Sequence[int]) -> list[int]:
    """The players who may start the first round, for tiles dealt in this order."""
    if config.start != "highest":
        return list(range(config.players))
    ranks = [sorted(map(rank, tray), reverse=True) for tray in _trays(config, order)]
    return [player for player in range(config.players) if ranks[player] == max(ranks)]


def _start_round(
    config: Config, points: tuple[int, ...], number: int, seed: tuple[int, int], order: Sequence[int], starter: int
) -> Position:
    """The start of round ``number`` for tiles dealt in this order."""
    return Position(
        config=config,
        placements=(),
        trays=_trays(config, order),
        pile=tuple(config.tile_list[tile] for tile in order[config.players * config.dealt :]),
        points=points,
        current_player=starter,
        draws=0,
        passes=0,
        starter=starter,
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
    """Convert the number of a cell on the torus to a cell of the plane.

    Args:
      config: the settings.
      number: number of a taken cell or of its neighbour; for other cells the result is an arbitrary cell with this number.
      taken: the numbers of all taken cells.
    """
    # The figure is connected, contains cell (0, 0) and never wraps around: follow it from there to the left and up.
    coordinates = []
    for length, line_of in (
        (config.columns, lambda cell: cell % config.columns),
        (config.rows, lambda cell: cell // config.columns),
    ):
        lines = {line_of(cell) for cell in taken}
        start = -1
        while start % length in lines:
            start -= 1
        coordinates.append(start + (line_of(number) - start) % length)
    return coordinates[0], coordinates[1]


def _draw_tiles(cells: Sequence[Cell], numbers: dict[Cell, int], color: bool, last: Cell | None) -> list[str]:
    """Draw a triangle for each cell as text. Half a tile is two characters wide, a row of cells two lines high."""
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
    """A cell and its left, middle and right corner in the plane as JSON values."""
    return {"cell": list(cell), "points": [[round(x, 4), round(y, 4)] for x, y in outline(cell)]}


def _placement_view(tile: Tile, orientation: int, cell: Cell) -> dict[str, Any]:
    """A placed tile as JSON values, with the numbers in the order of the corners."""
    return {"tile": digits(tile), **_cell_view(cell), "numbers": list(corners(tile, orientation))}


def host_game(config: Config) -> HostGame:
    """Make the host form of the game."""
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
    return {
        "tiles": [digits(config.tile_list[tile]) for tile in order],
        "starter": chance.choice(starters(config, order)),
        "seed": [chance.getrandbits(32), chance.getrandbits(32)],
    }


# ---- The score table

_COLUMNS = ("start", "tiles", "bonus", "hexagons", "bridges", "draws", "passes", "end")
"""Sources of points: the position from which a game started, numbers of placed tiles, opening bonuses, hexagons, bridges,
draws, passes, the end of a round."""


def first_round(position: Position) -> Table:
    """The score table at the start of a game."""
    table = _empty_round(position)
    points = [{**row, "start": start, "total": start} for row, start in zip(table["points"], position.points, strict=True)]
    return ({**table, "points": points},)


def _empty_round(position: Position) -> dict[str, Any]:
    points = [dict.fromkeys((*_COLUMNS, "total"), 0) for _ in position.trays]
    return {"round": position.round, "starter": position.current_player, "points": points, "reason": None, "winners": None}


def table_of_rounds(rounds: Table, before: Position, action: int, after: Position) -> Table:
    """The score table after an action, with the sources of the points for each round and seat."""
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
    """The points of an action by source, except points for the end of a round."""
    view = position.action_view(action)
    if view["kind"] != "place":
        return {"draws" if view["kind"] == DRAW else "passes": view["gain"]}
    reason, numbers = view["reason"], sum(view["numbers"])
    column = "hexagons" if "hexagon" in reason else "bridges" if "bridge" in reason else "bonus"
    return {"tiles": numbers, column: view["gain"] - numbers}
