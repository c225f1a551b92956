"""Two-player games with the interface of alpha-zero-general, for its unmodified ``Coach``, ``Arena`` and ``MCTS``.

    from tilewe_jax.interop.alpha_zero_general import PolyominoGame, SantoriniGame

    coach = Coach(SantoriniGame(5), network, args)

Players are 1, who moves first, and -1, and they alternate. A board is a NumPy array that holds the whole state of a game.
Needs no extra: alpha-zero-general is not a package, and its classes require no base class.
"""

from functools import cached_property, lru_cache
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32
from numpy.typing import NDArray

from tilewe_jax.bits import pack_words
from tilewe_jax.games.polyomino import rules as polyomino_rules
from tilewe_jax.games.polyomino.game import PolyominoGame as Polyomino
from tilewe_jax.games.polyomino.observation import unpack_boards
from tilewe_jax.games.polyomino.pieces import PIECE_NAMES
from tilewe_jax.games.polyomino.rules import State as PolyominoState
from tilewe_jax.games.santorini import rules as santorini_rules
from tilewe_jax.games.santorini.config import Config, Placement
from tilewe_jax.games.santorini.game import SantoriniGame as Santorini
from tilewe_jax.games.santorini.rules import State as SantoriniState
from tilewe_jax.host import IllegalActionError
from tilewe_jax.interop.single import as_game
from tilewe_jax.lanes import rule_per_lane
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count, checked_action, shown

Board = NDArray[np.int8]
DRAW = 1e-4
"""Value of ``getGameEnded`` for a draw, which must be neither 0 nor a win."""


class _BoardGame:
    """The methods of a ``Game`` of alpha-zero-general that do not depend on the layout of the board."""

    game: Any
    shape: tuple[int, int, int]
    """Shape of a board."""
    num_actions: int
    """Number of action ids."""

    @property
    def _compiled(self) -> Any:
        """The compiled functions, which are not an attribute, so that games can be pickled."""
        require_backend()
        return _compiled_functions(self.game)

    def getBoardSize(self) -> tuple[int, int, int]:  # noqa: N802
        """Return the shape of a board."""
        return self.shape

    def getActionSize(self) -> int:  # noqa: N802
        """Return the number of action ids."""
        return self.num_actions

    def getNextState(self, board: Board, player: int, action: SupportsIndex) -> tuple[Board, int]:  # noqa: N802
        """Return the board after a legal action of a player, and the next player.

        Raises ``IllegalActionError`` for an illegal action, ``TypeError`` for values other than one integer.
        """
        number = checked_action(action, self.num_actions)
        after, legal = self._compiled.after(self.getCanonicalForm(board, player), np.int32(number))
        if not legal:
            raise IllegalActionError(f"action {number} is illegal: it is not one of the legal actions, see getValidMoves")
        return self.getCanonicalForm(np.array(after), player), -player

    def getValidMoves(self, board: Board, player: int) -> NDArray[np.int8]:  # noqa: N802
        """Return 1 for each legal action of a player, otherwise 0."""
        return np.array(self._compiled.legal(self.getCanonicalForm(board, player)), np.int8)

    def getGameEnded(self, board: Board, player: int) -> float:  # noqa: N802
        """Return 1 or -1 if the player to move has won or lost, ``DRAW`` for a draw, otherwise 0."""
        return float(self._compiled.outcome(self.getCanonicalForm(board, player)))

    def getCanonicalForm(self, board: Board, player: int) -> Board:  # noqa: N802
        """Return the board with the roles of the players exchanged for player -1."""
        array = np.asarray(board)
        if array.shape != self.shape:
            raise ValueError(f"a board must have shape {self.shape}, got {array.shape}")
        if not np.issubdtype(array.dtype, np.number):
            raise TypeError(f"a board must be an array of integers, got {array.dtype}")
        if player not in (1, -1):
            raise ValueError(f"player must be 1 or -1, got {shown(player)}")
        array = array.astype(np.int8, copy=False)
        return array if player == 1 else self._exchanged(array)

    def _exchanged(self, board: Board) -> Board:
        raise NotImplementedError

    @property
    def _action_symmetries(self) -> NDArray[np.int32]:
        """The id of each action after each symmetry, ``[symmetries, num_actions]``."""
        table: NDArray[np.int32] = self.game.action_symmetries
        return table

    def getSymmetries(self, board: Board, pi: Any) -> list[tuple[Board, NDArray[Any]]]:  # noqa: N802
        """Return the symmetric forms of a canonical board and its policy, starting with the given form."""
        boards = np.asarray(self._compiled.symmetric(self.getCanonicalForm(board, 1)))
        pi = np.asarray(pi)
        forms = []
        for form, actions in zip(boards, self._action_symmetries, strict=True):
            moved = np.zeros_like(pi)
            moved[actions] = pi
            forms.append((np.array(form), moved))
        return forms

    def stringRepresentation(self, board: Board) -> bytes:  # noqa: N802
        """Return a key of a board."""
        return board.tobytes()

    def display(self, board: Board) -> None:
        """Print a board with player 1 to move."""
        print(self.game.text(self._compiled.state(jnp.asarray(board, jnp.int8))))


