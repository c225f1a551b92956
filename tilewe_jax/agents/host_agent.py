"""The host form of an agent: it plays whole games, one at a time, keeps its tree, keeps to a time, and may ponder."""

import random
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from tilewe_jax.agents.base import Agent
from tilewe_jax.agents.host_player import ForfeitError, HostGame, HostPlayer
from tilewe_jax.agents.pondering import Pondering
from tilewe_jax.agents.timed_search import parts_of, timed
from tilewe_jax.interop.gtp import GtpError, LastSearch, SearchedMove
from tilewe_jax.search import Determinized, Search
from tilewe_jax.search.tree import ROOT

NO_LIMIT = 3600.0
"""Seconds that players on the host, who must be told a number, are given where there is no limit."""

_init, _play, _advance = (jax.jit(method) for method in (Agent.init, Agent.play, Agent.advance))
_begin, _proceed, _finish = (jax.jit(method) for method in (Agent.begin, Agent.proceed, Agent.finish))


class HostAgent:
    """An agent that plays whole games on the host, also as a ``tilewe_jax.interop.gtp.GtpAgent``.

    >>> import jax, tilewe_jax
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> player, position, actions = tilewe_jax.agent("random", game).host(), game.host(game.init(jax.random.key(0))), []
    >>> while not position.is_terminal:
    ...     actions.append(player.choose(actions))
    ...     position = position.after(actions[-1])

    Everything is compiled before the first game. A limit of seconds, that of the settings or of ``set_time``, is kept by
    searches, which run in parts (``agents.timed_search``), except those of information sets, and by players on the host, which
    are told. ``puct`` agents that keep a tree can also ponder: they then search on, in parts, while opponents are to move,
    until the tree has no more room; what they have searched below the moves that are played is kept.

    Args:
        agent: the agent.
        seed: seed of its random numbers.
        deal: what chance decided at the start of the games, see ``Game.deal``; ``None`` draws it.
        ponders: whether it thinks on the opponents' time.

    Raises ``ValueError`` for an agent that cannot ponder but is to.
    """

    def __init__(self, agent: Agent, seed: int = 0, deal: Any = None, ponders: bool = False) -> None:
        self.agent, self.name = agent, agent.name
        if ponders and not (agent.keeps_tree and agent.spec and agent.spec.kind == "puct"):
            raise ValueError(f"{self.name} cannot ponder; only puct with reuse_subtree can")
        game = agent.game
        self._start = jax.jit(game.init)(jax.random.key(0)) if deal is None else game.init_from_deal(deal)
        self._apply = jax.jit(game.apply)
        search = agent.built() if agent.is_search else None
        search = search.search if isinstance(search, Determinized) else search
        self._num_rounds = search.num_rounds if isinstance(search, Search) else 0
        """Rounds of a search; 0 for an agent that does not search in parts."""
        self._seconds: float | None = None
        self._pondering = Pondering()
        # Pondering does not stop once the action is decided.
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
        self.set_seed(seed)
        self.new_game()

    def new_game(self) -> None:
        """Forget the game, and the tree."""
        self._end_pondering()
        self._actions: tuple[int, ...] = ()
        self._state = self._start
        self.memory: Any = None
        """The tree of an agent that keeps one; ``None`` before the first position."""
        self._host_game = HostGame(self.agent.game, lambda: self._start)
        self._searched: Any = None
        """The root of the last search, as arrays of its tree."""

    def set_seed(self, seed: int) -> None:
        """Begin the random numbers anew; keys are derived from the seed modulo 2**63."""
        self._key = jax.random.key(seed % 2**63)
        self._random = random.Random(seed)

    def set_time(self, seconds: float | None) -> None:
        """Limit the seconds for a move. Raises ``GtpError`` for an agent that cannot stop early."""
        self._end_pondering()
        own = self.agent.spec.seconds if self.agent.spec else None
        if own is not None:
            seconds = own if seconds is None else min(own, seconds)
        if seconds is not None and not self.agent.player and not self._num_rounds:
            raise GtpError(f"{self.name} cannot keep to a time; only searches with a tree of states can")
        self._seconds = seconds

    def choose(self, actions: Sequence[int], state: Any = None) -> int:
        """The action after these actions of a game; the tree is kept where they continue those of the last call.

        Args:
            actions: all actions of the game so far.
            state: the position after them, where it is known; where games do not all begin alike it has to be.
        """
        started = time.perf_counter()
        self._end_pondering()
        if self.agent.player:
            return self._ask(self.agent.player, list(actions))
        self.follow(tuple(actions), state)
        self._key, key = jax.random.split(self._key)
        if self._num_rounds:
            left = None if self._seconds is None else self._seconds - (time.perf_counter() - started)
            begun = _begin(self.agent, self.memory, self._state, key)
            action, self.memory = _finish(self.agent, timed(partial(_proceed, self.agent), begun, self._num_rounds, left))
        else:
            action, self.memory = _play(self.agent, self.memory, self._state, key)
        if self.memory is not None:
            tree = self.memory  # only these arrays stay when the tree goes on; its positions take most of the memory
            self._searched = tree.player, tree.visits, tree.value_sum, tree.candidates, tree.children
        return int(action)

    def _ask(self, player: Any, actions: list[int]) -> int:
        """The action of a player on the host."""
        if actions[: len(self._host_game.actions)] != self._host_game.actions:
            self._host_game = HostGame(self.agent.game, lambda: self._start)
        self._host_game.actions[:] = actions
        try:
            seconds = NO_LIMIT if self._seconds is None else self._seconds
            return int(player.choose(self._host_game, seconds, str(self._random.random())))
        except ForfeitError as forfeit:
            raise GtpError(str(forfeit)) from None

    def follow(self, actions: tuple[int, ...], state: Any = None) -> None:
        """Bring position and tree up to date; arguments as for ``choose``."""
        goes_on = actions[: len(self._actions)] == self._actions
        known = len(self._actions) if goes_on else 0
        if not goes_on:
            self._state, self.memory = self._start, None
        for action in actions[known:]:
            self._state = self._apply(self._state, jnp.int32(action)) if state is None else state
            if self.memory is not None:
                self.memory = _advance(self.agent, self.memory, jnp.int32(action))
        self._state = self._state if state is None else state
        if self.memory is None:
            self.memory = _init(self.agent, self._state)
        self._actions = actions

    @property
    def parameters(self) -> dict[str, str]:
        """The settings of its search by name; none for an agent without a tree."""
        return self.agent.spec.settings if self.agent.spec and self.agent.keeps_tree else {}

    def last_search(self) -> LastSearch | None:
        """The tree of the last ``choose``. Raises ``GtpError`` for an agent that keeps none."""
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
        """Add a part of a search to the tree."""
        begun = _begin(self._pondered_by, self.memory, self._state, key)
        self.memory = _proceed(self._pondered_by, begun, parts_of(self._num_rounds)[1]).tree

    def ponder(self, actions: Sequence[int] | None) -> None:
        """Search on in the position after these actions, in a thread, until any other method is called; ``None`` stops that.

        It returns at once, and does nothing for an agent that does not ponder. What goes wrong in the thread is raised by the
        next method that needs the tree, as ``GtpError``.
        """
        if actions is None:
            self._pondering.stop()
        elif self._pondered_by is not None:
            self._pondering.start(partial(self._ponder, tuple(actions)))

    def _ponder(self, actions: tuple[int, ...]) -> Iterator[None]:
        """Search the position in parts, as long as they add to the tree."""
        yield
        self.follow(actions)
        key, part, visits = self._key, 0, -1
        while visits < (visits := int(self.memory.visits[ROOT])) and int(self.memory.num_nodes) < self.memory.capacity:
            yield
            self._search_part(jax.random.fold_in(key, part))
            part += 1

    def _end_pondering(self) -> None:
        """Wait for the thread's part under way. After an error in it the tree is forgotten, and ``GtpError`` raised, once."""
        try:
            self._pondering.wait()
        except Exception as error:
            self.new_game()
            raise GtpError(f"pondering failed: {type(error).__name__}: {error}") from error


class GamePlayer:
    """An agent of the device as a player on the host, for agents that keep to a time; see ``HostPlayer``."""

    def __init__(self, agent: Agent) -> None:
        self.name, self._host, self._apply = agent.name, agent.host(), jax.jit(agent.game.apply)

    def choose(self, game: HostGame, seconds: float, seed: str) -> int:
        """The action in a game, in its own seconds or in those of the match, if these are fewer."""
        self._host.set_time(seconds)
        self._host.set_seed(zlib.crc32(seed.encode()))
        state = game.view("state", game.start, lambda state, action: self._apply(state, jnp.int32(action)))
        return self._host.choose(game.actions, state)


def host_player(agent: Agent) -> HostPlayer | None:
    """The player on the host that an agent is, or has to be for it keeps to a time; ``None`` for others."""
    if agent.spec is None or agent.spec.seconds is None:
        return agent.player
    return GamePlayer(agent)


def _without_early_stop(agent: Agent) -> Agent:
    assert agent.spec
    return replace(agent, spec=replace(agent.spec, search=replace(agent.spec.search, stop_early=False)))
