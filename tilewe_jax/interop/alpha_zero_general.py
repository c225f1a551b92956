"""Games for two players with the interface of alpha-zero-general, for its ``Coach``, ``Arena`` and ``MCTS`` as they are.

    from tilewe_jax.interop.alpha_zero_general import PolyominoGame, SantoriniGame

    coach = Coach(SantoriniGame(5), network, args)

Players are 1, who begins, and -1, and they alternate; a board is a NumPy array, and nothing of a game is kept outside of it.
Needs no extra: that program is no package, and its classes ask for no base class.
"""

from functools import cached_property, lru_cache
from typing import Any, SupportsIndex, TypeVar

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
from tilewe_jax.games.santorini.config import Placement, santorini
from tilewe_jax.games.santorini.game import SantoriniGame as Santorini
from tilewe_jax.games.santorini.rules import State as SantoriniState
from tilewe_jax.host import IllegalActionError
from tilewe_jax.interop.single import as_game
from tilewe_jax.lanes import rule_per_lane
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count, checked_action, shown

F = TypeVar("F")
Board = NDArray[np.int8]
DRAW = 1e-4
"""What ``getGameEnded`` gives for a draw, which must be neither 0 nor a win."""


class SantoriniGame:
    """Santorini on n x n cells, as the file of that name in alpha-zero-general has it, without its mistakes.

    A board is ``int8[2, n, n]``: pieces (1 and 2, -1 and -2, else 0) and heights (0 to 4). An action is
    ``64 * worker + 8 * move + build``, see ``games.santorini``. A winning move builds by the ordinary rule, and all eight
    symmetries of the board are given, times the numbers of the workers.

    Args:
      board_size: rows and columns, 3 to 10.
      true_random_placement: whether the workers begin on random cells; else always on those of the rules, whichever colour that
        program would have drawn.
      seed: decides the random cells.
    """

    def __init__(self, board_size: int = 5, true_random_placement: bool = False, *, seed: int | None = None) -> None:
        placement: Placement = "random" if true_random_placement else "default"
        self.game = Santorini(santorini(check_count("board_size", board_size), placement))
        self._chance = np.random.default_rng(seed)

    @property
    def _compiled(self) -> "_SantoriniFunctions":
        return _functions_of(_SantoriniFunctions, self.game)

    def getInitBoard(self) -> Board:  # noqa: N802
        """The board at the start, with player 1 to move."""
        state = self.game.init(jax.random.key(int(self._chance.integers(2**63))))
        return np.array(self.game.board_of(state))

    def getBoardSize(self) -> tuple[int, int, int]:  # noqa: N802
        """The shape of a board."""
        size = self.game.config.size
        return 2, size, size

    def getActionSize(self) -> int:  # noqa: N802
        """Number of action ids, 128."""
        return int(self.game.num_actions)

    def getNextState(self, board: Board, player: int, action: SupportsIndex) -> tuple[Board, int]:  # noqa: N802
        """The board after a legal action of a player, and the next player.

        Raises ``IllegalActionError`` for an illegal action, ``TypeError`` for other values than one integer.
        """
        action = checked_action(action, self.getActionSize())
        own, legal = self._compiled.after(self.getCanonicalForm(board, player), np.int32(action))
        _require_legal(action, legal)
        return self.getCanonicalForm(np.array(own), -player), -player  # the state after the action is the opponent's

    def getValidMoves(self, board: Board, player: int) -> NDArray[np.int8]:  # noqa: N802
        """1 for each legal action of a player."""
        return np.array(self._compiled.legal(self.getCanonicalForm(board, player)), np.int8)

    def getGameEnded(self, board: Board, player: int) -> float:  # noqa: N802
        """1 or -1 for a player, who is to move, where the game is won or lost; else 0."""
        return float(self._compiled.outcome(self.getCanonicalForm(board, player)))

    def getCanonicalForm(self, board: Board, player: int) -> Board:  # noqa: N802
        """The board as player 1 would see it in place of this player."""
        canonical = np.array(_checked_board(board, self.getBoardSize()))
        canonical[0] *= _checked_player(player)
        return canonical

    def getSymmetries(self, board: Board, pi: Any) -> list[tuple[Board, NDArray[Any]]]:  # noqa: N802
        """The 32 symmetric forms of a canonical board with those of a policy, the given ones first."""
        boards = np.asarray(self._compiled.symmetric(_checked_board(board, self.getBoardSize())))
        return _symmetric(boards, pi, self.game.action_symmetries)

    def stringRepresentation(self, board: Board) -> bytes:  # noqa: N802
        """A key of a board."""
        return board.tobytes()

    def display(self, board: Board) -> None:
        """Print a board."""
        print(self.game.text(self.game.state_of(board)))


