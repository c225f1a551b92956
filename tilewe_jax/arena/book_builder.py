"""Builds opening books by drop-out expansion (Lincke 2000, "Strategies for the automatic construction of opening books")."""

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

from tilewe_jax.agents import Agent, AgentSpec
from tilewe_jax.agents import agent as make_agent
from tilewe_jax.agents import book as books
from tilewe_jax.agents.book import DIGITS, Book, BookMove, BookPosition, PositionKey, key_text, key_words
from tilewe_jax.agents.reports import RootReport, search_report
from tilewe_jax.game import Game
from tilewe_jax.settings import setting, validate

MAX_MOVES = 8
"""Maximum number of moves that a position keeps."""
MIN_FRACTION = 0.005
"""Minimum fraction of the visits of a position that a move needs to be kept."""
_CHUNK = 64
"""Number of lines that are replayed in one call."""

_Line = tuple[int, ...]
"""The first actions of a game."""


@dataclass(frozen=True)
class BookSettings:
    """Settings of the construction of a book. Raises ``ValueError`` for numbers out of range."""

    plies: int = setting(4, 1)
    """The book contains positions with fewer actions than this."""
    full_plies: int = setting(0, 0)
    """New positions with fewer actions than this keep all legal moves, which are expanded first."""
    ply_loss: float = setting(0.02, 0, 1, positive=True)
    """Loss of value that costs the same as one ply."""
    searches: int = setting(4, 1)
    """Number of independent searches of a position, from which errors are estimated."""
    batch: int = setting(8, 1)
    """Number of positions that are searched in one call."""
    seed: int = 0
    """Seed of the searches."""

    def __post_init__(self) -> None:
        validate(self)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Reached:
    """The position after a line."""

    key: PositionKey
    player: Int32[Array, ""]
    is_over: Bool[Array, ""]
    returns: Float32[Array, "P"]


