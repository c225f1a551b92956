"""Monte Carlo tree search for any number of players: the search of one position, a pure function; ``vmap`` makes it thousands.

Values are vectors over the players, and whoever moves follows their own component (max^n, Luckhardt and Irani 1986). So turns
need not alternate, and players may be passed over or move twice.
"""

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game, check_state
from tilewe_jax.lanes import any_lane, mapped_together
from tilewe_jax.search.candidates import Candidates, sample_candidates
from tilewe_jax.search.evaluators import Evaluator, terminal_value
from tilewe_jax.search.output import SearchOutput
from tilewe_jax.search.rules import ChildStats, RootContext, SelectionRule
from tilewe_jax.search.settings import SearchSettings
from tilewe_jax.search.tree import ROOT, Node, Path, Tree, backup, child_stats, init_tree, prove, without_refuted
from tilewe_jax.settings import check_number
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.loops import cond, fori_loop, scan, while_loop

State = TypeVar("State")


@dataclass(frozen=True)
class Search(Generic[State]):
    """A tree search of positions of one game: ``search(state, key) -> SearchOutput``.

    It searches one position, and a batch under ``jax.vmap``:

    >>> import jax, tilewe_jax
    >>> from tilewe_jax.search import GumbelRule, Search, SearchSettings, heuristic_evaluator
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> search = Search(game, heuristic_evaluator(game), GumbelRule(), SearchSettings(num_simulations=8, num_candidates=16))
    >>> states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 4))
    >>> output = jax.jit(jax.vmap(search))(states, jax.random.split(jax.random.key(1), 4))
    >>> output.policy.shape, output.visits.sum(axis=1).tolist()
    ((4, 16), [8, 8, 8, 8])

    Raises ``ValueError`` for numbers out of range.
    """

    game: Game[State]
    evaluator: Evaluator
    rule: SelectionRule
    settings: SearchSettings = field(default_factory=SearchSettings)
    capacity: int | None = None
    """Nodes for which a tree has room; ``None`` is the root and one a simulation. Leaves for which there is no room are
    evaluated and backed up, but not stored."""

    def __post_init__(self) -> None:
        check_number("capacity", self.num_nodes, 1)

    @property
    def num_nodes(self) -> int:
        """Nodes for which a tree has room."""
        return self.settings.num_simulations + 1 if self.capacity is None else self.capacity

    def __call__(self, state: State, key: PRNGKeyArray) -> SearchOutput[State]:
        """Search a position.

        Args:
            state: the position. Where the game is over the action is -1.
            key: consumed.
        """
        return self.extend(self.init(state), key)

    def init(self, state: State) -> Tree[State]:
        """The tree of a position before anything is evaluated. Raises ``TypeError`` or ``ValueError`` for another game's."""
        require_backend()
        check_state(self.game, state)
        return init_tree(state, self.game.num_players, self.settings.num_candidates, self.num_nodes)

    def extend(
        self, tree: Tree[State], key: PRNGKeyArray, root_noise: Float32[Array, "K"] | None = None
    ) -> SearchOutput[State]:
        """Search on in a tree, of ``init``, ``subtree`` or an earlier search, by ``num_simulations`` more.

        The evaluator makes most of a compiled search, so it stands in it once: where the root is not evaluated yet, it is the
        leaf that step 0 of the loop selects, expands and backs up like any other; simulations are the steps after it. For roots
        that are evaluated already step 0 changes nothing, and is left out where this holds for the whole batch.

        Args:
            tree: the tree; the kept statistics count.
            key: consumed.
            root_noise: noise for the candidates of a root that is evaluated, in place of what the rule draws.
        """
        settings = self.settings
        num_simulations, leaves = settings.num_simulations, settings.leaves
        num_rounds = -(-num_simulations // leaves)
        key_noise, key_output, key = jax.random.split(key, 3)
        keys = jax.random.split(key, 1 + num_rounds)
        unevaluated = tree.num_nodes == 0
        kept_visits = child_stats(tree, jnp.int32(ROOT)).visits

        can_end_early = settings.stop_early or settings.exact_endings or settings.seconds is not None

        def noise_of(tree: Tree[State]) -> Float32[Array, "K"]:
            return self.rule.root_noise(tree.prior[ROOT], key_noise) if root_noise is None else root_noise

        def context(noise: Float32[Array, "K"]) -> RootContext:
            return RootContext(noise, kept_visits, num_simulations)

        def goes_on(progress: "_Progress") -> Array:
            running: Array = progress.step <= num_rounds
            # Of a batch, all go on together until the last is decided.
            return running & any_lane(~progress.decided) if can_end_early else running

        def advance(progress: "_Progress") -> "_Progress":
            step, noise, decided = progress.step, progress.noise, progress.decided
            # Step 0 evaluates the root, if anything; the last one may have fewer simulations left.
            remaining = num_simulations - (step - 1) * leaves
            count = jnp.where(step > 0, jnp.minimum(leaves, remaining), unevaluated.astype(jnp.int32))
            count = jnp.where(decided, 0, count)
            tree = self.simulate(progress.tree, context(noise), (step - 1) * leaves, keys[step], count, step == 0)
            # Not by a condition of each game's own, which would draw at every step.
            noise = cond(step == 0, lambda: noise_of(tree), lambda: noise)
            if settings.stop_early:
                stats = self._root_stats(tree)
                decided = decided | self.rule.is_decided(stats, context(noise), num_simulations - step * leaves)
            if settings.exact_endings:
                decided = decided | tree.proven[ROOT]
            begun = progress.begun
            if settings.seconds is not None:
                now = _milliseconds(step)
                begun = jnp.where(begun < 0, now, begun)
                decided = decided | ((step > 0) & (now - begun >= round(1000 * settings.seconds)))
            return _Progress(tree, noise, step + 1, progress.num_active + count, decided, begun)

        none = jnp.zeros(settings.num_candidates, jnp.float32)
        tree, noise, num_active, decided = mapped_together(
            (
                tree,
                cond(any_lane(~unevaluated), lambda: noise_of(tree), lambda: none),
                jnp.int32(0),
                tree.proven[ROOT] & settings.exact_endings,
            )
        )
        step = jnp.where(any_lane(unevaluated), 0, 1)
        start = _Progress(tree, noise, step, num_active, decided, begun=jnp.int32(-1))
        end = while_loop(goes_on, advance, start)
        return self._output(end.tree, context(end.noise), end.num_active - unevaluated.astype(jnp.int32), key_output)

    def simulate(
        self,
        tree: Tree[State],
        root: RootContext,
        first: Int32[Array, ""],
        key: PRNGKeyArray,
        count: Int32[Array, ""] | None = None,
        is_root: Bool[Array, ""] | bool = False,
    ) -> Tree[State]:
        """A round of ``settings.leaves`` simulations.

        Args:
            tree: the tree.
            root: what stays the same at the root.
            first: number of the first simulation.
            key: consumed.
            count: number of simulations that change the tree, the first ones of the round; ``None`` for all.
            is_root: whether this evaluates roots; the same for a whole batch.
        """
        settings, leaves = self.settings, self.settings.leaves
        active = jnp.arange(leaves, dtype=jnp.int32) < (leaves if count is None else count)
        if leaves == 1:
            paths = jax.tree.map(lambda leaf: leaf[None], self.select(tree, root, first))
            keys = key[None]
        else:
            tree, paths = self._select_several(tree, root, first, active)
            keys = jax.random.split(key, leaves)
        nodes = jax.vmap(self.expand, in_axes=(None, 0, 0, None))(tree, paths, keys, jnp.asarray(is_root))
        tree = backup(tree, paths, nodes, active)
        if settings.exact_endings:
            # Only leaves that are over prove anything, and for most of a game there are none.
            tree = cond(
                any_lane(jnp.any(active & nodes.proven)), partial(self._prove_all, paths, active), lambda tree: tree, tree
            )
        return tree

    def select(
        self, tree: Tree[State], root: RootContext, simulation: Int32[Array, ""], pending: Int32[Array, "N"] | None = None
    ) -> Path:
        """Follow the rule from the root to a leaf; a root that is not evaluated is the leaf.

        Args:
            tree: the tree.
            root: what stays the same at the root.
            simulation: the number of the simulation.
            pending: visits of each node that are under way, see ``child_stats``.
        """

        def stats_of(node: Array) -> ChildStats:
            return child_stats(tree, node, pending, self.settings.virtual_loss)

        def follow(node: Array, candidate: Array, depth: Array, nodes: Array) -> "_Descent":
            child = tree.children[node, candidate]
            inside = (child >= 0) & ~tree.proven[child] & (depth < self.settings.max_depth)
            # A node that another simulation of this round is about to evaluate is a leaf.
            inside = inside if pending is None else inside & (tree.visits[child] > 0)
            return _Descent(nodes, node, candidate, tree.candidates[node, candidate], child, depth, inside)

        def descend(descent: "_Descent") -> "_Descent":
            node, depth = descent.child, descent.depth
            return follow(node, self.rule.select_interior(stats_of(node)), depth + 1, descent.nodes.at[depth].set(node))

        # The tree is only read here. Carried, it would be copied at each step, as long as any game of a batch goes on. And all
        # that is read of it comes out of the loop: read again afterwards, where the tree is updated, it would be copied too.
        nodes = jnp.full(self.settings.max_depth + 1, tree.capacity, jnp.int32).at[0].set(ROOT)
        start = follow(jnp.int32(ROOT), self.rule.select_root(stats_of(jnp.int32(ROOT)), root, simulation), jnp.int32(1), nodes)
        end = while_loop(lambda descent: descent.inside, descend, start)

        # The root has no candidate where it is terminal, or not evaluated yet: a visit to it is then all there is. A child that
        # exists is proven, about to be evaluated, or as deep as simulations go.
        leaf = jnp.where(end.child >= 0, end.child, jnp.minimum(tree.num_nodes, tree.capacity))
        leaf = jnp.where(end.action >= 0, leaf, tree.capacity)
        store_at = jnp.where(end.child >= 0, tree.capacity, leaf)
        store_at = jnp.where(tree.num_nodes == 0, ROOT, store_at)
        nodes = end.nodes.at[end.depth].set(leaf)
        return Path(nodes, end.node, end.candidate, end.action, end.child, store_at)

    def _select_several(
        self, tree: Tree[State], root: RootContext, first: Int32[Array, ""], active: Bool[Array, "L"]
    ) -> tuple[Tree[State], Path]:
        """The paths of a round of simulations, each selected as if those before it were under way.

        The children of the tree given back are what they will be after the round, so that they are not copied.
        """

        def select(carry: tuple[Array, Array, Array], item: tuple[Array, Array]) -> tuple[tuple[Array, Array, Array], Path]:
            pending, children, num_nodes = carry
            index, is_active = item
            path = self.select(replace(tree, children=children, num_nodes=num_nodes), root, first + index, pending)
            pending = pending.at[jnp.where(is_active, path.nodes, tree.capacity)].add(1, mode="drop")
            is_new = is_active & (path.store_at < tree.capacity)
            parent = jnp.where(is_new & (path.store_at > ROOT), path.parent, tree.capacity)
            children = children.at[parent, path.candidate].set(path.store_at, mode="drop")
            return (pending, children, num_nodes + is_new.astype(jnp.int32)), path

        start = jnp.zeros_like(tree.visits), tree.children, tree.num_nodes
        (_, children, _), paths = scan(select, start, (jnp.arange(active.shape[0], dtype=jnp.int32), active))
        return replace(tree, children=children), paths

    def _prove_all(self, paths: Path, active: Bool[Array, "L"], tree: Tree[State]) -> Tree[State]:
        """The tree after what the new leaves of a round prove, one after the other."""

        def step(index: Int32[Array, ""], tree: Tree[State]) -> Tree[State]:
            path = jax.tree.map(lambda leaf: leaf[index], paths)
            return prove(tree, path, self._winning, active[index])

        after: Tree[State] = fori_loop(0, active.shape[0], step, tree)
        return after

    def expand(self, tree: Tree[State], path: Path, key: PRNGKeyArray, is_root: Bool[Array, ""]) -> Node[State]:
        """The leaf of a path, evaluated; ``Game.apply`` leaves the root as it is where there is no candidate to follow."""
        state = self.game.apply(jax.tree.map(lambda leaf: leaf[path.parent], tree.state), path.action)
        node = self.evaluate(state, key, is_root)
        if not self.settings.exact_endings:
            return node
        known = (path.child >= 0) & tree.proven[path.child]
        return replace(node, value=jnp.where(known, tree.raw_value[path.child], node.value))

    def evaluate(self, state: State, key: PRNGKeyArray, is_root: Bool[Array, ""]) -> Node[State]:
        """A position with its value and its candidates; a root has them from a larger pool."""
        game, settings = self.game, self.settings
        key_evaluator, key_candidates = jax.random.split(key)
        logits, value = self.evaluator(state, key_evaluator)

        def sample(pool: int | None) -> Candidates:
            lookahead = settings.lookahead and game.has_lookahead
            return sample_candidates(game, state, logits, key_candidates, settings.num_candidates, pool, lookahead)

        if settings.root_candidate_pool in (None, settings.candidate_pool):
            sampled = sample(settings.candidate_pool)
        else:
            pools = settings.root_candidate_pool, settings.candidate_pool
            sampled = cond(is_root, *(partial(sample, pool) for pool in pools))
        terminal, player = game.is_terminal(state), game.current_player(state)
        known = ~terminal & (sampled.outcome != 0)
        is_winner = (jnp.arange(game.num_players, dtype=jnp.int32) == player) == (sampled.outcome > 0)
        value = jnp.where(known, is_winner.astype(jnp.float32), value)
        return Node(
            state=state,
            player=player,
            proven=terminal | (known & settings.exact_endings),
            value=jnp.where(terminal, terminal_value(game, state, settings.score_weight), value),
            candidates=sampled.actions,
            prior=self.rule.store_logits(sampled.logits),
            truncated_prior=sampled.truncated_prior,
            num_truncated=sampled.num_truncated,
        )

    @property
    def _winning(self) -> float:
        """The value from which on a player has nothing to gain: that of a win, whatever its score."""
        weight = self.settings.score_weight or 0.0
        return 1.0 - weight if weight < 1 / 3 else 1.0  # a tie is worth up to (1 + weight) / 2

    def _root_stats(self, tree: Tree[State]) -> ChildStats:
        """The statistics of the root, of which its action is chosen."""
        stats = child_stats(tree, jnp.int32(ROOT))
        return without_refuted(tree, stats) if self.settings.exact_endings else stats

    def _output(
        self, tree: Tree[State], root: RootContext, num_simulations: Int32[Array, ""], key: PRNGKeyArray
    ) -> SearchOutput[State]:
        stats = self._root_stats(tree)
        index, policy = self.rule.output(stats, root, key)
        return SearchOutput(
            action=tree.candidates[ROOT, index],
            candidates=tree.candidates[ROOT],
            prior_probs=self.rule.prior_probs(stats.prior),
            policy=policy,
            value=tree.value_sum[ROOT] / tree.visits[ROOT].astype(jnp.float32),
            action_index=index,
            visits=child_stats(tree, jnp.int32(ROOT)).visits,
            raw_value=tree.raw_value[ROOT],
            truncated_prior=tree.truncated_prior[ROOT],
            num_truncated=tree.num_truncated[ROOT],
            num_simulations=num_simulations,
            tree=tree,
        )


class _Descent(NamedTuple):
    """A simulation on its way from the root to a leaf."""

    nodes: Int32[Array, "max_depth+1"]
    """Nodes so far; the capacity of the tree in places left over."""
    node: Int32[Array, ""]
    candidate: Int32[Array, ""]
    """Index of the candidate of ``node`` that is followed."""
    action: Int32[Array, ""]
    """Its action."""
    child: Int32[Array, ""]
    """The node that it leads to; -1 before its first visit."""
    depth: Int32[Array, ""]
    """Depth of that node."""
    inside: Bool[Array, ""]
    """Whether the simulation goes on below that node."""


def _milliseconds(step: Int32[Array, ""]) -> Int32[Array, ""]:
    """The clock when this is evaluated: milliseconds since this module was imported.

    It depends on the step, so that the compiler asks it at each, and on no game, so that a batch asks it once. What it depends
    on must be carried by a loop of the search: asked before that, it would be asked once for all searches of an outer loop.
    """

    def look(step: Any) -> np.ndarray:
        del step
        return np.array((time.monotonic() - _STARTED) * 1000, np.int32)  # enough for 24 days

    now: Array = jax.pure_callback(look, jax.ShapeDtypeStruct((), jnp.int32), step)
    return now


_STARTED = time.monotonic()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Progress:
    """A search under way."""

    tree: Any
    noise: Float32[Array, "K"]
    step: Int32[Array, ""]
    """Steps of the whole batch: the evaluation of the roots, then rounds of simulations."""
    num_active: Int32[Array, ""]
    """Evaluations that changed the tree of this game."""
    decided: Bool[Array, ""]
    begun: Int32[Array, ""]
    """The clock at the first step, see ``_milliseconds``; -1 before it, and where no time is measured."""
