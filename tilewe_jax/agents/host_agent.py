"""The host form of an agent: it plays whole games, one at a time, keeps its tree, keeps to a time, and may ponder."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from tilewe_jax.agents.agent import Agent
from tilewe_jax.agents.host_player import ForfeitError, HostGame
from tilewe_jax.agents.pondering import Pondering
from tilewe_jax.agents.timed_search import parts_of
from tilewe_jax.interop.gtp import GtpError, LastSearch, SearchedMove
from tilewe_jax.search import Search, SubtreeReuse
from tilewe_jax.search.tree import ROOT

NO_LIMIT = 3600.0
"""Seconds that players on the host, who must be told a number, are given where there is no limit."""

_init, _play, _advance = (jax.jit(method) for method in (Agent.init, Agent.play, Agent.advance))


class HostAgent:
    """An agent that plays whole games on the host, also as a ``tilewe_jax.interop.gtp.GtpAgent``.

    >>> import jax, tilewe_jax
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> player, position, actions = tilewe_jax.agent("random", game).host(), game.host(game.init(jax.random.key(0))), []
    >>> while not position.is_terminal:
    ...     actions.append(player.choose(actions))
    ...     position = position.after(actions[-1])

    Everything is compiled before the first game. A limit of seconds is kept by ``puct`` agents that keep a tree, which then
    search in parts (``agents.timed_search``), at most as long as without a limit, and by players on the host, which are
    told. ``puct`` agents that keep a tree can also ponder: they then search on, in parts, while opponents are to move, until
    the tree has no more room; what they have searched below the moves that are played is kept.

    Args:
        agent: the agent.
        seed: seed of its random numbers.
        deal: what chance decided at the start of the games, see ``Game.deal``; ``None`` draws it.
        ponders: whether it thinks on the opponents' time.

    Raises ``ValueError`` for an agent that cannot ponder but is to.
    """

    def __init__(self, agent: Agent, seed: int = 0, deal: Any = None, ponders: bool = False) -> None:
        self.agent, self.name = agent, agent.name
        if ponders and not self._can_search_in_parts:
            raise ValueError(f"{self.name} cannot ponder; only puct with reuse_subtree can")
        game = agent.game
        self._start = jax.jit(game.init)(jax.random.key(0)) if deal is None else game.init_from_deal(deal)
        self._apply = jax.jit(game.apply)
        self._seconds: float | None = None
        self._part: Any = None
        self._part_seconds = 0.0
        """Seconds that the last part of a search took, of which the next one has to be worth."""
        self._pondering = Pondering()
        self._ponder_part: Any = None
        self.set_seed(seed)
        self.new_game()
        if not agent.player:
            self.choose((self.choose(()),))
        if ponders:  # it does not stop once the action is decided
            self._ponder_part = self._compiled_part(stop_early=False)
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
        if seconds is not None and not self.agent.player and self._part is None:
            if not self._can_search_in_parts:
                raise GtpError(f"{self.name} cannot keep to a time; only puct with reuse_subtree can")
            assert self.agent.spec
            self._part = self._compiled_part(self.agent.spec.search.stop_early)
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
        if self._seconds is None or not self.agent.keeps_tree:
            action, self.memory = _play(self.agent, self.memory, self._state, key)
        else:
            action = self._search_in_parts(self._seconds - (time.perf_counter() - started), key)
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

    # ---- Searches in parts

    @property
    def _can_search_in_parts(self) -> bool:
        """Whether parts of a search add up to a search: Gumbel divides its simulations beforehand."""
        return self.agent.keeps_tree and self.agent.spec is not None and self.agent.spec.kind == "puct"

    def _compiled_part(self, stop_early: bool) -> Any:
        """A part of a search, compiled."""
        part = jax.jit(partial(_search_part, stop_early))
        self.follow(())
        for _ in range(2):  # the first call compiles, and the second one measures
            begin = time.perf_counter()
            jax.block_until_ready(part(self.agent, self.memory, self._state, self._key))
            self._part_seconds = time.perf_counter() - begin
        return part

    def _search_in_parts(self, seconds: float, key: PRNGKeyArray) -> int:
        """Search at least one part, and further ones that are likely to end in time."""
        assert self.agent.spec
        started = time.perf_counter()
        for part in range(parts_of(self.agent.spec.search.num_simulations)[0]):
            begin = time.perf_counter()
            if part and begin - started + self._part_seconds > seconds:
                break
            action, self.memory = self._part(self.agent, self.memory, self._state, jax.random.fold_in(key, part))
            jax.block_until_ready(action)
            self._part_seconds = time.perf_counter() - begin
        return int(action)

    def ponder(self, actions: Sequence[int] | None) -> None:
        """Search on in the position after these actions, in a thread, until any other method is called; ``None`` stops that.

        It returns at once, and does nothing for an agent that does not ponder. What goes wrong in the thread is raised by the
        next method that needs the tree, as ``GtpError``.
        """
        if actions is None:
            self._pondering.stop()
        elif self._ponder_part is not None:
            self._pondering.start(partial(self._ponder, tuple(actions), self._key))

    def _ponder(self, actions: tuple[int, ...], key: PRNGKeyArray) -> Iterator[None]:
        """Search the position in parts, as long as they add to the tree."""
        yield
        self.follow(actions)
        part, visits = 0, -1
        while visits < (visits := int(self.memory.visits[ROOT])) and int(self.memory.num_nodes) < self.memory.capacity:
            yield
            _, self.memory = self._ponder_part(self.agent, self.memory, self._state, jax.random.fold_in(key, part))
            part += 1

    def _end_pondering(self) -> None:
        """Wait for the thread's part under way. After an error in it the tree is forgotten, and ``GtpError`` raised, once."""
        try:
            self._pondering.wait()
        except Exception as error:
            self.new_game()
            raise GtpError(f"pondering failed: {type(error).__name__}: {error}") from error


def _search_part(stop_early: bool, agent: Agent, memory: Any, state: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
    """``Agent.play`` with the simulations of a part, in a tree with the same room."""
    search = agent.built()
    assert isinstance(search, Search)
    full = search.settings.num_simulations
    settings = replace(search.settings, num_simulations=parts_of(full)[1], stop_early=stop_early)
    output, memory = SubtreeReuse(replace(search, settings=settings, capacity=2 * full + 1)).act(memory, state, key)
    return output.action, memory
