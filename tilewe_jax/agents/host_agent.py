"""Agents as players of whole games on the host, with tree reuse, time limits and pondering."""

import random
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from tilewe_jax.agents.base import Agent
from tilewe_jax.agents.host_player import ForfeitError, HostPlayer, OngoingGame
from tilewe_jax.agents.pondering import Pondering
from tilewe_jax.agents.timed_search import part_size, timed
from tilewe_jax.interop.gtp import GtpError, LastSearch, SearchedMove
from tilewe_jax.search import Determinized, Search
from tilewe_jax.search.tree import ROOT
from tilewe_jax.utils.programs import Kept

NO_LIMIT = 3600.0
"""Seconds given to players on the host without a time limit."""


def _kept(title: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose first argument is an agent; agents that differ only in their names share a program."""
    kept = Kept(title, function, lambda agent: agent.identity)
    return lambda agent, *arguments: kept(replace(agent, name=""), *arguments)


_new_game = _kept("the start of games", lambda agent, key: agent.game.init(key))
_apply = _kept("the rules", lambda agent, state, action: agent.game.apply(state, action))
_init, _advance = _kept("the trees", Agent.init), _kept("the reuse of trees", Agent.advance)
_start, _finish = _kept("the start of searches", Agent.start), _kept("the end of searches", Agent.finish)
_book_move = _kept("the book", Agent.book_move)
_proceed, _play = _kept("the search", Agent.proceed), _kept("the agent", Agent.play)


def _state_of(agent: Agent, game: OngoingGame) -> Any:
    """Return the state of a game: from the position in plain Python if it determines the state, without a compiled program."""
    if agent.game.host_draws:
        return agent.game.state_of(game.position)
    return game.view("state", game.start, lambda state, action: _apply(agent, state, jnp.int32(action)))


def _proceed_rounds(agent: Any, progress: Any, rounds: int) -> Any:
    """Run a number of rounds of a search."""
    return _proceed(agent, progress, np.int32(rounds))


class HostAgent:
    """An agent that plays whole games on the host; also a ``tilewe_jax.interop.gtp.GtpAgent``.

    >>> import jax, tilewe_jax
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> player, position, actions = tilewe_jax.agent("random", game).host(), game.host(game.init(jax.random.key(0))), []
    >>> while not position.is_terminal:
    ...     actions.append(player.choose(actions))
    ...     position = position.after(actions[-1])

    The constructor compiles everything. Time limits, from the settings or ``set_time``, apply to searches, which run in parts
    (``agents.timed_search``), except information-set searches, and to players on the host. ``puct`` agents that keep a tree can
    ponder: while opponents are to move, they continue their search until the tree is full, and keep the subtree of the actions
    played.

    Args:
        agent: the agent.
        seed: seed of the random numbers.
        deal: chance outcomes at the start of the games, see ``Game.deal``; ``None`` draws them.
        ponders: whether to ponder.

    Raises ``ValueError`` if ``ponders`` and the agent cannot ponder.
    """

    def __init__(self, agent: Agent, seed: int = 0, deal: Any = None, ponders: bool = False) -> None:
        self.agent, self.name = agent, agent.name
        if ponders and not (agent.keeps_tree and agent.spec and agent.spec.kind == "puct"):
            raise ValueError(f"{self.name} cannot ponder; only puct with reuse_subtree can")
        game = agent.game
        self._usual_start = _new_game(agent, jax.random.key(0)) if deal is None else game.init_from_deal(deal)
        self._usual_deal = deal
        search = agent.built() if agent.is_search else None
        search = search.search if isinstance(search, Determinized) else search
        self._num_rounds = search.num_rounds if isinstance(search, Search) else 0
        """Number of rounds of a search; 0 for an agent that does not search in parts."""
        self._seconds: float | None = None
        self._uses_book = False
        """Whether moves of the book are played."""
        self._pondering = Pondering()
        # Pondering continues after the action is decided.
        self._pondered_by = _without_early_stop(agent) if ponders else None
        if agent.spec and agent.spec.seconds is not None:
            self.set_time(None)
        self.set_seed(seed)
        self.new_game()
        if not agent.player:
            self.choose((self.choose(()),))
        if ponders:
            self.follow(())
            self._search_part(self._key)
        self._uses_book = agent.book is not None
        self.set_seed(seed)
        self.new_game()

    def new_game(self, deal: Any = None) -> None:
        """Discard the game and the tree. The next game starts from ``deal``, by default from the deal of the constructor."""
        self._end_pondering()
        self._deal = self._usual_deal if deal is None else deal
        self._start = self._usual_start if deal is None else self.agent.game.init_from_deal(deal)
        self._actions: tuple[int, ...] = ()
        self._state = self._start
        self.memory: Any = None
        """The tree of an agent that keeps one; ``None`` before the first position."""
        self._ongoing = self._new_ongoing()
        self._searched: Any = None
        """Arrays of the tree of the last search."""

    def _new_ongoing(self) -> OngoingGame:
        return OngoingGame(self.agent.game, lambda: self._start, deal=self._deal)

    def set_seed(self, seed: int) -> None:
        """Reset the random numbers to a seed, taken modulo 2**63."""
        self._key = jax.random.key(seed % 2**63)
        self._random = random.Random(seed)

    def set_time(self, seconds: float | None) -> None:
        """Set the time limit of a move in seconds. Raises ``GtpError`` for an agent that cannot keep a time limit."""
        self._end_pondering()
        limit = self.agent.spec.seconds if self.agent.spec else None
        if limit is not None:
            seconds = limit if seconds is None else min(limit, seconds)
        if seconds is not None and not self.agent.player and not self._num_rounds:
            raise GtpError(f"{self.name} cannot keep to a time limit; only searches with a tree of states can")
        self._seconds = seconds

    def choose(self, actions: Sequence[int], state: Any = None) -> int:
        """Return the next action of a game; the tree is kept if the actions continue the last call.

        Args:
            actions: all actions of the game so far.
            state: the position after them, if known; required if games start from different states.
        """
        started = time.perf_counter()
        self._end_pondering()
        if self.agent.player:
            return self._ask(self.agent.player, list(actions))
        self.follow(tuple(actions), state)
        self._key, key = jax.random.split(self._key)
        if self._uses_book and (move := int(_book_move(self.agent, self._state, key))) >= 0:
            self._searched = None
            return move
        if self._num_rounds:
            left = None if self._seconds is None else self._seconds - (time.perf_counter() - started)
            progress = _start(self.agent, self.memory, self._state, key)
            progress = timed(partial(_proceed_rounds, self.agent), progress, self._num_rounds, left)
            action, self.memory = _finish(self.agent, progress)
        else:
            action, self.memory = _play(self.agent, self.memory, self._state, key)
        if self.memory is not None:
            tree = self.memory  # keeps only the arrays that ``last_search`` needs; states take most of the memory
            self._searched = tree.player, tree.visits, tree.value_sum, tree.candidates, tree.children
        return int(action)

    def _ask(self, player: Any, actions: list[int]) -> int:
        """Return the action of a player on the host."""
        if actions[: len(self._ongoing.actions)] != self._ongoing.actions:
            self._ongoing = self._new_ongoing()
        self._ongoing.actions[:] = actions
        try:
            seconds = NO_LIMIT if self._seconds is None else self._seconds
            return int(player.choose(self._ongoing, seconds, str(self._random.random())))
        except ForfeitError as forfeit:
            raise GtpError(str(forfeit)) from None

    def follow(self, actions: tuple[int, ...], state: Any = None) -> None:
        """Update the position and the tree; arguments as for ``choose``."""
        if actions[: len(self._actions)] != self._actions:
            self._actions, self._state, self.memory = (), self._start, None
            self._ongoing = self._new_ongoing()
        for action in actions[len(self._actions) :]:
            if self.memory is not None:
                self.memory = _advance(self.agent, self.memory, jnp.int32(action))
        self._ongoing.actions[:] = [action for action in actions if action >= 0]  # an agent chooses -1 at the end of a game
        if state is not None:
            self._state = state
        elif actions != self._actions:
            self._state = _state_of(self.agent, self._ongoing)
        if self.memory is None:
            self.memory = _init(self.agent, self._state)
        self._actions = actions

    @property
    def parameters(self) -> dict[str, str]:
        """The settings of the search by name; empty for an agent without a tree."""
        return self.agent.spec.settings if self.agent.spec and self.agent.keeps_tree else {}

    def last_search(self) -> LastSearch | None:
        """Return the root of the last search. Raises ``GtpError`` for an agent without a tree."""
        if not self.agent.keeps_tree:
            raise GtpError(f"{self.name} keeps no search tree")
        if self._searched is None:
            return None
        players, visits, sums, candidates, children = map(np.asarray, self._searched)
        player = players[ROOT]
        moves = [
            SearchedMove(int(action), int(visits[child]), float(sums[child, player] / visits[child]))
            for action, child in zip(candidates[ROOT], children[ROOT], strict=True)
            if child >= 0 and visits[child]
        ]
        moves.sort(key=lambda move: (-move.visits, -move.value))
        return LastSearch(float(sums[ROOT, player] / max(visits[ROOT], 1)), tuple(moves))

    # ---- Pondering

    def _search_part(self, key: PRNGKeyArray) -> None:
        """Run one part of a search in the tree."""
        progress = _start(self._pondered_by, self.memory, self._state, key)
        self.memory = _proceed_rounds(self._pondered_by, progress, part_size(self._num_rounds)).tree

    @property
    def is_pondering(self) -> bool:
        """True if the agent is pondering."""
        return self._pondering.is_busy

    def ponder(self, actions: Sequence[int] | None) -> None:
        """Ponder the position after these actions in a thread until another method is called; ``None`` stops pondering.

        It returns immediately, and does nothing if the agent does not ponder. The next method that needs the tree raises
        errors of the thread as ``GtpError``.
        """
        if actions is None:
            self._pondering.stop()
        elif self._pondered_by is not None:
            self._pondering.start(partial(self._ponder, tuple(actions)))

    def _ponder(self, actions: tuple[int, ...]) -> Iterator[None]:
        """Search the position in parts until the tree is full or a part adds nothing."""
        yield
        self.follow(actions)
        key, part, visits = self._key, 0, -1
        while visits < (visits := int(self.memory.visits[ROOT])) and int(self.memory.num_nodes) < self.memory.capacity:
            yield
            self._search_part(jax.random.fold_in(key, part))
            part += 1

    def _end_pondering(self) -> None:
        """Wait for the current part of the thread. After an error in it, discard the tree and raise ``GtpError`` once."""
        try:
            self._pondering.wait()
        except Exception as error:
            self.new_game()
            raise GtpError(f"pondering failed: {type(error).__name__}: {error}") from error


class GamePlayer:
    """An agent on the device with a time limit as a ``HostPlayer``."""

    def __init__(self, agent: Agent) -> None:
        self.name, self._agent, self._host = agent.name, agent, agent.host()

    def choose(self, game: OngoingGame, seconds: float, seed: str) -> int:
        """Return the action in a game, within the time limits of the agent and of the match."""
        self._host.set_time(seconds)
        self._host.set_seed(zlib.crc32(seed.encode()))
        return self._host.choose(game.actions, _state_of(self._agent, game))


def host_player(agent: Agent) -> HostPlayer | None:
    """Return the player on the host for an agent that decides there or has a time limit; ``None`` for others."""
    if agent.spec is None or agent.spec.seconds is None:
        return agent.player
    return GamePlayer(agent)


def _without_early_stop(agent: Agent) -> Agent:
    assert agent.spec
    return replace(agent, spec=replace(agent.spec, search=replace(agent.spec.search, stop_early=False)))
