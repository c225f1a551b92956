"""Monte Carlo tree search for any number of players: a pure function of one position; ``jax.vmap`` searches batches.

Values are vectors over the players, and the player to move maximizes their own component (max^n, Luckhardt and Irani 1986).
Turns need not alternate: players may be skipped or move twice in a row.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, Key, PRNGKeyArray

from tilewe_jax.game import Game, check_own_game, check_state
from tilewe_jax.lanes import any_lane, mapped_together, subkey, subkeys
from tilewe_jax.search.candidates import Widening, sample_candidates
from tilewe_jax.search.evaluators import Evaluator, check_evaluation, terminal_value
from tilewe_jax.search.output import SearchOutput
from tilewe_jax.search.rules import ChildStats, RootContext, SelectionRule
from tilewe_jax.search.settings import SearchSettings
from tilewe_jax.search.solve import check_solvable, solve
from tilewe_jax.search.tree import ROOT, Node, Path, Tree, backup, child_stats, init_tree, prove, without_refuted
from tilewe_jax.settings import check_number
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.loops import cond, fori_loop, scan, while_loop

State = TypeVar("State")

WIDENING_PERIOD = 8
"""One round of simulations in this number widens nodes, see ``SearchSettings.widen_visits``."""
_SOLVED_LEGAL = 64
"""Largest number of legal actions of a root that is solved with ``solve_nodes``."""
_SOLVED_MOVES = 512
"""``max_moves`` of ``solve`` for roots."""


@dataclass(frozen=True)
class Search(Generic[State]):
    """A tree search: ``search(state, key, params=None) -> SearchOutput``.

    It searches one position; use ``jax.vmap`` for a batch:

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
    """Maximum number of nodes of a tree; ``None`` means ``num_simulations + 1``. When the tree is full, further leaves are
    evaluated and backed up but not stored."""

    def __post_init__(self) -> None:
        check_number("capacity", self.num_nodes, 1)
        if self.settings.solve_nodes:
            check_solvable(self.game)

    @property
    def num_nodes(self) -> int:
        """Maximum number of nodes of a tree."""
        return self.settings.num_simulations + 1 if self.capacity is None else self.capacity

    @property
    def num_rounds(self) -> int:
        """Number of rounds of a search; a round runs ``num_leaves`` simulations."""
        return -(-self.settings.num_simulations // self.num_leaves)

    @property
    def num_leaves(self) -> int:
        """Number of leaves that are evaluated in one batch."""
        return self.settings.leaves or 1

    def __call__(self, state: State, key: PRNGKeyArray, params: Any = None) -> SearchOutput[State]:
        """Search a position.

        Args:
            state: the position. If the game is over, the action is -1.
            key: consumed.
            params: parameters of the evaluator.
        """
        return self.extend(self.init(state), key, params)

    def init(self, state: State) -> Tree[State]:
        """Return the tree of a position before the evaluation of its root.

        Raises ``TypeError`` or ``ValueError`` for a state of another game.
        """
        require_backend()
        check_own_game(self.game)
        check_state(self.game, state)
        return init_tree(state, self.game.num_players, self.settings.num_candidates, self.num_nodes)

    def extend(self, tree: Tree[State], key: PRNGKeyArray, params: Any = None) -> SearchOutput[State]:
        """Run ``num_simulations`` more simulations in a tree.

        Args:
            tree: the tree, from ``init``, ``subtree`` or an earlier search; its statistics are kept.
            key: consumed.
            params: parameters of the evaluator.
        """
        return self.finish(self.advance(self.start(tree, key), params))

    def start(self, tree: Tree[State], key: PRNGKeyArray) -> "Progress[State]":
        """Start a search that runs in parts: ``advance`` continues it, ``finish`` returns its output."""
        if self.settings.solve_nodes and self.settings.exact_endings:
            tree = self._solved(tree)
        keys, evaluated_first = jax.random.split(key, 3), _evaluates_root(tree)
        noise = cond(
            any_lane(~evaluated_first),
            lambda: self.rule.root_noise(tree.prior[ROOT], keys[0]),
            lambda: jnp.zeros(self.settings.num_candidates, jnp.float32),
        )
        decided, uncounted = tree.proven[ROOT] & self.settings.exact_endings, -evaluated_first.astype(jnp.int32)
        kept_visits = child_stats(tree, jnp.int32(ROOT)).visits
        tree, noise, uncounted, decided = mapped_together((tree, noise, uncounted, decided))
        # Step 0, the evaluation of the roots, is skipped if no root of the batch needs it.
        return Progress(tree, noise, jnp.where(any_lane(evaluated_first), 0, 1), uncounted, decided, kept_visits, keys)

    def advance(
        self, progress: "Progress[State]", params: Any = None, rounds: Int32[Array, ""] | int | None = None
    ) -> "Progress[State]":
        """Run the remaining rounds of a search, at most ``rounds`` of them.

        The evaluator dominates the size of the compiled program, so it is compiled once: step 0 of the loop selects, expands
        and backs up a root that is not evaluated or not widened, like any other leaf, and the rounds of simulations follow. For
        other roots, step 0 changes nothing.
        """
        settings, leaves, num_simulations = self.settings, self.num_leaves, self.settings.num_simulations
        num_steps = 1 + self.num_rounds
        keys = jax.random.split(progress.keys[2], num_steps)
        last = num_steps if rounds is None else jnp.minimum(num_steps, jnp.maximum(progress.step, 1) + rounds)

        def goes_on(progress: "Progress[State]") -> Array:
            # All games of a batch continue until the last one is decided.
            running: Array = progress.step < last
            going: Array = any_lane(running & ~progress.decided if settings.stop_early or settings.exact_endings else running)
            return going

        def take_step(progress: "Progress[State]") -> "Progress[State]":
            step, first, is_root = progress.step, (progress.step - 1) * leaves, any_lane(progress.step == 0)
            # The last round may have fewer simulations left.
            evaluated_first = _evaluates_root(progress.tree).astype(jnp.int32)
            count = jnp.where(step > 0, jnp.minimum(leaves, num_simulations - first), evaluated_first)
            count = jnp.where(progress.decided, 0, count)
            tree = self.simulate(progress.tree, self._context(progress), first, keys[step], params, count)
            noise = cond(is_root, lambda: self.rule.root_noise(tree.prior[ROOT], progress.keys[0]), lambda: progress.noise)
            after = replace(progress, tree=tree, noise=noise, step=step + 1, num_simulations=progress.num_simulations + count)
            if settings.stop_early:
                remaining = num_simulations - step * leaves
                is_decided = self.rule.is_decided(self._root_stats(tree), self._context(after), remaining)
                after = replace(after, decided=after.decided | is_decided)
            return replace(after, decided=after.decided | tree.proven[ROOT]) if settings.exact_endings else after

        return while_loop(goes_on, take_step, progress)

    def finish(self, progress: "Progress[State]") -> SearchOutput[State]:
        """Return the output of a search after the rounds run so far; the root must be evaluated."""
        tree, stats = progress.tree, self._root_stats(progress.tree)
        index, policy = self.rule.output(stats, self._context(progress), progress.keys[1])
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
            num_simulations=progress.num_simulations,
            tree=tree,
        )

    def simulate(
        self,
        tree: Tree[State],
        root: RootContext,
        first: Int32[Array, ""],
        key: PRNGKeyArray,
        params: Any = None,
        count: Int32[Array, ""] | None = None,
    ) -> Tree[State]:
        """Run a round of ``num_leaves`` simulations: select, expand, back up.

        Args:
            tree: the tree.
            root: context of the root.
            first: number of the first simulation.
            key: consumed.
            params: parameters of the evaluator.
            count: number of simulations of this round that change the tree; ``None`` means all.
        """
        settings, leaves = self.settings, self.num_leaves
        active = jnp.arange(leaves, dtype=jnp.int32) < (leaves if count is None else count)
        if leaves == 1:
            paths = jax.tree.map(lambda leaf: leaf[None], self.select(tree, root, first))
            keys = key[None]
        else:
            tree, paths = self._select_several(tree, root, first, active)
            keys = subkeys(key, leaves)
        # Games that are decided must not make the others wait for a node to be widened.
        nodes = jax.vmap(partial(self.expand, params, tree))(paths._replace(is_wide=paths.is_wide & active), keys)
        tree = backup(tree, paths, nodes, active)
        if settings.exact_endings:
            # For most of a game no leaf is proven.
            tree = cond(
                any_lane(jnp.any(active & nodes.proven)), partial(self._prove_all, paths, active), lambda tree: tree, tree
            )
        return tree

    def select(
        self, tree: Tree[State], root: RootContext, simulation: Int32[Array, ""], pending: Int32[Array, "N"] | None = None
    ) -> Path:
        """Follow the selection rule from the root to a leaf; a root that is not evaluated or not widened is itself the leaf.

        Args:
            tree: the tree.
            root: context of the root.
            simulation: number of the simulation.
            pending: visits of each node that are under way, see ``child_stats``.
        """
        settings, at_root, widen_visits = self.settings, _evaluates_root(tree), self.settings.visits_to_widen
        # All games and leaves of a batch wait while one node is widened, so not every round widens nodes.
        widens = (simulation // self.num_leaves % WIDENING_PERIOD == 0) if widen_visits else jnp.asarray(False)

        def kept_of(node: Array, is_wide: Array) -> Array:
            """Return ``Path.kept`` for a leaf."""
            is_kept = is_wide & (tree.children[node] >= 0) if settings.has_wide_nodes else jnp.asarray(False)
            return jnp.where(is_kept, tree.candidates[node], -1)

        def stats_of(node: Array) -> ChildStats:
            return child_stats(tree, node, pending, settings.virtual_loss)

        def follow(node: Array, candidate: Array, depth: Array, nodes: Array) -> "_Descent":
            child = tree.children[node, candidate]
            inside = (child >= 0) & ~tree.proven[child] & (depth < settings.max_depth)
            # A node without visits waits for its evaluation in this round, so it is a leaf.
            inside = inside if pending is None else inside & (tree.visits[child] > 0)
            is_due = widens & tree.is_narrow[child] & (tree.visits[child] >= widen_visits)
            is_wide, action = inside & is_due, tree.candidates[node, candidate]
            # Several paths of a round may reach a node that is due; the first one widens it.
            is_wide = is_wide if pending is None else is_wide & (pending[child] == 0)
            return _Descent(nodes, node, candidate, action, child, depth, inside & ~is_due, is_wide, kept_of(child, is_wide))

        def descend(descent: "_Descent") -> "_Descent":
            node, depth = descent.child, descent.depth
            return follow(node, self.rule.select_interior(stats_of(node)), depth + 1, descent.nodes.at[depth].set(node))

        # The loop reads the tree but does not carry it, because XLA would copy a carried tree in every step. Everything read
        # from the tree is an output of the loop: reading it again later, next to the update, would force a copy too.
        nodes, at = jnp.full(settings.max_depth + 1, tree.capacity, jnp.int32).at[0].set(ROOT), jnp.int32(ROOT)
        start = follow(at, self.rule.select_root(stats_of(at), root, simulation), jnp.int32(1), nodes)
        none, ends = jnp.int32(-1), jnp.asarray(False)
        alone = start._replace(action=none, child=none, inside=ends, is_wide=at_root, kept=kept_of(at, at_root))
        start = jax.tree.map(partial(jnp.where, at_root), alone, start)
        end = while_loop(lambda descent: descent.inside, descend, start)

        # Without an action, at a terminal root or one to evaluate, the path consists of the root alone. An existing child is a
        # leaf if it is proven, waits for its evaluation, is widened, or is at the maximum depth.
        leaf = jnp.where(end.child >= 0, end.child, jnp.minimum(tree.num_nodes, tree.capacity))
        leaf = jnp.where(end.action >= 0, leaf, tree.capacity)
        store_at = jnp.where((end.child >= 0) & ~end.is_wide, tree.capacity, leaf)
        store_at = jnp.where(at_root, ROOT, store_at)
        nodes = end.nodes.at[end.depth].set(leaf)
        return Path(nodes, end.node, end.candidate, end.action, end.child, store_at, end.is_wide, end.kept)

    def _select_several(
        self, tree: Tree[State], root: RootContext, first: Int32[Array, ""], active: Bool[Array, "L"]
    ) -> tuple[Tree[State], Path]:
        """Select the paths of a round one after the other; earlier paths count as visits under way.

        The children of the returned tree are already those after the round, which avoids a copy.
        """

        def select(carry: tuple[Array, Array, Array], item: tuple[Array, Array]) -> tuple[tuple[Array, Array, Array], Path]:
            pending, children, num_nodes = carry
            index, is_active = item
            path = self.select(replace(tree, children=children, num_nodes=num_nodes), root, first + index, pending)
            pending = pending.at[jnp.where(is_active, path.nodes, tree.capacity)].add(1, mode="drop")
            is_new = is_active & (path.child < 0) & (path.store_at < tree.capacity)
            parent = jnp.where(is_new & (path.store_at > ROOT), path.parent, tree.capacity)
            children = children.at[parent, path.candidate].set(path.store_at, mode="drop")
            return (pending, children, num_nodes + is_new.astype(jnp.int32)), path

        start = jnp.zeros_like(tree.visits), tree.children, tree.num_nodes
        (_, children, _), paths = scan(select, start, (jnp.arange(active.shape[0], dtype=jnp.int32), active))
        return replace(tree, children=children), paths

    def _prove_all(self, paths: Path, active: Bool[Array, "L"], tree: Tree[State]) -> Tree[State]:
        """Propagate the proven leaves of a round, one after the other."""

        def step(index: Int32[Array, ""], tree: Tree[State]) -> Tree[State]:
            path = jax.tree.map(lambda leaf: leaf[index], paths)
            return prove(tree, path, self._winning, active[index])

        after: Tree[State] = fori_loop(0, active.shape[0], step, tree)
        return after

    def expand(self, params: Any, tree: Tree[State], path: Path, key: PRNGKeyArray) -> Node[State]:
        """Evaluate the leaf of a path; for the action -1, ``Game.apply`` returns the root unchanged."""
        state = self.game.apply(jax.tree.map(lambda leaf: leaf[path.parent], tree.state), path.action)
        node = self.evaluate(params, state, key, path.is_wide, path.kept)
        if not self.settings.exact_endings:
            return node
        known = (path.child >= 0) & tree.proven[path.child]
        return replace(node, raw_value=jnp.where(known, tree.raw_value[path.child], node.raw_value))

    def evaluate(
        self, params: Any, state: State, key: PRNGKeyArray, is_wide: Bool[Array, ""], kept: Int32[Array, "K"]
    ) -> Node[State]:
        """Evaluate a position and sample its candidates; see ``Widening`` for ``is_wide`` and ``kept``."""
        game, settings = self.game, self.settings
        logits, value = check_evaluation(game, self.evaluator, self.evaluator(params, state, subkey(key, 0)))
        sampled = sample_candidates(
            game,
            state,
            logits,
            subkey(key, 1),
            settings.num_candidates,
            settings.candidate_pool,
            settings.lookahead and game.has_lookahead,
            Widening(settings.root_candidate_pool, is_wide, kept) if settings.root_candidate_pool else None,
        )
        terminal, player = game.is_terminal(state), game.current_player(state)
        known = ~terminal & (sampled.outcome != 0)
        is_winner = (jnp.arange(game.num_players, dtype=jnp.int32) == player) == (sampled.outcome > 0)
        value = jnp.where(known, is_winner.astype(jnp.float32), value)
        return Node(
            state=state,
            player=player,
            proven=terminal | (known & settings.exact_endings),
            raw_value=jnp.where(terminal, terminal_value(game, state, settings.score_weight), value),
            candidates=sampled.actions,
            prior=self.rule.store_logits(sampled.logits),
            truncated_prior=sampled.truncated_prior,
            num_truncated=sampled.num_truncated,
            is_narrow=sampled.is_narrow,
        )

    def _solved(self, tree: Tree[State]) -> Tree[State]:
        """Solve the root if few legal actions are left. A solved root is proven, and its best action is the only candidate."""
        game, settings = self.game, self.settings
        root = jax.tree.map(lambda leaf: leaf[ROOT], tree.state)
        is_small = game.num_legal(root) <= _SOLVED_LEGAL

        def solved() -> tuple[Array, Array, Array]:
            by_score = bool(settings.score_weight)
            solution = solve(
                game, root, max_nodes=settings.solve_nodes, margin=by_score, max_moves=_SOLVED_MOVES, where=is_small
            )
            wins = solution.has_outcome & (solution.returns[game.current_player(root)] == 1)
            # A proven win is played even if its margin is not proven; otherwise the search may find a better margin.
            return solution.is_exact | wins, solution.action, solution.returns

        def unsolved() -> tuple[Array, Array, Array]:
            return jnp.asarray(False), jnp.int32(-1), jnp.zeros(game.num_players, jnp.float32)

        is_solved, action, returns = cond(any_lane(is_small), solved, unsolved)
        is_solved = is_solved & is_small & (action >= 0)
        first = jnp.arange(settings.num_candidates, dtype=jnp.int32) == 0
        values = {
            "player": game.current_player(root),
            "proven": jnp.asarray(True),
            "visits": jnp.int32(1),
            "value_sum": returns,
            "raw_value": returns,
            "candidates": jnp.where(first, action, -1),
            "prior": self.rule.store_logits(jnp.where(first, 0.0, -jnp.inf)),
            "children": jnp.full_like(tree.children[ROOT], -1),
            "truncated_prior": jnp.float32(0),
            "num_truncated": jnp.int32(0),
            "is_narrow": jnp.asarray(False),
        }
        fields = {name: getattr(tree, name) for name in values}
        changed = {name: leaf.at[ROOT].set(jnp.where(is_solved, values[name], leaf[ROOT])) for name, leaf in fields.items()}
        return replace(tree, num_nodes=jnp.where(is_solved, jnp.maximum(tree.num_nodes, 1), tree.num_nodes), **changed)

    @property
    def _winning(self) -> float:
        """The least value of a win, which a player cannot improve on except by score."""
        weight = self.settings.score_weight or 0.0
        return 1.0 - weight if weight < 1 / 3 else 1.0  # a tie is worth up to (1 + weight) / 2

    def _root_stats(self, tree: Tree[State]) -> ChildStats:
        """Return the statistics of the root from which the action is chosen."""
        stats = child_stats(tree, jnp.int32(ROOT))
        return without_refuted(tree, stats) if self.settings.exact_endings else stats

    def _context(self, progress: "Progress[State]") -> RootContext:
        return RootContext(progress.noise, progress.kept_visits, self.settings.num_simulations)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Progress(Generic[State]):
    """A search under way."""

    tree: Tree[State]
    noise: Float32[Array, "K"]
    """Root noise, see ``SelectionRule.root_noise``; 0 before the root is evaluated."""
    step: Int32[Array, ""]
    """Next step of the batch: 0 evaluates the roots, each later step runs a round of simulations."""
    num_simulations: Int32[Array, ""]
    """Number of simulations of this game so far; -1 before its root is evaluated."""
    decided: Bool[Array, ""]
    """True if further simulations are skipped for this game."""
    kept_visits: Int32[Array, "K"]
    """See ``RootContext``."""
    keys: Key[Array, "3"]
    """Keys of the noise, the output and the rounds."""


class _Descent(NamedTuple):
    """Selection state of a simulation between the root and a leaf."""

    nodes: Int32[Array, "max_depth+1"]
    """Nodes so far, padded with the capacity of the tree."""
    node: Int32[Array, ""]
    """The current node."""
    candidate: Int32[Array, ""]
    """Index of the selected candidate."""
    action: Int32[Array, ""]
    """The selected action."""
    child: Int32[Array, ""]
    """The child node of the selected candidate; -1 before its first visit."""
    depth: Int32[Array, ""]
    """Depth of the child."""
    inside: Bool[Array, ""]
    """True if selection continues below the child."""
    is_wide: Bool[Array, ""]
    """See ``Path``."""
    kept: Int32[Array, "K"]
    """See ``Path``."""


def _evaluates_root(tree: Tree[Any]) -> Bool[Array, ""]:
    """Return whether the root needs an evaluation before the simulations: it is new, or not widened."""
    return (tree.num_nodes == 0) | (tree.is_narrow[ROOT] & ~tree.proven[ROOT])
