"""The form of a game in which ``tilewe_jax.search.solve`` searches endings.

A solver plays millions of moves from one position, so a game may translate that position into tables and a compact form.
``GameEndings`` needs no translation: its positions are the states of the game. All functions are functions of one position.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt32

from tilewe_jax.bits import WORD_BITS, hash32, pack_words

Tables = TypeVar("Tables")
Position = TypeVar("Position")

MAX_MARGIN = 1 << 20
"""Larger than any margin."""
MAX_PRIORITY = 4095
"""Largest priority of a move; the product with the number of moves must be an int32."""
_STEPS_PER_LOGIT = 64
"""Priority steps per unit of a heuristic logit."""


class Start(NamedTuple):
    """The start of a search of an ending."""

    tables: Any
    """Arrays that stay constant during the search."""
    position: Any
    is_supported: Bool[Array, ""]
    """False if the position has too many moves for this form."""


class Endings(ABC, Generic[Tables, Position]):
    """The rules of a two-player game in a form for exhaustive search, starting from one position.

    A *margin* is an integer from the view of seat 0 whose sign is the outcome: positive if seat 0 wins, 0 for a tie.
    """

    deepens = False
    """Whether to search with increasing depth limits, for games that are rarely searched to the end."""

    @property
    @abstractmethod
    def num_moves(self) -> int:
        """Number of move ids."""

    @property
    @abstractmethod
    def max_plies(self) -> int:
        """Upper bound of the number of moves to the end of the game."""

    @property
    def num_words(self) -> int:
        """Number of words of a packed set of moves."""
        return -(-self.num_moves // WORD_BITS)

    @abstractmethod
    def start(self, state: Any) -> Start:
        """Translate a state of the game."""

    @abstractmethod
    def moves(self, tables: Tables, position: Position) -> UInt32[Array, "words"]:
        """The moves to search in a position that is not decided by its bounds, as a packed set."""

    def moves_without(self, tables: Tables, position: Position, action: Int32[Array, ""]) -> UInt32[Array, "words"]:
        """The result of ``moves`` if ``action`` were illegal; the action -1 changes nothing."""
        actions = jax.vmap(lambda move: self.action(tables, move))(jnp.arange(self.num_moves, dtype=jnp.int32))
        return self.moves(tables, position) & ~pack_words(actions == action)

    def priorities(self, tables: Tables, position: Position) -> Int32[Array, "moves"]:
        """The order in which moves are tried, largest first: 0 to ``MAX_PRIORITY``. By default all are equal."""
        del tables, position
        return jnp.zeros(self.num_moves, jnp.int32)

    def dominated(self, tables: Tables, position: Position, move: Int32[Array, ""]) -> UInt32[Array, "words"]:
        """A set of moves that are certainly not better than ``move`` for the player to move. By default empty."""
        del tables, position, move
        return jnp.zeros(self.num_words, jnp.uint32)

    @abstractmethod
    def play(self, tables: Tables, position: Position, move: Int32[Array, ""]) -> Position:
        """The position after a move and all forced passes."""

    @abstractmethod
    def player(self, tables: Tables, position: Position) -> Int32[Array, ""]:
        """The player to move."""

    @abstractmethod
    def bounds(self, tables: Tables, position: Position) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        """A lower and an upper bound of the margin under best play; equal at the end of the game."""

    @abstractmethod
    def key(self, tables: Tables, position: Position) -> tuple[UInt32[Array, "3"], Int32[Array, ""]]:
        """A hash and an offset, such that positions with equal hashes have equal margins minus offsets."""

    @abstractmethod
    def action(self, tables: Tables, move: Int32[Array, ""]) -> Int32[Array, ""]:
        """The action id of a move."""


@dataclass(frozen=True)
class GameEndings(Endings[None, Any]):
    """The endings of any two-player game without hidden information, by the functions of the ``Game`` contract.

    The margin is the difference of the scores, at least 1 for a win; in games with a lookahead it is only the outcome.
    """

    game: Any
    deepens = True

    @property
    def num_moves(self) -> int:
        """The number of actions."""
        return int(self.game.num_actions)

    @property
    def max_plies(self) -> int:
        """The largest number of actions of a game."""
        return int(self.game.max_steps)

    def start(self, state: Any) -> Start:
        """Return the state itself."""
        return Start(None, state, jnp.asarray(True))

    def moves(self, tables: None, position: Any) -> UInt32[Array, "words"]:
        """The legal actions; in games with a lookahead without actions that are proven to be worse than others."""
        return self.moves_without(tables, position, jnp.int32(-1))

    def moves_without(self, tables: None, position: Any, action: Int32[Array, ""]) -> UInt32[Array, "words"]:
        """The moves that are best by the lookahead when ``action`` is illegal, which may be other moves than in ``moves``."""
        legal = self.game.legal_action_mask(position) & (jnp.arange(self.num_moves, dtype=jnp.int32) != action)
        if self.game.has_lookahead:
            outcomes = self._outcomes(position, legal)
            legal = legal & (outcomes == jnp.max(outcomes))
        return pack_words(legal)

    def priorities(self, tables: None, position: Any) -> Int32[Array, "moves"]:
        """The order of the heuristic logits."""
        actions = jnp.arange(self.num_moves, dtype=jnp.int32)
        logits: Array = self.game.heuristic_logits(position, actions)
        steps = jnp.clip(logits * _STEPS_PER_LOGIT, -(MAX_PRIORITY // 2), MAX_PRIORITY // 2)
        return steps.astype(jnp.int32) + MAX_PRIORITY // 2

    def play(self, tables: None, position: Any, move: Int32[Array, ""]) -> Any:
        """``Game.apply``."""
        return self.game.apply(position, move)

    def player(self, tables: None, position: Any) -> Int32[Array, ""]:
        """``Game.current_player``."""
        player: Array = self.game.current_player(position)
        return player

    def bounds(self, tables: None, position: Any) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        """The margin at the end, or of an outcome that the lookahead of the game proves; otherwise unlimited."""
        game, is_terminal = self.game, self.game.is_terminal(position)
        returns, scores = game.returns(position), game.scores(position)
        margin = jnp.sign(returns[0] - returns[1]).astype(jnp.int32)
        if game.has_lookahead:
            best = jnp.max(self._outcomes(position, game.legal_action_mask(position)))
            is_known = is_terminal | (best != 0)
            margin = jnp.where(is_terminal, margin, jnp.where(game.current_player(position) == 0, best, -best))
        else:
            is_known = is_terminal
            margin = margin * jnp.maximum(margin * (scores[0] - scores[1]), 1)
        limits = (-1, 1) if game.has_lookahead else (-MAX_MARGIN, MAX_MARGIN)
        low, high = (jnp.where(is_known, margin, limit).astype(jnp.int32) for limit in limits)
        return low, high

    def key(self, tables: None, position: Any) -> tuple[UInt32[Array, "3"], Int32[Array, ""]]:
        """A hash of the whole state."""
        return hashed(as_words(position)), jnp.int32(0)

    def action(self, tables: None, move: Int32[Array, ""]) -> Int32[Array, ""]:
        """The move itself."""
        return move

    def _outcomes(self, position: Any, legal: Bool[Array, "moves"]) -> Int32[Array, "moves"]:
        """Proven outcomes of all actions, see ``Game.outcomes_of_actions``; less than a loss for illegal actions."""
        outcomes = self.game.outcomes_of_actions(position, jnp.arange(self.num_moves, dtype=jnp.int32))
        return jnp.where(legal, outcomes, -2)


def as_words(tree: Any) -> UInt32[Array, "words"]:
    """Convert a pytree of arrays to one vector of words: 32-bit numbers unchanged, smaller ones in a word each."""
    return jnp.concatenate([_leaf_words(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def from_words(words: UInt32[Array, "words"], like: Any) -> Any:
    """Convert words back to a pytree with the shapes and dtypes of ``like``; the inverse of ``as_words``."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size for leaf in leaves]).tolist()
    parts = [words[end - leaf.size : end].reshape(leaf.shape) for leaf, end in zip(leaves, ends, strict=True)]
    return jax.tree.unflatten(structure, [_from_word(part, leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)])


def _leaf_words(leaf: Array) -> Array:
    if leaf.dtype.itemsize == 4 and leaf.dtype != jnp.uint32:
        return jax.lax.bitcast_convert_type(leaf, jnp.uint32)
    return leaf.astype(jnp.uint32)


def _from_word(words: Array, dtype: Any) -> Array:
    if dtype.itemsize == 4 and dtype != jnp.uint32:
        return jax.lax.bitcast_convert_type(words, dtype)
    return words.astype(dtype)


def hashed(words: UInt32[Array, "words"]) -> UInt32[Array, "3"]:
    """Hash words into three pseudorandom words."""
    index = jnp.arange(words.shape[0], dtype=jnp.int32)
    mixed = hash32(words, index + 1)
    factors = np.random.default_rng(0).integers(0, 1 << 31, (3, words.shape[0]), np.uint32) * np.uint32(2) + np.uint32(1)
    sums = jnp.sum(mixed[None] * jnp.asarray(factors), axis=1, dtype=jnp.uint32)
    return hash32(sums, jnp.zeros(3, jnp.int32))