class SantoriniGame(_BoardGame):
    """Santorini on n x n cells: the game of the same name in alpha-zero-general, with its errors corrected.

    A board is ``int8[2, n, n]``: workers (1 and 2, -1 and -2, or 0) and heights (0 to 4). An action is
    ``64 * worker + 8 * move + build``, see ``games.santorini``. A winning move also builds, and symmetries include the
    exchange of worker numbers.

    Args:
      board_size: number of rows and columns, 3 to 10.
      true_random_placement: whether workers start on random cells instead of the default cells.
      seed: determines the random cells.
    """

    def __init__(self, board_size: int = 5, true_random_placement: bool = False, *, seed: int | None = None) -> None:
        placement: Placement = "random" if true_random_placement else "default"
        self.game = Santorini(Config(check_count("board_size", board_size), placement))
        self.shape = 2, board_size, board_size
        self.num_actions = self.game.num_actions
        self._chance = np.random.default_rng(seed)

    def getInitBoard(self) -> Board:  # noqa: N802
        """Return the initial board, with player 1 to move."""
        state = self.game.init(jax.random.key(int(self._chance.integers(2**63))))
        return np.array(self.game.board_of(state))

    def _exchanged(self, board: Board) -> Board:
        return np.stack([-board[0], board[1]])


class _SantoriniFunctions:
    """The compiled functions of a canonical board."""

    def __init__(self, game: Santorini) -> None:
        def state_of(board: Int8[Array, "2 size size"]) -> SantoriniState:
            return santorini_rules.state_of(game.config, board, jnp.int32(0))

        def after(
            board: Int8[Array, "2 size size"], action: Int32[Array, ""]
        ) -> tuple[Int8[Array, "2 size size"], Bool[Array, ""]]:
            before = state_of(board)
            board = game.canonical_board_of(game.apply(before, action))  # seen by the opponent, who moves next
            return board.at[0].multiply(jnp.int8(-1)), game.is_legal(before, action)

        def outcome(board: Int8[Array, "2 size size"]) -> Int32[Array, ""]:
            # Only boards that do not occur in play, where the opponent moves next, are won for the player to move.
            won = jnp.any((board[0] > 0) & (board[1] == 3))
            return jnp.where(won, 1, jnp.where(game.is_terminal(state_of(board)), -1, 0))

        def symmetric(board: Int8[Array, "2 size size"]) -> Int8[Array, "symmetries 2 size size"]:
            def transform(index: Int32[Array, ""]) -> Int8[Array, "2 size size"]:
                return game.canonical_board_of(game.transform(state_of(board), index))

            return jax.vmap(transform)(jnp.arange(game.num_symmetries, dtype=jnp.int32))

        self.state = state_of
        self.after = jax.jit(after)
        self.legal = jax.jit(lambda board: game.legal_action_mask(state_of(board)))
        self.outcome = jax.jit(outcome)
        self.symmetric = jax.jit(symmetric)


