"""Agents that answer requests for analysis in blocks of positions, see ``tilewe_jax.interop.analysis``."""

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Key, UInt32

from tilewe_jax.agents import book as books
from tilewe_jax.agents.base import Agent, agent
from tilewe_jax.agents.book import BookMove
from tilewe_jax.agents.endings import solver_of
from tilewe_jax.agents.levels import is_name
from tilewe_jax.agents.reports import RootReport, report_of_tree, restricted_report, score_lead, search_report
from tilewe_jax.agents.spec import AgentSpec
from tilewe_jax.agents.timed_search import timed
from tilewe_jax.interop.analysis import Analysis, Candidate, Solved, block_size
from tilewe_jax.interop.analysis_requests import GameSpec, Played, Request
from tilewe_jax.registry import make
from tilewe_jax.search import Determinized, Search
from tilewe_jax.settings import accepts, printed
from tilewe_jax.utils.programs import Program, compile_all

MAX_PROGRAMS = 16
"""Maximum number of compiled searches to keep."""
MAX_STARTS = 256
"""Maximum number of initial states to keep for each search."""
_FIXED = {
    "network": "an analysis uses the network of its agent",
    "reuse_subtree": "an analysis searches each position separately",
    "stop_early": "an analysis runs all simulations",
    "exact_endings": "an analysis runs all simulations",
}
"""Settings of agents that a request cannot change, with the reason."""

Compiling = Callable[[], AbstractContextManager[Any]]


_LEAD_STREAM = 8
"""Folded into the key of a search for the playouts of the score lead."""


