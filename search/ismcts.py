"""Single-observer information-set MCTS (Cowling, Powley and Whitehouse 2012): one tree for all determinizations.

Every simulation samples a new determinization, and all simulations share one tree, whose nodes are sequences of actions from
the root. An action is valued by its mean over determinizations, which avoids the strategy fusion of ``Determinized`` for the
decisions of the observer (the player to move at the root). The tree does not distinguish the observer's draws below the root,
and opponents decide as if they had the observer's information.

States differ between determinizations, so they are recomputed along the path instead of stored.
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
    """A tree with room for N nodes of K actions, for P players; nodes are in order of insertion, the root first."""

    visits: Int32[Array, "N"]
    """Visit counts."""
    value_sum: Float32[Array, "N P"]
    """Sum of the values of all visits, by seat."""
    candidates: Int32[Array, "N K"]
    """Actions tried in any determinization, padded with -1."""
    prior: Float32[Array, "N K"]
    """Priors as stored by ``SelectionRule.store_logits`` when the action was first tried."""
    children: Int32[Array, "N K"]
    """Index of the child node of each action, padded with -1."""
    root_noise: Float32[Array, "K"]
    """Root noise of each root action when it was first tried."""
    num_nodes: Int32[Array, ""]
    """Number of used nodes."""


@dataclass(frozen=True)
class InformationSetSearch(Generic[State]):
    """A search with the information of the player to move: ``search(state, key, params=None) -> PolicyOutput``.

    A node stores up to ``num_candidates`` actions and considers at most that many legal actions in each determinization. Rules
    receive the mean value of a node as its raw value. The settings ``root_candidate_pool``, ``widen_visits``, ``exact_endings``
    and ``lookahead`` have no effect, because actions and outcomes differ between determinizations.

    Raises ``ValueError`` for ``leaves`` other than 1.
    """

    game: Game[State]
    evaluator: Evaluator
    rule: SelectionRule
    settings: SearchSettings = field(default_factory=SearchSettings)

    def __post_init__(self) -> None:
        if self.settings.leaves not in (None, 1):
            raise ValueError(f"leaves must be 1 in an information-set search, got {self.settings.leaves}")

    def __call__(self, state: State, key: PRNGKeyArray, params: Any = None) -> PolicyOutput:
        """Search a position; the candidates of the output are the actions tried at the root.

        Args:
            state: the position; information hidden from the player to move is resampled.
            key: consumed.
            params: parameters of the evaluator.
        """
        output, _ = self.search(state, key, params)
        return output

    def search(self, state: State, key: PRNGKeyArray, params: Any = None) -> tuple[PolicyOutput, InformationSetTree]:
        """Return the output and the tree; arguments as for ``__call__``."""
        require_backend()
        check_state(self.game, state)
        num_simulations, num_candidates = self.settings.num_simulations, self.settings.num_candidates
        key_noise, key_output = jax.random.split(jax.random.fold_in(key, num_simulations))
        keys = jax.random.split(key, num_simulations)
        observer = self.game.current_player(state)
        # The legal actions of the root are the same in all determinizations.
        num_available = jnp.minimum(self.game.num_legal(state), num_candidates)

        def root_stats(tree: InformationSetTree) -> ChildStats:
            stats, _ = _stats(tree, jnp.int32(ROOT), observer, tree.candidates[ROOT], tree.prior[ROOT])
            # Untried actions take the places after the tried ones.
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
        """Follow legal actions of the determinization to an untried action, a terminal state or the maximum depth."""
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
            # A node whose places are all taken stores no further actions.
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
        """Sample root noise that depends on the set of candidates but not on their order, which differs between simulations."""
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
    """Return the statistics of actions at a node for a player, and their child nodes, -1 for untried actions."""
    same = (actions[:, None] == tree.candidates[node][None]) & (actions >= 0)[:, None]
    children = jnp.where(jnp.any(same, axis=1), tree.children[node][jnp.argmax(same, axis=1).astype(jnp.int32)], -1)
    visits, value = mean_values(tree.visits, tree.value_sum, children, player)
    node_visits = tree.visits[node]
    node_value = tree.value_sum[node, player] / jnp.maximum(node_visits, 1).astype(jnp.float32)
    return ChildStats(actions >= 0, prior, visits, value, node_visits, node_value, node_value), children


def _backup(
    tree: InformationSetTree, leaf: "_Descent", value: Float32[Array, "P"], active: Bool[Array, ""]
) -> InformationSetTree:
    """Add the leaf and back up its value, if ``active``."""
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
    """State of the simulation loop."""

    tree: InformationSetTree
    simulation: Int32[Array, ""]
    decided: Bool[Array, ""]


class _Descent(NamedTuple):
    """Selection state of a simulation between the root and a leaf."""

    state: Any
    node: Int32[Array, ""]
    """The current node; ``num_nodes`` for a new node, the capacity of the tree for a node that is not stored."""
    depth: Int32[Array, ""]
    nodes: Int32[Array, "max_depth+1"]
    """Nodes to back up through, padded with the capacity of the tree."""
    parent: Int32[Array, ""]
    """The previous node."""
    action: Int32[Array, ""]
    """Action taken at ``parent``."""
    prior: Float32[Array, ""]
    """Stored prior of ``action``."""
    noise: Float32[Array, ""]
    """Root noise of ``action`` if ``parent`` is the root."""
    running: Bool[Array, ""]
    key: PRNGKeyArray
