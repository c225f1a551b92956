"""Conversions between the host API and JAX: boards and states, moves and actions. Imports JAX."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.games.polyomino.boards import words
from tilewe_jax.games.polyomino.config import tilewe
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.host import Position, bits
from tilewe_jax.games.polyomino.position import position_of_state
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.host import shared_win
from tilewe_jax.records import Record
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.move import Move

_GAME = PolyominoGame(tilewe())


def action_of_move(move: Move) -> int:
    """Return the action id of a move, for any number of players. Raises ``ValueError`` if it extends beyond the board."""
    return _GAME.action_of_name(str(move))


def moves_of_action(action: int, board: Board | None = None) -> list[Move]:
    """Return the moves that make a placement, one for each contact, in order; with ``board``, only its legal moves.

    Raises ``ValueError`` for an action that is not a placement of Tilewe.
    """
    moves = [Move.from_str(name) for name in _GAME.action_names(int(action))]
    return moves if board is None else [move for move in moves if board.is_legal(move)]


def state_of_board(board: Board) -> State:
    """Convert a board to a state of ``make("tilewe", players=board.n_players)``."""
    return state_of_position(board._position)


def board_of_state(state: State) -> Board:
    """Convert a state of Tilewe to a board with an empty history. Raises ``ValueError`` for states of other games."""
    players = state.hands.shape[0]
    board = Board(players)
    config = board._position.config
    if state.occupied.shape != (players, words(config)):
        raise ValueError(f"state must have boards of {words(config)} words, got {state.occupied.shape[-1]}")
    board._position = position_of_state(config, state)
    return board


def state_of_position(position: Position) -> State:
    """Convert a position of any polyomino game to a state."""
    config, geometry = position.config, position.geometry
    index = [config.bit(geometry.cell(bit)) for bit in range(geometry.board.bit_length())]
    occupied = np.zeros((config.colors, words(config)), np.uint32)
    for color, cells in enumerate(position.occupied):
        for bit in bits(cells):
            word, place = divmod(index[bit], WORD_BITS)
            occupied[color, word] |= np.uint32(1 << place)
    legal_counts = np.zeros(words(config), np.uint16)
    for _, anchor in position.placements(position.color):
        legal_counts[index[anchor] // WORD_BITS] += 1
    return State(
        occupied=jnp.asarray(occupied),
        hands=jnp.asarray(position.hands, jnp.uint32),
        out=jnp.asarray([bool(position.out >> color & 1) for color in range(config.colors)]),
        monomino_last=jnp.asarray(position.monomino_last),
        current_color=jnp.asarray(position.color, jnp.int32),
        legal_counts=jnp.asarray(legal_counts),
    )


def record_of_board(board: Board, players: Sequence[str] = ()) -> Record:
    """Return the record of a finished game with the names of its players by seat. Raises ``ValueError`` if it is unfinished."""
    if not board.finished:
        raise ValueError("the game must be finished")
    returns = (board.scores[0] / board._position.config.max_score,) if board.n_players == 1 else shared_win(board.scores)
    actions = tuple(action_of_move(move) for move in board.moves)
    return Record(None, actions, tuple(board.scores), returns, tuple(players))
