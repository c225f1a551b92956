"""Players of the arena as the agents of a GTP engine, one game at a time."""

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

from tilewe_jax.agents.kept_tree import KeptTree
from tilewe_jax.agents.players import ForfeitError, HostGame, HostPlayer, Player
from tilewe_jax.agents.pondering import Pondering
from tilewe_jax.agents.timed_search import parts_of
from tilewe_jax.game import Game
from tilewe_jax.interop.gtp import GtpError, LastSearch, SearchedMove
from tilewe_jax.search import Search, SubtreeReuse, TreePlayer
from tilewe_jax.search.exported import as_tree
from tilewe_jax.search.spec import build_search
from tilewe_jax.search.tree import ROOT

NO_LIMIT = 3600.0
"""Seconds that players on the host, who must be told a number, are given where there is no limit."""


class PlayerAgent:
    """A player as a ``tilewe_jax.interop.gtp.GtpAgent``, which keeps its tree from move to move.

    Everything is compiled before the first game. A limit of seconds is kept by ``puct`` agents that keep a tree, which then
    search in parts (``agents.timed_search``), at most as long as without a limit, and by players on the host, which are
    told. ``puct`` agents that keep a tree can also ponder: they then search on, in parts, while opponents are to move, until
    the tree has no more room; what they have searched below the moves that are played is kept.

    Args:
        game: the game that is played.
        player: the player, as ``tilewe_jax.agents.player`` gives it for this game.
        seed: seed of its random numbers.
        ponders: whether it thinks on the opponents' time.
        deal: what chance decided at the start of the games, see ``Game.deal``; ``None`` draws it.

    Raises ``ValueError`` for a player that cannot ponder but is to.
    """

    def __init__(self, game: Game[Any], player: Player, seed: int = 0, ponders: bool = False, deal: Any = None) -> None:
        self.name = player.name
        self._game = game
        agent = player.agent
        is_policy = not isinstance(agent, (TreePlayer, HostPlayer))
        self._agent: Any = agent if isinstance(agent, (TreePlayer, HostPlayer)) else as_tree(agent)
        self._key = jax.random.key(0)
        self._seconds: float | None = None
        self._actions: tuple[int, ...] = ()
        self._tree = KeptTree(self._agent) if isinstance(self._agent, TreePlayer) else None
        if ponders and not self._can_search_in_parts:
            raise ValueError(f"{self.name} cannot ponder; only puct with reuse_subtree can")
        self._searched: Any = None
        """The root of the last search, as arrays of its tree."""
        self._num_parts = 0
        self._part: Any = None
        self._part_seconds = 0.0
        """Seconds that the last part of a search took, of which the next one has to be worth."""
        self._pondering = Pondering()
        self._ponder_part: Any = None
        self._start = jax.jit(game.init)(jax.random.key(0)) if deal is None else game.init_from_deal(deal)
        self._state = self._start
        self._apply = jax.jit(game.apply)
        self.set_seed(seed)
        if is_policy:
            self._decide = jax.jit(_decide)
        if not isinstance(self._agent, HostPlayer):
            self.choose((self.choose(()),))
        if ponders:
            self._compile_ponder_part()
        self.set_seed(seed)
        self.new_game()

    def new_game(self) -> None:
        """Forget the tree."""
        self._end_pondering()
        self._actions, self._state, self._searched = (), self._start, None
        if self._tree:
            self._tree.forget()

    def set_seed(self, seed: int) -> None:
        """Begin the random numbers anew; keys are derived from the seed modulo 2**63."""
        self._key = jax.random.key(seed % 2**63)
        self._random = random.Random(seed)

    def set_time(self, seconds: float | None) -> None:
        """Limit the seconds for a move. Raises ``GtpError`` for a player that cannot stop early."""
        self._end_pondering()
        if seconds is not None and not isinstance(self._agent, HostPlayer) and self._part is None:
            self._compile_part()
        self._seconds = seconds

    def choose(self, actions: Sequence[int]) -> int:
        """The action after these actions; the tree is kept where they continue those of the last call."""
        if isinstance(self._agent, HostPlayer):
            game = HostGame(self._game, lambda: self._start, list(actions))
            try:
                seconds = NO_LIMIT if self._seconds is None else self._seconds
                return self._agent.choose(game, seconds, str(self._random.random()))
            except ForfeitError as forfeit:
                raise GtpError(str(forfeit)) from None
        started = time.perf_counter()
        self._end_pondering()
        waited = time.perf_counter() - started
        self._follow(tuple(actions))
        self._key, key = jax.random.split(self._key)
        if not self._tree:
            return int(self._decide(self._agent, self._state, key))
        if self._seconds is not None:
            action = self._search_in_parts(self._tree, self._seconds - waited, key)
        else:
            action = self._tree.act(self._state, key)
        tree = self._tree.memory  # only these arrays stay when the tree goes on; its positions take most of the memory
        self._searched = tree.player, tree.visits, tree.value_sum, tree.candidates, tree.children
        return action

    @property
    def parameters(self) -> dict[str, str]:
        """The settings of its search by name; none for a player that does not search."""
        return dict(self._agent.spec.settings) if isinstance(self._agent, TreePlayer) else {}

    def last_search(self) -> LastSearch | None:
        """The tree of the last ``choose``. Raises ``GtpError`` for a player that keeps none."""
        if not self._tree:
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
        tree = self._tree
        assert tree
        yield
        self._follow(actions)
        capacity, part, visits = tree.memory.capacity, 0, -1
        while visits < (visits := int(tree.memory.visits[0])) and int(tree.memory.num_nodes) < capacity:
            yield
            _, tree.memory = self._ponder_part(self._agent, tree.memory, self._state, jax.random.fold_in(key, part))
            part += 1

    def _end_pondering(self) -> None:
        """Wait for the thread's part under way. After an error in it the tree is forgotten, and ``GtpError`` raised, once."""
        try:
            self._pondering.wait()
        except Exception as error:
            self.new_game()
            raise GtpError(f"pondering failed: {type(error).__name__}: {error}") from error

    def _compile_ponder_part(self) -> None:
        """Compile the part of a search in which the agent ponders; it does not stop once the action is decided."""
        tree = self._tree
        assert tree
        _, num_simulations = parts_of(self._agent.spec.search.num_simulations)
        self._ponder_part = jax.jit(partial(_search_part, num_simulations, False))
        jax.block_until_ready(self._ponder_part(self._agent, tree.memory, self._state, self._key))

    def _follow(self, actions: tuple[int, ...]) -> None:
        """Bring position and tree up to date."""
        if actions[: len(self._actions)] != self._actions:
            self._state, self._actions = self._start, ()
        for action in actions[len(self._actions) :]:
            self._state = self._apply(self._state, jnp.int32(action))
        self._actions = actions
        if self._tree:
            self._tree.follow(actions, self._state)

    @property
    def _can_search_in_parts(self) -> bool:
        """Whether parts of a search add up to a search: Gumbel divides its simulations beforehand."""
        return self._tree is not None and self._agent.spec.kind == "puct"

    def _compile_part(self) -> None:
        """Compile a part of a search, and measure how long it takes."""
        agent, tree = self._agent, self._tree
        if not tree or not self._can_search_in_parts:
            raise GtpError(f"{self.name} cannot keep to a time; only puct with reuse_subtree can")
        self._num_parts, num_simulations = parts_of(agent.spec.search.num_simulations)
        self._part = jax.jit(partial(_search_part, num_simulations, agent.spec.search.stop_early))
        self._follow(())
        for _ in range(2):  # the first call compiles
            started = time.perf_counter()
            jax.block_until_ready(self._part(agent, tree.memory, self._state, self._key))
            self._part_seconds = time.perf_counter() - started

    def _search_in_parts(self, tree: KeptTree, seconds: float, key: PRNGKeyArray) -> int:
        """Search at least one part, and further ones that are likely to end in time."""
        started = time.perf_counter()
        for part in range(self._num_parts):
            begin = time.perf_counter()
            if part and begin - started + self._part_seconds > seconds:
                break
            action, tree.memory = self._part(self._agent, tree.memory, self._state, jax.random.fold_in(key, part))
            jax.block_until_ready(action)
            self._part_seconds = time.perf_counter() - begin
        return int(action)


def _decide(policy: Any, state: Any, key: PRNGKeyArray) -> Any:
    return policy(state, key)


def _search_part(
    num_simulations: int, stop_early: bool, agent: TreePlayer, memory: Any, state: Any, key: PRNGKeyArray
) -> tuple[Any, Any]:
    """``TreePlayer.act`` with fewer simulations, in a tree with the same room."""
    full = agent.spec.search.num_simulations
    search_settings = replace(agent.spec.search, num_simulations=num_simulations, stop_early=stop_early)
    spec = replace(agent.spec, search=search_settings)
    search = build_search(spec, agent.game, agent.network)
    assert isinstance(search, Search)
    output, memory = SubtreeReuse(replace(search, capacity=2 * full + 1)).act(memory, state, key)
    return output.action, memory