class BookBuilder:
    """Extends a book by the positions that matter most.

    A position has a cost: the number of plies before it, plus the losses of value of the moves that lead to it, divided by
    ``ply_loss``. The positions with the lowest cost are searched next. Values are backed up after every batch, so a move that
    turns out bad makes room for others. The result depends on the book and the settings, not on interruptions.

    Args:
        agent: the agent whose search values the positions.
        book: the book to extend, for the same game.
        settings: settings of the construction.

    Raises ``ValueError`` for an agent that does not search or keeps to a time limit, or a game without books.
    """

    def __init__(self, agent: Agent, book: Book, settings: BookSettings) -> None:
        books.check_game(agent.game)
        if agent.spec is None or not agent.is_search:
            raise ValueError(f"{agent.name} does not search; a book needs a search, like best or puct")
        if agent.spec.seconds is not None:
            raise ValueError(f"{agent.name} keeps to a time limit; a book needs a number of simulations")
        self.game: Game[Any] = agent.game
        self.book, self.settings = book, settings
        spec = replace(agent.spec, book=False, book_margin=0.0)
        self._name = str(spec)
        complete = replace(spec.search, stop_early=False, exact_endings=False)
        self._agent = replace(agent, spec=replace(spec, search=complete, reuse_subtree=False), book=None)
        spec.check_memory(self.game, settings.batch * settings.searches)
        self._width = max(settings.plies, *(len(position.actions) + 1 for position in book.positions.values()), 0)
        """Maximum number of actions of a line."""
        self._compiled_search = jax.jit(self._search)
        self._compiled_reach = jax.jit(jax.vmap(self._reach))
        self._host = self.game.host(self.game.init(jax.random.key(0)))

    def extend(self, seconds: float | None = None, stopwatch: Callable[[], float] = time.monotonic) -> Iterator[int]:
        """Search batches of positions; yields the number of new positions after each batch, when the book is consistent.

        Args:
            seconds: time limit. No batch starts that is expected to exceed it, except for the first one.
            stopwatch: clock.
        """
        started, duration, is_first = stopwatch(), 0.0, True
        while lines := self.wanted()[: self.settings.batch]:
            before = stopwatch()
            if seconds is not None and before - started + duration > seconds:
                return
            for position in self._searched(lines):
                self.book.positions[position.key] = position
            # The first batch compiles, so its duration says little about the next one.
            duration, is_first = 0.0 if is_first else stopwatch() - before, False
            yield len(lines)

    def wanted(self) -> list[_Line]:
        """Return the lines of the missing positions by their cost; the positions of ``full_plies`` come first."""
        positions, settings = self.book.positions, self.settings
        if not positions:
            return [()]
        root = next(key for key, position in positions.items() if not position.actions)
        evaluated = self.book.evaluated()
        costs: dict[str, float] = {root: 0.0}
        lines: dict[str, _Line] = {}
        heap = [(0.0, root)]
        while heap:
            cost, key = heapq.heappop(heap)
            position, moves = positions[key], evaluated[key]
            if cost > costs[key] or len(position.actions) + 1 >= settings.plies:
                continue
            is_full = len(position.actions) < settings.full_plies
            best = moves[0].value[position.player]
            for move in moves:
                loss = max(0.0, best - move.value[position.player])
                total = cost + 1 + loss / settings.ply_loss
                if move.next is None or not (move.visits or is_full) or total >= costs.get(move.next, float("inf")):
                    continue
                costs[move.next] = total
                lines[move.next] = (*position.actions, move.action)
                if move.next in positions:
                    heapq.heappush(heap, (total, move.next))
        missing = lines.keys() - positions.keys()
        return [lines[key] for key in sorted(missing, key=lambda key: (len(lines[key]) > settings.full_plies, costs[key], key))]

    def renew_keys(self) -> None:
        """Compute all keys: files lack keys of positions outside of the book, and the form of states may have changed."""
        old, self.book.positions = self.book.positions, {}
        reached = self._reached([position.actions for position in old.values()])
        following = iter(self._reached([(*each.actions, move.action) for each in old.values() for move in each.moves]))
        for position, (key, symmetry, _, _) in zip(old.values(), reached, strict=True):
            moves = []
            for move, (next_key, _, _, returns) in zip(position.moves, following, strict=False):
                moves.append(replace(move, next=None if returns else next_key))
            self.book.positions[key] = replace(position, key=key, symmetry=symmetry, moves=tuple(moves))

    @property
    def note(self) -> str | None:
        """Note for the user about the network."""
        return self._agent.note

    # ---- Searches

    def _searched(self, lines: Sequence[_Line]) -> list[BookPosition]:
        """Search the positions after lines."""
        settings, reached = self.settings, self._reached(lines)
        filled = [*lines, *[lines[0]] * (settings.batch - len(lines))]
        words = [key_words(key) for key, _, _, _ in reached]
        words += [words[0]] * (settings.batch - len(lines))
        report = jax.device_get(self._compiled_search(self._agent, self._padded(filled), np.array(words, np.uint32)))
        if self._name not in self.book.agents:
            self.book.agents.append(self._name)
        return [
            self._position(line, reached[index], jax.tree.map(lambda leaf, index=index: leaf[index], report))
            for index, line in enumerate(lines)
        ]

    def _search(self, agent: Agent, lines: Int32[Array, "B T"], words: Any) -> RootReport:
        """Return the reports of ``searches`` searches of each position, ``[B, searches, ...]``."""
        settings = self.settings

        def keys_of(words: Any) -> Any:
            key = jax.random.key(settings.seed)
            return jax.random.split(jax.random.fold_in(jax.random.fold_in(key, words[0]), words[1]), settings.searches)

        count = settings.batch * settings.searches
        states = jax.vmap(partial(books.state_after, self.game))(lines)
        states = jax.tree.map(lambda leaf: jnp.repeat(leaf, settings.searches, axis=0), states)
        keys = jax.vmap(keys_of)(words).reshape(count)
        reports = jax.vmap(partial(search_report, agent.built(), params=agent.weights))(states, keys)
        shape = settings.batch, settings.searches
        result: RootReport = jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), reports)
        return result

    def _position(self, line: _Line, reached: "_OnHost", report: RootReport) -> BookPosition:
        """Merge the searches of a position."""
        key, symmetry, player, _ = reached
        candidates, visits, values = (np.asarray(leaf)[:, 0] for leaf in (report.candidates, report.visits, report.child_value))
        total: dict[int, int] = {}
        for action, count in zip(candidates.ravel().tolist(), visits.ravel().tolist(), strict=True):
            if count:
                total[action] = total.get(action, 0) + count
        # Merging symmetric moves leaves fewer moves, so more candidates are merged than kept.
        actions = sorted(total, key=lambda action: (-total[action], action))[: 2 * MAX_MOVES]
        is_full = len(line) < self.settings.full_plies
        if is_full:
            actions = [*total, *(action for action in self._legal_actions(line) if action not in total)]
        groups: dict[Any, list[int]] = {}
        outcomes: dict[Any, tuple[float, ...] | None] = {}
        for action, (next_key, _, _, returns) in zip(actions, self._reached([(*line, each) for each in actions]), strict=True):
            groups.setdefault(next_key, []).append(action)
            outcomes[next_key] = returns
        moves = []
        for next_key, group in groups.items():
            returns = outcomes[next_key]
            counts, sums = _statistics(group, candidates, visits, values)
            number = int(counts.sum())
            if number:
                value, error = sums.sum(axis=0) / number, _error(counts, sums[:, player])
            else:
                value, error = np.asarray(report.value).mean(axis=0), 1.0
            if returns is not None:
                value, error = np.array(returns), 0.0
            rounded = tuple(min(1.0, max(0.0, round(float(each), DIGITS))) for each in value)
            first = min(group, key=lambda action: (-total.get(action, 0), action))
            moves.append(BookMove(first, number, rounded, round(error, DIGITS), None if returns is not None else next_key))
        moves.sort(key=lambda move: (-move.visits, move.action))
        if not is_full:
            least = MIN_FRACTION * sum(move.visits for move in moves)
            moves = [move for move in moves if move.visits >= least][:MAX_MOVES]
        agent = self.book.agents.index(self._name)
        return BookPosition(key, line, symmetry, player, agent, int(visits.sum()), tuple(moves))

    def _legal_actions(self, line: _Line) -> list[int]:
        position = self._host
        for action in line:
            position = position.after(action)
        return position.legal_actions()

    # ---- Lines

    def _reach(self, line: Int32[Array, "T"]) -> _Reached:
        game, state = self.game, books.state_after(self.game, line)
        key = books.position_key(game, state)
        return _Reached(key, game.current_player(state), game.is_terminal(state), game.returns(state))

    def _reached(self, lines: Sequence[_Line]) -> list["_OnHost"]:
        """Return key, symmetry and player of the position after each line, and the outcome if the game is over."""
        result: list[_OnHost] = []
        for first in range(0, len(lines), _CHUNK):
            part = list(lines[first : first + _CHUNK])
            reached = jax.device_get(self._compiled_reach(self._padded([*part, *[part[0]] * (_CHUNK - len(part))])))
            for index in range(len(part)):
                outcome = tuple(reached.returns[index].tolist()) if reached.is_over[index] else None
                key = key_text(reached.key.words[index])
                result.append((key, int(reached.key.symmetry[index]), int(reached.player[index]), outcome))
        return result

    def _padded(self, lines: Sequence[_Line]) -> np.ndarray:
        padded = np.full((len(lines), self._width), -1, np.int32)
        for row, line in zip(padded, lines, strict=True):
            row[: len(line)] = line
        return padded


