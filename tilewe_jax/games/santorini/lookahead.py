"""Exact lookahead: proves wins and losses within the next three turns with sets of cells, without search.

A worker on level 2 next to a cell of level 3 threatens to climb; only a dome on that cell can stop the climb. A turn wins if
the opponent cannot climb and cannot dome all threatened cells. To find such a turn it suffices to enumerate the sixteen moves,
without builds and replies. All proofs are correct. Two rare kinds of wins are missed: a player who domes a cell that the player
threatens, and an opponent who has no turn later on.

Functions annotated with ``*lanes`` are elementwise, see ``rules``.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.bitboard import Bitboard, Word, full_board, neighbours, shifted, singleton
from tilewe_jax.games.santorini.config import DIRECTIONS, Config
from tilewe_jax.games.santorini.rules import Levels, State


class Reach(NamedTuple):
    """Neighbours of the workers of a player, by the level of the workers."""

    all: Bitboard
    """Neighbours of all workers."""
    from_1: Bitboard
    """Neighbours of workers on level 1 or 2."""
    from_2: Bitboard
    """Neighbours of workers on level 2."""


def outcome_of_action(config: Config, state: State, action: Int32[Array, "*lanes"]) -> Int32[Array, "*lanes"]:
    """Proven outcome of a legal action for the player to move: 1 win, -1 loss, 0 unknown.

    An action wins if it ends the game, or if the opponent can neither climb to level 3 nor prevent a climb in the turn after
    next. It loses if the opponent can climb, or has an action that wins in this sense. 0 while workers are placed.
    """
    levels, workers = rules.moved(config, state, action)
    opponent, own = ([singleton(config, worker) for worker in pair] for pair in (workers[:2], workers[2:]))
    wins = _has_won(config, levels, own[0] | own[1], opponent[0] | opponent[1])
    loses = _can_win(config, levels, opponent, own[0] | own[1])
    is_over = ((own[0] | own[1]) & levels[2]).any()
    outcome = jnp.where(is_over | wins, 1, jnp.where(loses, -1, 0))
    return jnp.where(rules.is_placing(config, state) | (action < 0), 0, outcome)


def _has_won(config: Config, levels: Levels, own: Bitboard, opponent: Bitboard) -> Bool[Array, "*lanes"]:
    """Return whether the opponent, to move, has no turn, or can neither climb to level 3 nor prevent the next climb."""
    free = full_board(config) & ~(own | opponent | levels[3])
    reach = reach_of(config, levels, opponent)
    replies = free & climbable(levels, reach)
    threats = neighbours(config, own & levels[1]) & levels[2] & free
    parries = replies & neighbours(config, threats)
    unstoppable = _has_two(threats) | (threats.any() & ~parries.any())
    return ~replies.any() | (unstoppable & ~(replies & levels[2]).any())


def _can_win(config: Config, levels: Levels, own: list[Bitboard], opponent: Bitboard) -> Bool[Array, "*lanes"]:
    """Return whether the player to move can climb to level 3, or has a turn after which every reply allows a climb.

    Args:
        config: the settings.
        levels: the levels.
        own: the cell of each worker of the player to move.
        opponent: the cells of the opponent's workers.
    """
    level_1, level_2, level_3, level_4 = levels
    theirs = reach_of(config, levels, opponent)
    result = (neighbours(config, (own[0] | own[1]) & level_2) & level_3 & full_board(config) & ~(opponent | level_4)).any()
    for worker, partner in (own, own[::-1]):
        targets = climbable(levels, reach_of(config, levels, worker)) & ~(partner | opponent | level_4 | level_3)
        for row, column in DIRECTIONS:
            target = shifted(config, worker, row * config.stride + column) & targets & full_board(config)
            free = full_board(config) & ~(target | partner | opponent | level_4)
            climbs = neighbours(config, (target | partner) & level_2) & free
            # The build must dome the cell that the opponent threatens, and must not create a new threat.
            to_dome = theirs.from_2 & level_3 & free
            must_dome = _mask(to_dome.any())
            dangers = theirs.from_2 & level_2
            builds = neighbours(config, target) & free & ((to_dome & must_dome) | (~(dangers | level_3 & climbs) & ~must_dome))
            threats = climbs & level_3 & ~to_dome
            more = climbs & level_2 & ~level_3
            # A build on the only cell that parries the threat can make this cell too high for the opponent.
            replies = free & ~level_3 & climbable(levels, theirs)
            parries = replies & neighbours(config, threats)
            still = free & ((theirs.all & ~level_1) | (theirs.from_1 & ~level_2) | (theirs.from_2 & ~level_3))
            blocks = parries & ~still
            with_one = more | _mask(~parries.any()) | (blocks & _mask(~_has_two(parries)))
            with_none = more & ~neighbours(config, replies)
            one = _mask(threats.any())
            winning = builds & ((with_one & one) | (with_none & ~one) | _mask(_has_two(threats)))
            result = result | (winning.any() & ~_has_two(to_dome))
    return result


def reach_of(config: Config, levels: Levels, workers: Bitboard) -> Reach:
    """Neighbours of a set of workers, by level."""
    return Reach(*(neighbours(config, cells) for cells in (workers, workers & levels[0], workers & levels[1])))


def climbable(levels: Levels, reach: Reach) -> Bitboard:
    """Cells that are low enough for the workers, free or not."""
    return (reach.all & ~levels[1]) | (reach.from_1 & ~levels[2]) | reach.from_2


def _has_two(cells: Bitboard) -> Bool[Array, "*lanes"]:
    """Return whether a set has at least two cells."""
    rest, seen = jnp.zeros_like(cells.words[0]), jnp.zeros_like(cells.words[0])
    for word in cells.words:
        rest = rest | (word & (word - 1)) | jnp.where(seen != 0, word, 0)
        seen = seen | word
    return rest != 0


def _mask(flag: Bool[Array, "*lanes"]) -> Word:
    return rules.mask_where(flag)
