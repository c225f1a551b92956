"""Single-observer information-set MCTS (Cowling, Powley and Whitehouse 2012): one tree for all determinizations.

The trees of ``Determinized`` know which determinization they search, and plan as if the mover did. Here every simulation draws
another determinization, and all share one tree, whose nodes are the actions since the root, so that an action is judged by its
mean value over the determinizations. That ends strategy fusion for what the observer decides; except that what the observer
draws within the tree is not told apart. The others decide as if they knew no more than the observer.

States are not kept but computed again along the path, since they differ between determinizations; that is what it costs.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Game, check_state
from tilewe_jax.lanes import any_lane
from tilewe_jax.search.candidates import sample_candidates
from tilewe_jax.search.evaluators import Evaluator, check_evaluation, terminal_value
from tilewe_jax.search.output import PolicyOutput
from tilewe_jax.search.rules import ChildStats, RootContext, SelectionRule
from tilewe_jax.search.settings import SearchSettings
from tilewe_jax.search.tree import ROOT, mean_values
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.loops import while_loop

State = TypeVar("State")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class InformationSetTree:
    """N nodes in the order in which they were added, the root first; room for K actions at each; P players."""

    visits: Int32[Array, "N"]
    value_sum: Float32[Array, "N P"]
    """Sum over the visits, by seat."""
    candidates: Int32[Array, "N K"]
    """Actions that have been tried, in any determinization; -1 in places left over."""
    prior: Float32[Array, "N K"]
    """What ``SelectionRule.store_logits`` made of their logits when they were first tried."""
    children: Int32[Array, "N K"]
    """The node each leads to; -1 in places left over."""
    root_noise: Float32[Array, "K"]
    """Root noise of the actions of the root when they were first tried."""
    num_nodes: Int32[Array, ""]
    """Nodes in use."""


@dataclass(frozen=True)
class InformationSetSearch(Generic[State]):
    """A search of a position as its mover knows it, with any rule: ``search(state, key, params=None) -> PolicyOutput``.

    A node has room for ``num_candidates`` actions; in each determinization it considers the legal ones, or so many of them.
    As the value of a node before it is searched, rules get its mean value so far. Of the settings, ``root_candidate_pool``,
    ``exact_endings`` and ``lookahead`` are without effect: what a position is worth differs between determinizations.

    Raises ``ValueError`` for several ``leaves``.
    """

    game: Game[State]
    evaluator: Evaluator
    rule: SelectionRule
    settings: SearchSettings = field(default_factory=SearchSettings)

    def __post_init__(self) -> None:
        if self.settings.leaves != 1:
            raise ValueError("an information-set search makes one simulation after the other: leaves=1")

    def __call__(self, state: State, key: PRNGKeyArray, params: Any = None) -> PolicyOutput:
        """Search what the mover knows of a position; the candidates of the output are the actions tried at the root.

        Args:
            state: the position; what its mover cannot see makes no difference.
            key: consumed.
            params: parameters of the evaluator.
        """
        output, _ = self.search(state, key, params)
        return output

    def search(self, state: State, key: PRNGKeyArray, params: Any = None) -> tuple[PolicyOutput, InformationSetTree]:
        """The output of a call and the tree behind it; arguments as for a call."""
        require_backend()
        check_state(self.game, state)
        num_simulations, num_candidates = self.settings.num_simulations, self.settings.num_candidates
        key_noise, key_output = jax.random.split(jax.random.fold_in(key, num_simulations))
        keys = jax.random.split(key, num_simulations)
        observer = self.game.current_player(state)
        # At the root the observer knows what is legal, the same in all determinizations.
        num_available = jnp.minimum(self.game.num_legal(state), num_candidates)

        def root_stats(tree: InformationSetTree) -> ChildStats:
            stats, _ = _stats(tree, jnp.int32(ROOT), observer, tree.candidates[ROOT], tree.prior[ROOT])
            # Actions that have not been tried yet come after those that have.
            return stats._replace(available=jnp.arange(num_candidates, dtype=jnp.int32) < num_available)

        def context(noise: Float32[Array, "K"]) -> RootContext:
            return RootContext(noise, jnp.zeros(num_candidates, jnp.int32), num_simulations)

        def goes_on(progress: "_Progress") -> Array:
            running: Array = progress.simulation < num_simulations
            return running & any_lane(~progress.decided) if self.settings.stop_early else running

        def simulate(progress: "_Progress") -> "_Progress":
            tree, simulation, decided = progress.tree, progress.simulation, progress.decided
            key_determinize, key_select = jax.random.split(keys[simulation])
            determinization = self.game.determinize(state, observer, key_determinize)
            path = self._select(params, tree, determinization, simulation, key_noise, key_select)
            _, value = check_evaluation(self.game, self.evaluator, self.evaluator(params, path.state, path.key))
            end = terminal_value(self.game, path.state, self.settings.score_weight)
            value = jnp.where(self.game.is_terminal(path.state), end, value)
            tree = _backup(tree, path, value, ~decided)
            if self.settings.stop_early:
                remaining = num_simulations - simulation - 1
                decided = decided | self.rule.is_decided(root_stats(tree), context(tree.root_noise), remaining)
            return _Progress(tree, simulation + 1, decided)

        start = _Progress(self._init_tree(), jnp.int32(0), jnp.asarray(False))
        tree = while_loop(goes_on, simulate, start).tree
        stats = root_stats(tree)._replace(available=tree.candidates[ROOT] >= 0)
        index, policy = self.rule.output(stats, context(tree.root_noise), key_output)
        output = PolicyOutput(
            action=tree.candidates[ROOT, index],
            candidates=tree.candidates[ROOT],
            prior_probs=self.rule.prior_probs(tree.prior[ROOT]),
            policy=policy,
            value=tree.value_sum[ROOT] / jnp.maximum(tree.visits[ROOT], 1).astype(jnp.float32),
        )
        return output, tree

    def _init_tree(self) -> InformationSetTree:
        num_nodes, num_candidates = self.settings.num_simulations + 1, self.settings.num_candidates
        none = jnp.full((num_nodes, num_candidates), -1, jnp.int32)
        missing = self.rule.store_logits(jnp.full(num_candidates, -jnp.inf, jnp.float32))
        return InformationSetTree(
            visits=jnp.zeros(num_nodes, jnp.int32),
            value_sum=jnp.zeros((num_nodes, self.game.num_players), jnp.float32),
            candidates=none,
            prior=jnp.broadcast_to(missing, none.shape),
            children=none,
            root_noise=jnp.zeros(num_candidates, jnp.float32),
            num_nodes=jnp.int32(1),
        )

    def _select(
        self,
        params: Any,
        tree: InformationSetTree,
        determinization: State,
        simulation: Int32[Array, ""],
        key_noise: PRNGKeyArray,
        key: PRNGKeyArray,
    ) -> "_Descent":
        """Follow actions that are legal in the determinization to one that has not been tried, or to where simulations end."""
        game, settings = self.game, self.settings
        capacity = tree.visits.shape[0]

        def descend(descent: "_Descent") -> "_Descent":
            key, step_key = jax.random.split(descent.key)
            key_evaluator, key_candidates = jax.random.split(step_key)
            state, node = descent.state, descent.node
            logits, _ = check_evaluation(game, self.evaluator, self.evaluator(params, state, key_evaluator))
            sampled = sample_candidates(game, state, logits, key_candidates, settings.num_candidates, settings.candidate_pool)
            stored = self.rule.store_logits(sampled.logits)
            stats, children = _stats(tree, node, game.current_player(state), sampled.actions, stored)
            noise = self._root_noise(sampled.actions, stored, key_noise)
            root = RootContext(noise, jnp.zeros_like(stats.visits), settings.num_simulations)
            selected = jnp.where(
                descent.depth == 0,
                self.rule.select_root(stats, root, simulation),
                self.rule.select_interior(stats),
            )
            is_new = children[selected] < 0
            # A node that has tried all that it has room for keeps no more.
            fits = jnp.any(tree.candidates[node] < 0)
            index = jnp.where(is_new, jnp.where(fits, tree.num_nodes, capacity), children[selected])
            after = game.apply(state, sampled.actions[selected])
            ends = game.is_terminal(after) | is_new | (descent.depth + 1 >= settings.max_depth)
            return _Descent(
                state=after,
                node=index,
                depth=descent.depth + 1,
                nodes=descent.nodes.at[descent.depth + 1].set(index),
                parent=node,
                action=sampled.actions[selected],
                prior=stored[selected],
                noise=noise[selected],
                running=~ends,
                key=key,
            )

        zero, nothing = jnp.int32(0), jnp.float32(0)
        start = _Descent(
            state=determinization,
            node=jnp.int32(ROOT),
            depth=zero,
            nodes=jnp.full(settings.max_depth + 1, capacity, jnp.int32).at[0].set(ROOT),
            parent=zero,
            action=zero,
            prior=nothing,
            noise=nothing,
            running=~game.is_terminal(determinization),
            key=key,
        )
        return while_loop(lambda descent: descent.running, descend, start)

    def _root_noise(self, actions: Int32[Array, "K"], stored: Float32[Array, "K"], key: PRNGKeyArray) -> Float32[Array, "K"]:
        """Root noise that is the same for an action in all simulations, as long as the root has the same candidates.

        Candidates come in another order in each simulation, so the noise is drawn for their ascending order.
        """
        ascending = jnp.argsort(actions).astype(jnp.int32)
        ordered = stored[ascending]
        noise = self.rule.root_noise(ordered, key)
        return stored if noise is ordered else jnp.zeros_like(noise).at[ascending].set(noise)


def _stats(
    tree: InformationSetTree,
    node: Int32[Array, ""],
    player: Int32[Array, ""],
    actions: Int32[Array, "K"],
    prior: Float32[Array, "K"],
) -> tuple[ChildStats, Int32[Array, "K"]]:
    """The statistics of some actions at a node for whoever moves there, and their nodes, -1 where they have not been tried."""
    same = (actions[:, None] == tree.candidates[node][None]) & (actions >= 0)[:, None]
    children = jnp.where(jnp.any(same, axis=1), tree.children[node][jnp.argmax(same, axis=1).astype(jnp.int32)], -1)
    visits, value = mean_values(tree.visits, tree.value_sum, children, player)
    node_visits = tree.visits[node]
    node_value = tree.value_sum[node, player] / jnp.maximum(node_visits, 1).astype(jnp.float32)
    return ChildStats(actions >= 0, prior, visits, value, node_visits, node_value, node_value), children


def _backup(
    tree: InformationSetTree, leaf: "_Descent", value: Float32[Array, "P"], active: Bool[Array, ""]
) -> InformationSetTree:
    """The tree with the leaf added and its value backed up; unchanged where not ``active``."""
    capacity, num_candidates = tree.candidates.shape
    nodes = jnp.where(active, leaf.nodes, capacity)
    is_new = (leaf.node == tree.num_nodes) & active
    parent, place = jnp.where(is_new, leaf.parent, capacity), jnp.sum(tree.candidates[leaf.parent] >= 0, dtype=jnp.int32)
    return replace(
        tree,
        visits=tree.visits.at[nodes].add(1, mode="drop"),
        value_sum=tree.value_sum.at[nodes].add(value[None], mode="drop"),
        candidates=tree.candidates.at[parent, place].set(leaf.action, mode="drop"),
        prior=tree.prior.at[parent, place].set(leaf.prior, mode="drop"),
        children=tree.children.at[parent, place].set(leaf.node, mode="drop"),
        root_noise=tree.root_noise.at[jnp.where(parent == ROOT, place, num_candidates)].set(leaf.noise, mode="drop"),
        num_nodes=tree.num_nodes + is_new.astype(jnp.int32),
    )


class _Progress(NamedTuple):
    """A search under way."""

    tree: InformationSetTree
    simulation: Int32[Array, ""]
    decided: Bool[Array, ""]


class _Descent(NamedTuple):
    """A simulation on its way from the root to a leaf."""

    state: Any
    node: Int32[Array, ""]
    """Where it is: a new node is the next one of the tree, and the capacity of the tree where there is no room for it."""
    depth: Int32[Array, ""]
    nodes: Int32[Array, "max_depth+1"]
    """Nodes to back up through; the capacity of the tree in places left over."""
    parent: Int32[Array, ""]
    """The node before."""
    action: Int32[Array, ""]
    """Action taken at ``parent``."""
    prior: Float32[Array, ""]
    """What the rule stores of its logit."""
    noise: Float32[Array, ""]
    """Its root noise, where the parent is the root."""
    running: Bool[Array, ""]
    key: PRNGKeyArray
