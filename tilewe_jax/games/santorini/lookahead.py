"""Exact lookahead: actions that provably win or lose within the next three turns, found with sets of cells and without search.

Only a build can stop a worker who stands beside a cell of level 3 on level 2, a dome on that cell. So a turn wins where it
leaves the opponent no climb of their own and more threatened cells than they can dome; whether there is such a turn needs no
enumeration of builds and replies, only of the sixteen moves. What is proven is true; a few rare wins are not found, as that of
a player who domes a cell that they threaten themselves, or whose opponent is left without a turn later on.

Functions whose annotations say ``*lanes`` are elementwise, see ``rules``.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.bitboard import Bitboard, Word, full_board, neighbours, shifted, singleton
from tilewe_jax.games.santorini.config import DIRECTIONS, Config
from tilewe_jax.games.santorini.rules import Levels, State


class Reach(NamedTuple):
    """The neighbours of the workers of a player, by the height that they stand on."""

    all: Bitboard
    from_1: Bitboard
    """Those of workers on level 1 or 2."""
    from_2: Bitboard
    """Those of workers on level 2, who climb from there to level 3."""


def outcome_of_action(config: Config, state: State, action: Int32[Array, "*lanes"]) -> Int32[Array, "*lanes"]:
    """What a legal action provably leads to: 1 a win of the player to move, -1 a loss, 0 neither.

    It wins where it ends the game, or where the opponent cannot prevent a climb to level 3 in the turn after next. It loses
    where the opponent can climb at once, or has such a winning action. 0 while workers are placed.
    """
    levels, workers = rules.moved(config, state, action)
    opponent, own = ([singleton(config, worker) for worker in pair] for pair in (workers[:2], workers[2:]))
    wins = _has_won(config, levels, own[0] | own[1], opponent[0] | opponent[1])
    loses = _can_win(config, levels, opponent, own[0] | own[1])
    is_over = ((own[0] | own[1]) & levels[2]).any()
    outcome = jnp.where(is_over | wins, 1, jnp.where(loses, -1, 0))
    return jnp.where(rules.is_placing(config, state) | (action < 0), 0, outcome)


def _has_won(config: Config, levels: Levels, own: Bitboard, opponent: Bitboard) -> Bool[Array, "*lanes"]:
    """Whether the opponent, to move, has lost: has no turn, or can neither climb to level 3 nor stop the other's climb."""
    free = full_board(config) & ~(own | opponent | levels[3])
    reach = reach_of(config, levels, opponent)
    replies = free & climbable(levels, reach)
    threats = neighbours(config, own & levels[1]) & levels[2] & free
    parries = replies & neighbours(config, threats)
    unstoppable = _has_two(threats) | (threats.any() & ~parries.any())
    return ~replies.any() | (unstoppable & ~(replies & levels[2]).any())


def _can_win(config: Config, levels: Levels, own: list[Bitboard], opponent: Bitboard) -> Bool[Array, "*lanes"]:
    """Whether a player, to move, can climb to level 3, or after any reply to the turn that this player makes now.

    Args:
        config: the board.
        levels: the levels.
        own: the cells of the workers of the player to move.
        opponent: the cells of the other's workers.
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
            # Cells that the opponent would climb must be domed now, and none be made.
            to_dome = theirs.from_2 & level_3 & free
            must_dome = _mask(to_dome.any())
            dangers = theirs.from_2 & level_2
            builds = neighbours(config, target) & free & ((to_dome & must_dome) | (~(dangers | level_3 & climbs) & ~must_dome))
            threats = climbs & level_3 & ~to_dome
            more = climbs & level_2 & ~level_3
            # A build on the only cell from which the threat is parried can be one that is too high for the opponent then.
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
    """The neighbours of a set of workers."""
    return Reach(*(neighbours(config, cells) for cells in (workers, workers & levels[0], workers & levels[1])))


def climbable(levels: Levels, reach: Reach) -> Bitboard:
    """The cells that workers can climb to, free or not."""
    return (reach.all & ~levels[1]) | (reach.from_1 & ~levels[2]) | reach.from_2


def _has_two(cells: Bitboard) -> Bool[Array, "*lanes"]:
    """Whether a set has two cells or more."""
    rest, seen = jnp.zeros_like(cells.words[0]), jnp.zeros_like(cells.words[0])
    for word in cells.words:
        rest = rest | (word & (word - 1)) | jnp.where(seen != 0, word, 0)
        seen = seen | word
    return rest != 0


def _mask(flag: Bool[Array, "*lanes"]) -> Word:
    return rules.mask_where(flag)