_OnHost = tuple[str, int, int, tuple[float, ...] | None]
"""Key, symmetry and player of a position, and its outcome if the game is over."""


def _statistics(
    actions: Sequence[int], candidates: np.ndarray, visits: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return visits ``[searches]`` and sums of values ``[searches, players]`` of equivalent actions by search."""
    is_chosen = np.isin(candidates, actions) & (visits > 0)
    counts = np.where(is_chosen, visits, 0)
    return counts.sum(axis=1), (counts[..., None] * values.astype(np.float64)).sum(axis=1)


def _error(counts: np.ndarray, sums: np.ndarray) -> float:
    """Return the standard error of a mean over several searches, see ``BookMove.error``."""
    total = counts.sum()
    bound = 0.5 / float(np.sqrt(total))
    used = counts > 0
    if used.sum() < 2:
        return bound
    weights = counts[used] / total
    differences = sums[used] / counts[used] - sums.sum() / total
    number = int(used.sum())
    between = float(np.sqrt((weights**2 * differences**2).sum() * number / (number - 1)))
    return min(1.0, max(bound, between))


def open_book(game: Game[Any], path: Path, agent: str, settings: BookSettings) -> BookBuilder:
    """Return the builder of a file, which may be new. Raises ``ValueError`` or ``OSError``."""
    spec = AgentSpec.parse(agent, game)
    book = books.read(game, path)[0] if path.exists() else Book(game)
    builder = BookBuilder(make_agent(spec, game), book, settings)
    builder.renew_keys()
    return builder
