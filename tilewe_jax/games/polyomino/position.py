"""Implementation of ``tilewe_jax.host.HostPosition`` for every variant, on the engine of ``host``."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from tilewe_jax.draw.pictures import draw, register
from tilewe_jax.draw.shapes import Options
from tilewe_jax.draw.theme import COLORS
from tilewe_jax.games.polyomino.config import VERSION, Config
from tilewe_jax.games.polyomino.drawing import DRAWING
from tilewe_jax.games.polyomino.host import Position, bits, explain_placement, geometry
from tilewe_jax.games.polyomino.host_symmetry import host_symmetries
from tilewe_jax.games.polyomino.notation import (
    action_names,
    action_of_name,
    cell_name,
    cells_of,
    column_name,
    orientation_and_anchor,
)
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES, Cell
from tilewe_jax.host import HostGame, IllegalActionError, common_view, require_no_deal, shared_win
from tilewe_jax.utils.checks import action_id, out_of_range

if TYPE_CHECKING:
    from tilewe_jax.games.polyomino.rules import State

register("polyomino", DRAWING)


@dataclass(frozen=True)
class PolyominoPosition:
    """A position, see ``tilewe_jax.host.HostPosition``."""

    position: Position
    """The position of the rules engine in plain Python; must not be changed."""

    @property
    def config(self) -> Config:
        """The variant."""
        return self.position.config

    @property
    def current_player(self) -> int:
        """The player to move, from 0; at the end the owner of ``current_color``."""
        return self.config.owner(self.current_color)

    @property
    def current_color(self) -> int:
        """The colour to move, from 0; at the end the last colour that passed or was blocked."""
        return self.position.color

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return self.position.finished

    def scores(self) -> tuple[int, ...]:
        """Return the points by seat: cells placed, plus the bonuses of the variant."""
        config, score = self.config, self.position.score
        return tuple(sum(map(score, range(player, config.colors, config.players))) for player in range(config.players))

    def cells(self, color: int) -> list[Cell]:
        """Return the (x, y) cells of a colour."""
        return [self.position.geometry.cell(bit) for bit in bits(self.position.occupied[color])]

    def remaining_pieces(self, color: int) -> list[str]:
        """Return the names of the pieces that a colour has not placed."""
        return [PIECE_NAMES[piece] for piece in bits(self.position.hands[color])]

    def legal_actions(self) -> list[int]:
        """Return the ids of the legal actions, ascending; empty at the end."""
        if self.is_terminal:
            return []
        placements = self.position.actions(self.current_color)
        return [*placements, self.config.num_placements] if self.config.voluntary_pass else placements

    def explain(self, action: int) -> str | None:
        """Return the rule that an action breaks; ``None`` if it is legal."""
        action = action_id(action)
        config = self.config
        if self.is_terminal:
            return "the game is over"
        if action == config.num_placements:
            return None if config.voluntary_pass else "passing is not allowed; blocked players are skipped automatically"
        if not 0 <= action < config.num_placements:
            return out_of_range(config.num_actions)
        if self.position.is_legal(self.position.placement(action), self.current_color):
            return None  # the common case, without the slower checks
        return explain_placement(self.position, *orientation_and_anchor(config, action))

    def after(self, action: int) -> "PolyominoPosition":
        """Return the position after an action. Raises ``IllegalActionError`` with the rule that an illegal action breaks."""
        action = self._legal(action)
        position = self.position.copy()
        if action == self.config.num_placements:
            position.leave()
        else:
            position.place(position.placement(action))
        return PolyominoPosition(position)

    def action_name(self, action: int) -> str:
        """Return the canonical name of an action, like ``W5n-a1c3``."""
        return action_names(self.config, action_id(action))[0]

    def action_of_name(self, name: str) -> int:
        """Return the action of a name, see ``notation.action_of_name``. Raises ``ValueError`` if it is invalid or illegal."""
        return self._legal(action_of_name(self.config, name))

    def text(self, color: bool = False, *, last_action: int | None = None, seat: int | None = None, open: bool = True) -> str:
        """Draw the board as text, with the score and the remaining pieces of each colour; ``last_action`` in small letters."""
        del seat, open  # Nothing is hidden.
        size, marked = self.config.size, self._cells_of(last_action)
        board = [["."] * size for _ in range(size)]
        marks = [_mark(index, color) for index in range(self.config.colors)]
        for index, mark in enumerate(marks):
            for cell in self.cells(index):
                board[cell[1]][cell[0]] = _mark(index, color, last=True) if cell in marked else mark
        rows = [f"{y + 1:2d} {' '.join(board[y])}" for y in reversed(range(size))]
        rows.append("   " + " ".join(column_name(x)[-1] for x in range(size)))
        rows.append("points and pieces left:")
        for index, mark in enumerate(marks):
            rows.append(f"{mark} {self.position.score(index):3d} {' '.join(self.remaining_pieces(index))}")
        if (players := self.config.players) < self.config.colors:
            rows += [f"{' and '.join(COLORS[i::players])}: {score} points" for i, score in enumerate(self.scores())]
        rows.append("game over" if self.is_terminal else f"{COLORS[self.current_color]} to move")
        return "\n".join(rows)

    def svg(self, *, last_action: int | None = None) -> str:
        """Draw the position as SVG, see ``tilewe_jax.draw``."""
        return draw(self.view(), Options(last={"cells": self._cells_of(last_action)}))

    def _repr_svg_(self) -> str:
        return self.svg()

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        """Return the board as JSON values, see ``tilewe_jax.draw``; nothing is hidden."""
        del open
        config, position, color = self.config, self.position, self.current_color
        cells = ["."] * config.cells
        for index in range(config.colors):
            for cell in self.cells(index):
                cells[config.bit(cell)] = str(index)
        is_open = config.starts_stay_open or position.hands[color] == config.full_hand
        starts = config.start_cells[color] if is_open and not self.is_terminal else ()
        return common_view(self, "polyomino", seat) | {
            "size": config.size,
            "cells": "".join(cells),
            "colors": [self._color_view(index) for index in range(config.colors)],
            "current_color": color,
            "empty": cells.count("."),
            "start_cells": [list(cell) for cell in starts if cells[config.bit(cell)] == "."],
            "voluntary_pass": config.voluntary_pass,
        }

    def action_view(self, action: int) -> dict[str, Any]:
        """Describe a legal action; ``orientation`` is an index into ``pieces.ORIENTATIONS``."""
        action = self._legal(action)
        view = {"id": action, "name": self.action_name(action), "kind": "pass", "color": self.current_color}
        if action == self.config.num_placements:
            return view
        orientation, _ = orientation_and_anchor(self.config, action)
        piece = PIECE_NAMES[ORIENTATIONS[orientation].piece]
        cells = [list(cell) for cell in cells_of(self.config, action)]
        return view | {"kind": "place", "piece": piece, "orientation": orientation, "cells": cells}

    def _color_view(self, color: int) -> dict[str, Any]:
        position = self.position
        beside = position.beside[color] & position.geometry.board & ~position.taken
        return {
            "name": COLORS[color],
            "player": self.config.owner(color),
            "score": position.score(color),
            "pieces": self.remaining_pieces(color),
            "void": beside.bit_count(),
            "out": bool(position.out >> color & 1),
        }

    def _cells_of(self, action: int | None) -> tuple[Cell, ...]:
        """Return the cells that an action covers; empty for a pass and for ``None``."""
        return () if action is None or action == self.config.num_placements else cells_of(self.config, action)

    def _legal(self, action: int) -> int:
        """Return a legal action as an ``int``. Raises ``IllegalActionError`` with the rule that an illegal action breaks."""
        action = action_id(action)
        if (rule := self.explain(action)) is None:
            return action
        described = f"action {action}"
        if 0 <= action < self.config.num_placements:
            orientation, anchor = orientation_and_anchor(self.config, action)
            described += f", {ORIENTATIONS[orientation].name} at {cell_name(anchor)},"
        raise IllegalActionError(f"{described} is illegal for {COLORS[self.current_color]}: {rule}")


_ANSI = ("94", "93", "91", "92")


def _mark(index: int, color: bool, last: bool = False) -> str:
    """Return the letter of a colour on the board; with ``color``, the last move is shown in reverse video."""
    letter = COLORS[index][0] if last else COLORS[index][0].upper()
    return f"\x1b[{'7;' if last else ''}{_ANSI[index]}m{letter}\x1b[0m" if color else letter


def host_game(config: Config) -> HostGame:
    """Return a variant as a game in plain Python."""
    return HostGame(
        id=config.name,
        version=VERSION,
        num_players=config.players,
        num_actions=config.num_actions,
        max_steps=config.max_steps,
        init_from_deal=partial(_position_of_deal, config),
        returns=_returns,
        shapes=_shapes(config.orientations),
        symmetries=host_symmetries(config),
    )


def _returns(position: PolyominoPosition) -> tuple[float, ...]:
    scores = position.scores()
    return shared_win(scores) if len(scores) > 1 else (scores[0] / position.config.max_score,)


@lru_cache(maxsize=64)
def _shapes(orientations: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the geometry of the orientations, for clients."""
    return [
        {"id": i, "name": shape.name, "piece": PIECE_NAMES[shape.piece], "cells": [list(cell) for cell in shape.cells]}
        for i in orientations
        for shape in [ORIENTATIONS[i]]
    ]


def _position_of_deal(config: Config, deal: Any) -> PolyominoPosition:
    require_no_deal(config.name, deal)
    return PolyominoPosition(Position(config))


def position_of_state(config: Config, state: "State") -> Position:
    """Convert a state without deferred passes to a position with an empty history."""

    def mask(words: list[int]) -> int:
        packed = sum(word << 32 * index for index, word in enumerate(words))
        return geometry(config.size).mask((cell % config.size, cell // config.size) for cell in bits(packed))

    return Position.of(
        config,
        [mask(words) for words in state.occupied.tolist()],
        state.hands.tolist(),
        sum(1 << color for color, is_out in enumerate(state.out.tolist()) if is_out),
        state.monomino_last.tolist(),
        int(state.current_color),
    )