class PolyominoGame(_BoardGame):
    """A two-player polyomino game: Tilewe for two, the two Duos, or the classic game with two colours per player.

    A board is ``int8[colours * planes, n, n]`` of zeros and ones, with y = 0 as the bottom row: one block of planes per colour,
    first the blocks of player 1, each player's next colour first. ``plane_names`` lists the planes of a block. The canonical
    form exchanges the blocks of the players; the start cells in each block identify its colour.

    Because players alternate, passing is an action, ``getActionSize() - 1``. It is the only action of a colour without a
    placement, which is out from then on.

    Args:
      game: a game or its name.
      **options: options of a game given by name.
    """

    def __init__(self, game: Polyomino | str = "duo", /, **options: Any) -> None:
        if game == "tilewe":
            options = {"players": 2, **options}
        value = as_game(game, options)
        if not isinstance(value, Polyomino) or value.num_players != 2:
            raise ValueError(f"game must be a polyomino game for two players, got {value.id} for {value.num_players}")
        if len(set(value.config.start_cells)) not in (1, value.config.colors):
            raise ValueError("the start cells of the colours must be all the same or all different")
        self.game = value
        self.shape = value.config.colors * len(self.plane_names), value.config.size, value.config.size
        self.num_actions = value.config.num_placements + 1

    @cached_property
    def plane_names(self) -> tuple[str, ...]:
        """The name of each plane of a block."""
        pieces = (f"has {PIECE_NAMES[piece]}" for piece in self.game.config.pieces)
        return "cells", "start cells", "out", "last piece was O1", *pieces

    def getInitBoard(self) -> Board:  # noqa: N802
        """Return the initial board, with player 1 to move."""
        return np.array(self._compiled.initial())

    def _exchanged(self, board: Board) -> Board:
        return np.roll(board, len(board) // 2, axis=0)

    @property
    def _action_symmetries(self) -> NDArray[np.int32]:
        table = self.game.action_symmetries[:, : self.num_actions - 1]
        passes = np.full((len(table), 1), self.num_actions - 1, np.int32)
        return np.concatenate([table, passes], axis=1)

    def stringRepresentation(self, board: Board) -> bytes:  # noqa: N802
        """Return a key of a board."""
        return np.packbits(board).tobytes()


class _PolyominoFunctions:
    """The compiled functions of a canonical board."""

    def __init__(self, game: Polyomino) -> None:
        config = game.config
        self._game, self._config = game, config
        self._shape = config.colors, -1, config.size, config.size
        self._starts = np.zeros((config.colors, config.size, config.size), np.int8)
        for color, cells in enumerate(config.start_cells):
            for x, y in cells:
                self._starts[color, y, x] = 1
        # The colours of the blocks at the start: first the colours of player 1.
        self._order = np.arange(config.colors, dtype=np.int32).reshape(config.colors_per_player, 2).T.ravel()
        self.state = jax.jit(self._state)
        self.initial = jax.jit(lambda: self._board(game.init(jax.random.key(0)), jnp.asarray(self._order)))
        self.after = jax.jit(self._after)
        self.legal = jax.jit(lambda board: self._legal(self._state(board)))
        self.outcome = jax.jit(self._outcome)
        self.symmetric = jax.jit(self._symmetric)

    def _colors(self, board: Int8[Array, "planes size size"]) -> Int32[Array, "colors"]:
        """Return the colour of each block by its start cells; colours with equal start cells are interchangeable."""
        if len(set(self._config.start_cells)) == 1:
            return jnp.asarray(self._order, jnp.int32)
        starts = board.reshape(self._shape)[:, 1]
        same = jnp.all(starts[:, None] == self._starts[None], axis=(2, 3))
        return jnp.argmax(same, axis=1).astype(jnp.int32)

    def _state(self, board: Int8[Array, "planes size size"]) -> PolyominoState:
        """Return the state of a board, with the colour of the first block to move even if it is blocked."""
        colors = self._colors(board)
        blocks = board.reshape(self._shape) > 0
        pieces = np.uint32(1) << np.array(self._config.pieces, np.uint32)
        occupied = jax.vmap(pack_words)(blocks[:, 0].reshape(self._config.colors, -1))
        hands = jnp.sum(jnp.where(blocks[:, 4:, 0, 0], pieces[None], np.uint32(0)), axis=1, dtype=jnp.uint32)

        def by_color(rows: Array) -> Array:
            return jnp.zeros_like(rows).at[colors].set(rows)

        occupied, hands, out = by_color(occupied), by_color(hands), by_color(blocks[:, 2, 0, 0])
        counts = rule_per_lane(polyomino_rules.legal_counts, self._config)
        return PolyominoState(
            occupied=occupied,
            hands=hands,
            out=out,
            monomino_last=by_color(blocks[:, 3, 0, 0]),
            current_color=colors[0],
            legal_counts=counts(occupied, hands, colors[0], out),
        )

    def _board(self, state: PolyominoState, colors: Int32[Array, "colors"]) -> Int8[Array, "planes size size"]:
        """Return the board of a state, with blocks in the order of the colours."""
        pieces = np.array(self._config.pieces, np.uint32)
        has = (state.hands[colors][:, None] >> pieces[None]) & np.uint32(1) != 0
        flags = jnp.concatenate([jnp.stack([state.out[colors], state.monomino_last[colors]], axis=1), has], axis=1)
        cells = unpack_boards(self._config, state.occupied[colors])
        spatial = jnp.stack([cells, jnp.asarray(self._starts)[colors] > 0], axis=1)
        size = self._config.size
        constant = jnp.broadcast_to(flags[..., None, None], (*flags.shape, size, size))
        return jnp.concatenate([spatial, constant], axis=1).astype(jnp.int8).reshape(-1, size, size)

    def _is_out(self, state: PolyominoState) -> Bool[Array, ""]:
        """Whether the colour to move has passed or is blocked."""
        return state.out[state.current_color] | jnp.all(state.legal_counts == 0)

    def _legal(self, state: PolyominoState) -> Bool[Array, "actions"]:
        is_out = self._is_out(state)
        placements = self._game.legal_action_mask(state)[: self._config.num_placements] & ~is_out
        return jnp.append(placements, is_out | self._config.voluntary_pass)

    def _after(
        self, board: Int8[Array, "planes size size"], action: Int32[Array, ""]
    ) -> tuple[Int8[Array, "planes size size"], Bool[Array, ""]]:
        """Return the board after an action with the player's next colour first, and whether the action is legal."""
        state, colors = self._state(board), self._colors(board)
        passes = action == self._config.num_placements
        # For the rules, a pass of a colour that is blocked or out is action -1.
        voluntary = passes & self._config.voluntary_pass & ~self._is_out(state)
        played = self._game.apply_deferred(state, jnp.where(passes & ~voluntary, -1, action))
        own = self._config.colors_per_player
        after = self._board(played, jnp.concatenate([jnp.roll(colors[:own], -1), colors[own:]]))
        return after, self._legal(state)[action]

    def _outcome(self, board: Int8[Array, "planes size size"]) -> Array:
        state, colors = self._state(board), self._colors(board)
        counts = rule_per_lane(polyomino_rules.legal_counts, self._config)
        alive = [
            ~state.out[color] & jnp.any(counts(state.occupied, state.hands, color, state.out) > 0)
            for color in jnp.arange(self._config.colors, dtype=jnp.int32)
        ]
        scores = self._game.scores(state)
        owner = self._config.owner(colors[0])
        margin = scores[owner] - scores[1 - owner]
        outcome = jnp.where(margin == 0, DRAW, jnp.sign(margin).astype(jnp.float32))
        return jnp.where(jnp.any(jnp.stack(alive)), 0.0, outcome)

    def _symmetric(self, board: Int8[Array, "planes size size"]) -> Int8[Array, "symmetries planes size size"]:
        state, colors = self._state(board), self._colors(board)

        def transform(index: Int32[Array, ""]) -> Int8[Array, "planes size size"]:
            return self._board(self._game.transform(state, index), colors)

        return jax.vmap(transform)(jnp.arange(self._game.num_symmetries, dtype=jnp.int32))


@lru_cache(maxsize=8)
def _compiled_functions(game: Any) -> Any:
    return _SantoriniFunctions(game) if isinstance(game, Santorini) else _PolyominoFunctions(game)