class _SantoriniFunctions:
    """The compiled functions of a canonical board."""

    def __init__(self, game: Santorini) -> None:
        def state(board: Int8[Array, "2 size size"]) -> SantoriniState:
            return santorini_rules.state_of(game.config, board, jnp.int32(0))

        def after(
            board: Int8[Array, "2 size size"], action: Int32[Array, ""]
        ) -> tuple[Int8[Array, "2 size size"], Bool[Array, ""]]:
            before = state(board)
            return game.canonical_board_of(game.apply(before, action)), game.is_legal(before, action)

        def outcome(board: Int8[Array, "2 size size"]) -> Int32[Array, ""]:
            # Won by a player who is yet asked to move: not in play, where the opponent is asked.
            won = jnp.any((board[0] > 0) & (board[1] == 3))
            return jnp.where(won, 1, jnp.where(game.is_terminal(state(board)), -1, 0))

        def symmetric(board: Int8[Array, "2 size size"]) -> Int8[Array, "symmetries 2 size size"]:
            def one_form(index: Int32[Array, ""]) -> Int8[Array, "2 size size"]:
                return game.canonical_board_of(game.transform(state(board), index))

            return jax.vmap(one_form)(jnp.arange(game.num_symmetries, dtype=jnp.int32))

        self.after = jax.jit(after)
        self.legal = jax.jit(lambda board: game.legal_action_mask(state(board)))
        self.outcome = jax.jit(outcome)
        self.symmetric = jax.jit(symmetric)