class SearchProgram:
    """The compiled search of one game by one agent.

    Positions are searched in blocks of 1, 4, 16, ... positions, padded with copies of the first position; each size is compiled
    on first use. Random numbers depend only on the seeds and the number of moves, so the result of a position does not depend
    on its block.

    Args:
        agent: an agent that searches.
        max_seconds: time limit of a block in seconds; ``None`` means no limit.
        batch: maximum size of a block.
        seed: seed of the random numbers.
        score_playouts: number of playouts for the score lead; 0 disables it.
        compiling: returns a context manager for compilation.

    Raises:
        ValueError: the agent does not search, or does not support a time limit.
        MemoryError: a single tree does not fit into memory.
    """

    def __init__(
        self,
        agent: Agent,
        max_seconds: float | None = None,
        *,
        batch: int = 64,
        seed: int = 0,
        score_playouts: int = 16,
        compiling: Compiling = nullcontext,
    ) -> None:
        if agent.spec is None or not agent.is_search:
            raise ValueError(f"{agent.name} does not search; an analysis needs a search, like puct or gumbel")
        max_seconds = agent.spec.seconds if max_seconds is None else max_seconds
        search_settings = replace(agent.spec.search, stop_early=False, exact_endings=False)
        book = books.load(agent.game, agent.spec.book) if agent.spec.book else None
        self._book = (book, book.evaluated()) if book else None
        """The opening book with its evaluated moves."""
        self._book_margin = agent.spec.book_margin
        spec = replace(agent.spec, search=search_settings, seconds=None, reuse_subtree=False, book=False, book_margin=0.0)
        self.agent, self.spec, self.game, self.max_seconds = replace(agent, spec=spec, book=None), spec, agent.game, max_seconds
        search = self.agent.built()
        if max_seconds is not None and not isinstance(search, Search):
            raise ValueError("max_seconds is not supported in games with hidden information")
        spec.evaluator.policy(self.game)  # for its error
        spec.check_memory(self.game, 1)
        self._num_rounds = search.num_rounds if isinstance(search, Search) else 0
        settings = search.search.settings if isinstance(search, Determinized) else search.settings
        self._score_weight = settings.score_weight or 0.0
        self._batch, self._compiling = batch, compiling
        self._score_playouts = score_playouts if self.game.num_players > 1 else 0
        self._key = jax.random.key(seed)
        self._initial_state = lru_cache(MAX_STARTS)(lambda deal: jax.device_get(self.game.init_from_deal(json.loads(deal))))
        self._compiled: dict[tuple[str, int], Any] = {}
        own = self.agent.identity
        self._identity = None if own is None else f"{own} {self._score_playouts}"

    @property
    def note(self) -> str | None:
        """Note for the user about the network."""
        return self.agent.note

    def analyze(self, positions: Sequence[Played]) -> list[Analysis]:
        """Analyze positions in blocks. Raises ``ValueError`` for an invalid deal."""
        size = self._batch
        while size > 1:
            try:
                self.spec.check_memory(self.game, size)
                break
            except MemoryError:
                size //= 2
        analyses: dict[int, Analysis] = {}
        for is_restricted in (False, True):
            chosen = [index for index, each in enumerate(positions) if (each.allowed is not None) == is_restricted]
            for start in range(0, len(chosen), size):
                part = chosen[start : start + size]
                block = self._analyze_block([positions[index] for index in part], size)
                analyses |= zip(part, block, strict=True)
        return [analyses[index] for index in range(len(positions))]

    def _analyze_block(self, positions: Sequence[Played], max_size: int) -> list[Analysis]:
        size = min(block_size(len(positions)), max_size)
        filled = [*positions, *[positions[0]] * (size - len(positions))]
        initial = [self._initial_state(json.dumps(position.deal)) for position in filled]
        starts = jax.tree.map(lambda *leaves: np.stack(leaves), *initial)
        actions = np.full((size, self.game.max_steps), -1, np.int32)
        for row, position in zip(actions, filled, strict=True):
            row[: len(position.actions)] = position.actions
        num_actions = np.array([len(position.actions) for position in filled], np.int32)
        steps = num_actions.max()
        states = self._function("replay", size, self._replay, starts, actions, steps)(starts, actions, steps)
        allowed = _padded_actions(filled)
        booked = self._booked(size, states, positions) if allowed is None else [None] * len(positions)
        if None not in booked:
            return [analysis for analysis in booked if analysis]
        seeds = np.array([position.seed for position in filled], np.uint32)
        keys = self._function("keys", size, _keys, self._key, num_actions, seeds)(self._key, num_actions, seeds)
        report, seconds = self._search_block(size, states, keys, allowed)
        leads = [None] * size
        if self._score_playouts:
            lead = self._function("lead", size, self._lead, states, report.action, keys)
            started = time.perf_counter()
            leads = np.asarray(lead(states, report.action, keys)).tolist()
            seconds += time.perf_counter() - started
        return [
            booked[index]
            or self._analysis(
                jax.tree.map(lambda leaf, index=index: leaf[index], report), leads[index], seconds, len(positions)
            )
            for index in range(len(positions))
        ]

    def _booked(self, size: int, states: Any, positions: Sequence[Played]) -> list[Analysis | None]:
        """Return the analyses of the positions of a block that are in the opening book, ``None`` for the others."""
        if self._book is None:
            return [None] * len(positions)
        book, evaluated = self._book
        located = jax.device_get(self._function("key", size, self._locate, states)(states))
        analyses: list[Analysis | None] = []
        for index, position in enumerate(positions):
            key = jax.tree.map(lambda leaf, index=index: leaf[index], located)
            moves = book.moves_in(key, evaluated)
            player = book.positions[books.key_text(key.words)].player if moves else 0
            analyses.append(self._analysis_of_moves(moves, player, position.seed, len(positions)) if moves else None)
        return analyses

    def _analysis_of_moves(self, moves: Sequence[BookMove], player: int, seed: int, batch: int) -> Analysis:
        """Return the analysis of a position in the opening book; its value is the value of the best move."""
        chosen = random.Random(seed).choice(books.good_moves(moves, player, self._book_margin))
        return Analysis(
            action=chosen.action,
            candidates=tuple(
                Candidate(move.action, move.visits, 0.0, move.value, (move.action,), move.error) for move in moves
            ),
            value=moves[0].value,
            score_lead=None,
            score_weight=self._score_weight,
            num_simulations=sum(move.visits for move in moves),
            seconds=0.0,
            batch=batch,
            is_book=True,
        )

    def _search_block(
        self, size: int, states: Any, keys: Key[Array, "B"], allowed: "np.ndarray | None" = None
    ) -> tuple[RootReport, float]:
        """Return the reports of a block on the host, and the seconds of the search without compilation."""
        if allowed is not None:
            name = f"search of {allowed.shape[1]} moves"
            search = self._function(name, size, self._search_restricted, self.agent, states, keys, allowed)
            started = time.perf_counter()
            restricted: RootReport = jax.device_get(search(self.agent, states, keys, allowed))
            return restricted, time.perf_counter() - started
        if self.max_seconds is None:
            search = self._function("search", size, self._search, self.agent, states, keys)
            started = time.perf_counter()
            report: RootReport = jax.device_get(search(self.agent, states, keys))
            return report, time.perf_counter() - started
        progress = self._function("start", size, self._start, states, keys)(states, keys)
        advance = self._function("search in parts", size, self._advance, self.agent, progress, np.int32(1))
        finish = self._function("finish", size, self._finish, progress)
        started = time.perf_counter()
        progress = timed(
            lambda progress, rounds: advance(self.agent, progress, np.int32(rounds)),
            progress,
            self._num_rounds,
            self.max_seconds,
        )
        return jax.device_get(finish(progress)), time.perf_counter() - started

    # ---- Compiled functions of a block

    def _function(self, name: str, size: int, function: Any, *arguments: Any) -> Any:
        if (name, size) not in self._compiled:
            with self._compiling():
                program = Program(f"the {name} of positions", function, arguments, identity=self._identity)
                (self._compiled[name, size],) = compile_all([program])
        return self._compiled[name, size]

    def _replay(self, starts: Any, actions: Int32[Array, "B T"], steps: Int32[Array, ""]) -> Any:
        """Return the states after actions, which are padded with -1."""

        def play(ply: Array, states: Any) -> Any:
            return jax.vmap(self.game.apply)(states, actions[:, ply])

        return jax.lax.fori_loop(0, steps, play, jax.tree.map(jnp.asarray, starts))

    def _locate(self, states: Any) -> books.PositionKey:
        return jax.vmap(partial(books.position_key, self.game))(states)

    def _search(self, agent: Agent, states: Any, keys: Key[Array, "B"]) -> RootReport:
        return jax.vmap(partial(search_report, agent.built(), params=agent.weights))(states, keys)

    def _search_restricted(self, agent: Agent, states: Any, keys: Key[Array, "B"], allowed: Int32[Array, "B A"]) -> RootReport:
        search: Any = agent.built()
        report = partial(restricted_report, search, params=agent.weights)
        return jax.vmap(report)(states, keys, allowed)

    def _start(self, states: Any, keys: Key[Array, "B"]) -> Any:
        return jax.vmap(partial(self.agent.start, None))(states, keys)

    def _advance(self, agent: Agent, progress: Any, rounds: Int32[Array, ""]) -> Any:
        return jax.vmap(agent.proceed, in_axes=(0, None))(progress, rounds)

    def _finish(self, progress: Any) -> RootReport:
        search: Any = self.agent.built()
        return jax.vmap(lambda progress: report_of_tree(search.finish(progress)))(progress)

    def _lead(self, states: Any, actions: Int32[Array, "B"], keys: Key[Array, "B"]) -> Float32[Array, "B P"]:
        lead = partial(score_lead, self.game, self.spec, self._score_playouts)
        lead_keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, _LEAD_STREAM)
        return jax.vmap(lead)(states, actions, lead_keys)

    def _analysis(self, report: RootReport, lead: list[float] | None, seconds: float, batch: int) -> Analysis:
        """Create the analysis of one position; the candidates of several trees are merged."""
        candidates = merged_candidates(report)
        return Analysis(
            action=int(report.action),
            candidates=candidates,
            value=tuple(report.value.tolist()),
            score_lead=None if lead is None else tuple(lead),
            score_weight=self._score_weight,
            num_simulations=sum(candidate.visits for candidate in candidates),
            seconds=seconds,
            batch=batch,
        )