class PolyominoGame:
    """A polyomino game for two players: Tilewe for two, the two Duos, and the classic game with two colours each.

    A board is ``int8[blocks * planes, n, n]``, of zeros and ones, y = 0 being the bottom row: a block for each colour, those of
    player 1 first, of a player with two colours the one first that moves first. The planes of a block are named by
    ``plane_names``. The canonical form exchanges the blocks of the players; as blocks show the start cells of their colours, it
    tells the rules whose colours they are.

    Players alternate, so that passing is an action here, ``getActionSize() - 1``: the only one of a colour that has no other,
    which is out from then on.

    Args:
      game: the name of a game, or a game.
      **options: its options.
    """

    def __init__(self, game: Polyomino | str = "duo", /, **options: Any) -> None:
        if game == "tilewe":
            options = {"players": 2, **options}
        value = as_game(game, options)
        if not isinstance(value, Polyomino) or value.num_players != 2:
            raise ValueError(f"this takes a polyomino game for two players, not {value.id} for {value.num_players}")
        if len(set(value.config.start_cells)) not in (1, value.config.colors):
            raise ValueError("the start cells of the colours must be all the same or all different")
        self.game = value

    @property
    def _compiled(self) -> "_PolyominoFunctions":
        return _functions_of(_PolyominoFunctions, self.game)

    @cached_property
    def plane_names(self) -> tuple[str, ...]:
        """The name of each plane of a block."""
        pieces = (f"has {PIECE_NAMES[piece]}" for piece in self.game.config.pieces)
        return "cells", "start cells", "out", "last piece was O1", *pieces

    def getInitBoard(self) -> Board:  # noqa: N802
        """The board at the start, with player 1 to move."""
        return np.array(self._compiled.initial())

    def getBoardSize(self) -> tuple[int, int, int]:  # noqa: N802
        """The shape of a board."""
        config = self.game.config
        return config.colors * len(self.plane_names), config.size, config.size

    def getActionSize(self) -> int:  # noqa: N802
        """Number of action ids, the pass included."""
        return self.game.config.num_placements + 1

    def getNextState(self, board: Board, player: int, action: SupportsIndex) -> tuple[Board, int]:  # noqa: N802
        """The board after a legal action of a player, and the next player.

        Raises ``IllegalActionError`` for an illegal action, ``TypeError`` for other values than one integer.
        """
        action = checked_action(action, self.getActionSize())
        after, legal = self._compiled.after(self.getCanonicalForm(board, player), np.int32(action))
        _require_legal(action, legal)
        return self.getCanonicalForm(np.array(after), player), -player

    def getValidMoves(self, board: Board, player: int) -> NDArray[np.int8]:  # noqa: N802
        """1 for each legal action of a player."""
        return np.array(self._compiled.legal(self.getCanonicalForm(board, player)), np.int8)

    def getGameEnded(self, board: Board, player: int) -> float:  # noqa: N802
        """1 or -1 for a player where the game is won or lost, ``DRAW`` where it is drawn; else 0."""
        return float(self._compiled.outcome(self.getCanonicalForm(board, player)))

    def getCanonicalForm(self, board: Board, player: int) -> Board:  # noqa: N802
        """The board as player 1 would see it in place of this player."""
        board = _checked_board(board, self.getBoardSize())
        return board if _checked_player(player) == 1 else np.roll(board, len(board) // 2, axis=0)

    def getSymmetries(self, board: Board, pi: Any) -> list[tuple[Board, NDArray[Any]]]:  # noqa: N802
        """The symmetric forms of a canonical board with those of a policy, the given ones first."""
        table = self.game.action_symmetries[:, : self.game.config.num_placements]
        passes = np.full((len(table), 1), self.game.config.num_placements, np.int32)
        boards = np.asarray(self._compiled.symmetric(_checked_board(board, self.getBoardSize())))
        return _symmetric(boards, pi, np.concatenate([table, passes], axis=1))

    def stringRepresentation(self, board: Board) -> bytes:  # noqa: N802
        """A key of a board."""
        return np.packbits(board).tobytes()

    def display(self, board: Board) -> None:
        """Print a board with player 1 to move."""
        print(self.game.text(self._compiled.state(jnp.asarray(board, jnp.int8))))


class _PolyominoFunctions:
    """The compiled functions of a canonical board."""

    def __init__(self, game: Polyomino) -> None:
        config = game.config
        self._config = config
        self._shape = config.colors, -1, config.size, config.size
        starts = np.zeros((config.colors, config.size, config.size), np.int8)
        for color, cells in enumerate(config.start_cells):
            for x, y in cells:
                starts[color, y, x] = 1
        self._starts = starts
        self._game = game
        # The colours of the blocks at the start: those of player 1, then those of player -1.
        self._order = np.arange(config.colors, dtype=np.int32).reshape(config.colors_per_player, 2).T.ravel()
        self.state = jax.jit(self._state)
        self.initial = jax.jit(lambda: self._board(game.init(jax.random.key(0)), jnp.asarray(self._order)))
        self.after = jax.jit(self._after)
        self.legal = jax.jit(self._legal)
        self.outcome = jax.jit(self._outcome)
        self.symmetric = jax.jit(self._symmetric)

    def _colors(self, board: Int8[Array, "planes size size"]) -> Int32[Array, "colors"]:
        """The colour of each block, by its start cells; any where all have the same, and so the same rules."""
        if len(set(self._config.start_cells)) == 1:
            return jnp.asarray(self._order, jnp.int32)
        shown = board.reshape(self._shape)[:, 1]
        same = jnp.all(shown[:, None] == self._starts[None], axis=(2, 3))
        return jnp.argmax(same, axis=1).astype(jnp.int32)

    def _state(self, board: Int8[Array, "planes size size"]) -> PolyominoState:
        """The state of a board, in which the colour of the first block is to move, whether it can or not."""
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
        """The board of a state whose blocks are of these colours."""
        pieces = np.array(self._config.pieces, np.uint32)
        has = (state.hands[colors][:, None] >> pieces[None]) & np.uint32(1) != 0
        flags = jnp.concatenate([jnp.stack([state.out[colors], state.monomino_last[colors]], axis=1), has], axis=1)
        cells = unpack_boards(self._config, state.occupied[colors])
        spatial = jnp.stack([cells, jnp.asarray(self._starts)[colors] > 0], axis=1)
        size = self._config.size
        constant = jnp.broadcast_to(flags[..., None, None], (*flags.shape, size, size))
        return jnp.concatenate([spatial, constant], axis=1).astype(jnp.int8).reshape(-1, size, size)

    def _is_out(self, state: PolyominoState) -> Bool[Array, ""]:
        """Whether the colour to move can place nothing, or has passed."""
        return state.out[state.current_color] | jnp.all(state.legal_counts == 0)

    def _legal(self, board: Int8[Array, "planes size size"]) -> Bool[Array, "actions"]:
        return self._legal_in(self._state(board))

    def _legal_in(self, state: PolyominoState) -> Bool[Array, "actions"]:
        is_out = self._is_out(state)
        placements = self._game.legal_action_mask(state)[: self._config.num_placements] & ~is_out
        return jnp.append(placements, is_out | self._config.voluntary_pass)

    def _after(
        self, board: Int8[Array, "planes size size"], action: Int32[Array, ""]
    ) -> tuple[Int8[Array, "planes size size"], Bool[Array, ""]]:
        """The canonical board of the same player after an action, and whether that is legal; its next colour comes first."""
        state, colors = self._state(board), self._colors(board)
        passes = action == self._config.num_placements
        # A pass of a colour that is blocked, or of one that is out already, is action -1 of the rules.
        voluntary = passes & self._config.voluntary_pass & ~self._is_out(state)
        played = self._game.apply_deferred(state, jnp.where(passes & ~voluntary, -1, action))
        own = self._config.colors_per_player
        after = self._board(played, jnp.concatenate([jnp.roll(colors[:own], -1), colors[own:]]))
        return after, self._legal_in(state)[action]

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

        def one_form(index: Int32[Array, ""]) -> Int8[Array, "planes size size"]:
            return self._board(self._game.transform(state, index), colors)

        return jax.vmap(one_form)(jnp.arange(self._game.num_symmetries, dtype=jnp.int32))


def _functions_of(kind: type[F], game: Any) -> F:
    """The compiled functions of a game, which are kept apart from it so that games can be pickled."""
    require_backend()
    functions: F = _compiled_functions(kind, game)  # type: ignore[arg-type]
    return functions


@lru_cache(maxsize=8)
def _compiled_functions(kind: Any, game: Any) -> Any:
    return kind(game)


def _checked_board(board: Any, shape: tuple[int, int, int]) -> Board:
    """A board as ``int8``. Raises ``ValueError`` for another shape, ``TypeError`` for other values than integers."""
    array = np.asarray(board)
    if array.shape != shape:
        raise ValueError(f"a board of this game must have the shape {shape}, got {array.shape}")
    if not np.issubdtype(array.dtype, np.number):
        raise TypeError(f"a board must be an array of integers, got {array.dtype}")
    return array.astype(np.int8, copy=False)


def _checked_player(player: Any) -> int:
    if player not in (1, -1):
        raise ValueError(f"player must be 1 or -1, got {shown(player)}")
    return int(player)


def _require_legal(action: int, legal: Any) -> None:
    if not legal:
        raise IllegalActionError(f"action {action} is illegal: it is not one of the legal actions, see getValidMoves")


def _symmetric(boards: NDArray[Any], pi: Any, table: NDArray[np.int32]) -> list[tuple[Board, NDArray[Any]]]:
    """Boards with the policy after each symmetry, by the ids that actions have after it."""
    pi = np.asarray(pi)
    forms = []
    for board, actions in zip(boards, table, strict=True):
        moved = np.zeros_like(pi)
        moved[actions] = pi
        forms.append((np.array(board), moved))
    return forms