def _padded_actions(positions: Sequence[Played]) -> "np.ndarray | None":
    """Return the allowed actions of positions, int32 ``[B, A]`` padded with -1, or ``None`` if all actions are allowed."""
    lists = [position.allowed for position in positions]
    if any(each is None for each in lists):
        return None
    length = max(64, block_size(max(len(each or ()) for each in lists)))
    allowed = np.full((len(lists), length), -1, np.int32)
    for row, each in zip(allowed, lists, strict=True):
        row[: len(each or ())] = each or ()
    return allowed


def _keys(key: Key[Array, ""], num_actions: Int32[Array, "B"], seeds: UInt32[Array, "B"]) -> Key[Array, "B"]:
    """Return the keys of positions from the key of the analysis and their own seeds; the seed 0 is none."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, num_actions)
    return jnp.where(seeds == 0, keys, jax.vmap(jax.random.fold_in)(keys, seeds))


def merged_candidates(report: RootReport) -> tuple[Candidate, ...]:
    """Merge the candidates of all trees on the host: sum visits, average values by visits, average priors."""
    num_trees = report.candidates.shape[0]
    candidates = []
    for action in dict.fromkeys(report.candidates[report.candidates >= 0].tolist()):
        rows = np.nonzero(report.candidates == action)
        visits = report.visits[rows]
        count = int(visits.sum())
        value = (report.child_value[rows] * visits[:, None]).sum(axis=0) / max(count, 1)
        variation = report.variations[rows][visits.argmax()]
        candidates.append(
            Candidate(
                action=action,
                visits=count,
                prior=float(report.prior[rows].sum()) / num_trees,
                value=tuple(value.tolist()) if count else None,
                variation=tuple(variation[variation >= 0].tolist()),
            )
        )
    chosen = int(report.action)
    return tuple(sorted(candidates, key=lambda item: (-item.visits, item.action != chosen, -item.prior, item.action)))


class AgentAnalyzer:
    """An agent as a ``tilewe_jax.interop.analysis.Analyzer``, for all games that it can play.

    Args:
        agent: text of an agent that searches.
        batch: maximum number of positions in one search.
        others: further agents that requests may name; ``level:N`` and ``best`` are always allowed.
        options: further arguments of ``SearchProgram``.

    Raises ``ValueError`` for an unknown agent.
    """

    def __init__(self, agent: str, batch: int = 64, others: Sequence[str] = (), **options: Any) -> None:
        self.batch = batch
        self._agents = {text: None if is_name(text) else AgentSpec.parse(text) for text in (agent, *others)}
        """Agents by text; ``None`` for ``level:N`` and ``best``, which depend on the game."""
        self._options = options
        self._programs: dict[tuple[str, str, AgentSpec, float | None], SearchProgram] = {}

    @property
    def models(self) -> list[dict[str, Any]]:
        """The agents that requests may name, the default first, with their networks."""
        return [
            {"name": text, "network": (spec.evaluator.network or None) if spec else None, "max_batch_size": self.batch}
            for text, spec in self._agents.items()
        ]

    def prepare(self, game: GameSpec, settings: Mapping[str, Any] | None = None) -> SearchProgram:
        """Return the search of a game, with some settings changed. Raises ``ValueError`` or ``MemoryError``."""
        spec, max_seconds = self._changed(game, settings or {})
        key = game.host.id, json.dumps(dict(game.options), sort_keys=True), spec, max_seconds
        program = self._programs.pop(key, None)
        if program is None:
            played = make(game.host.id, **game.options)
            program = SearchProgram(agent(str(spec), played), max_seconds, batch=self.batch, **self._options)
        self._programs[key] = program  # most recently used last
        while len(self._programs) > MAX_PROGRAMS:
            del self._programs[next(iter(self._programs))]
        return program

    def analyze(self, search: SearchProgram, positions: Sequence[Played]) -> list[Analysis]:
        """Analyze positions. Raises ``ValueError`` for restricted moves of a search that does not support them."""
        if any(position.allowed is not None for position in positions):
            if not isinstance(search.agent.built(), Search):
                raise ValueError("allow_moves and avoid_moves are not supported in games with hidden information")
            if search.max_seconds is not None:
                raise ValueError("allow_moves and avoid_moves are not supported with max_seconds")
        return search.analyze(positions)

    def solve(self, search: SearchProgram, request: Request, max_nodes: int) -> Mapping[int, Solved]:
        """Prove the results of the last positions of a game; none in a game that cannot be solved."""
        if search.game.num_players != 2 or search.game.has_hidden_information:
            return {}
        return solver_of(search.game, max_nodes, True).proven(request)

    def _changed(self, game: GameSpec, settings: Mapping[str, Any]) -> tuple[AgentSpec, float | None]:
        """Return the agent with changed settings, and the time limit. Raises ``ValueError``.

        A request can name only the agents of the constructor, levels and ``best``, because networks are read from files.
        """
        text = settings.get("agent", next(iter(self._agents)))
        if text not in ("best", *self._agents) and not (isinstance(text, str) and text.startswith("level:")):
            raise ValueError(f"agent must be level:N, best or one of {', '.join(self._agents)}, not {str(text)[:80]!r}")
        spec = AgentSpec.parse(text if text in self._agents else text[:80], game.host)
        max_seconds = settings.get("max_seconds")
        if max_seconds is not None and not (accepts(float, max_seconds) and max_seconds > 0):
            raise ValueError("max_seconds must be a positive number")
        texts: dict[str, str] = {}
        for name, value in settings.items():
            if name in _FIXED:
                raise ValueError(f"{name} cannot be changed: {_FIXED[name]}")
            if name == "book" and not isinstance(value, bool):
                raise ValueError("book must be true or false; a request cannot name a file")
            if not isinstance(value, (str, int, float, type(None))):
                raise ValueError(f"{name[:80]} must be a text, a number, true, false or null")
            if name not in ("agent", "max_seconds", "max_visits"):
                texts[name] = printed(value)
        if not spec.is_search and (texts or "max_visits" in settings):
            raise ValueError(f"{spec.kind} does not search, so its settings cannot be changed")
        if "max_visits" in settings:
            texts["num_simulations"] = _simulations(spec.num_trees(make(game.host.id, **game.options)), settings["max_visits"])
        return spec.with_settings(texts) if texts else spec, max_seconds


def _simulations(trees: int, max_visits: Any) -> str:
    """Return the number of simulations of each tree. Raises ``ValueError``."""
    if type(max_visits) is not int:
        raise ValueError(f"max_visits must be a positive integer, got {str(max_visits)[:80]}")
    if max_visits < trees:
        raise ValueError(f"max_visits must be at least {trees}, the number of trees, got {max_visits}")
    return str(max_visits // trees)
