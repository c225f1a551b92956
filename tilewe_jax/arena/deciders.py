"""Which agents of a match decide on the device together, and the functions by which they choose their actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax import batching
from tilewe_jax.agents import Agent
from tilewe_jax.game import SharingPolicy
from tilewe_jax.lanes import chunk_size, materialize, some_set, where_needed

SEARCHED_TOGETHER = 16
"""Maximum number of games that an agent with a tree searches together on a CPU."""


@dataclass
class Decider:
    """One agent on the device, or several policies that are compiled together."""

    indices: np.ndarray
    """Indices of the players."""
    agent: Agent | None
    """The agent; ``None`` for several policies."""
    divisor: int
    """The players are to move in about one of ``divisor`` games."""
    together: Callable[..., Any] | None = None
    """The ``IndexedPolicy`` of several policies."""
    choose: Any = None
    """Compiled: adds the decider's actions to the actions of all games, and returns the new memory, ``[batch, ...]``."""
    init: Any = None
    """Compiled: returns the memory of new games, which is their trees."""
    advance: Any = None
    """Compiled: returns the memory after the actions of all games."""

    @property
    def keeps_tree(self) -> bool:
        """True if the agent carries a tree from move to move."""
        return self.agent is not None and self.agent.keeps_tree

    @property
    def program_key(self) -> Any:
        """Identifies the compiled program of an agent with a tree, shared by agents that differ only in their weights."""
        leaves, structure = jax.tree.flatten(self.agent)
        shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
        return structure, shapes, self.divisor


def make_deciders(agents: dict[int, Agent], divisors: Sequence[int]) -> list[Decider]:
    """Group agents on the device, given by index: policies of one ``SharingPolicy`` class are compiled together."""
    sharing: dict[type[Any], dict[int, Any]] = {}
    for index, agent in agents.items():
        policy = getattr(agent.weights, "func", None)
        if isinstance(policy, SharingPolicy) and not agent.keeps_tree:
            sharing.setdefault(type(policy), {})[index] = policy
    groups = [(kind, policies) for kind, policies in sharing.items() if len(policies) > 1]
    grouped = {index for _, policies in groups for index in policies}
    result = [
        Decider(
            np.array(list(policies), np.int32),
            None,
            max(1, int(1 / sum(1 / divisors[index] for index in policies))),
            kind.together(list(policies.values())),
        )
        for kind, policies in groups
    ]
    single = [index for index in agents if index not in grouped]
    return result + [Decider(np.array([index], np.int32), agents[index], divisors[index]) for index in single]


def as_argument(agent: Agent) -> Agent:
    """Return the agent as an argument of compiled functions, without its name and the source of its network."""
    spec = agent.spec
    if spec and agent.is_search:
        spec = replace(spec, book=bool(spec.book), book_margin=0.0)
        if agent.weights is not None:
            spec = replace(spec, evaluator=replace(spec.evaluator, network="loaded"))
    return replace(agent, name="", spec=spec)


def init_trees(agent: Agent, state: Any) -> Any:
    """Return the trees of an agent for a batch of new games."""
    return jax.vmap(agent.init)(state)


def advance_trees(agent: Agent, tree: Any, action: jax.Array) -> Any:
    """Return the trees of an agent after an action in each game."""
    return jax.vmap(agent.advance)(tree, action)


def decide(
    divisor: int,
    together: Callable[..., Any] | None,
    devices: int,
    agent: Agent | None,
    memory: Any,
    movers: jax.Array,
    state: Any,
    keys: jax.Array,
) -> tuple[jax.Array, Any]:
    """Return the actions in the games in which the players of a decider are to move, and its new memory.

    Args:
        divisor: see ``Decider``.
        together: see ``Decider``.
        devices: number of devices that share the games.
        agent: see ``Decider``.
        memory: the memory of all games, ``[batch, ...]``; ``None`` without trees.
        movers: whether each player of the decider is to move in each game, ``bool[players, batch]``.
        state: the states of all games, ``[batch, ...]``.
        keys: a key for each game.

    Returns:
        The actions, ``int32[batch]``, -1 in all other games, and the memory.
    """
    mine = jnp.any(movers, axis=0)
    if together is not None:
        choose = batching.split_over_devices(partial(_policy_actions, divisor, together), devices)
        return choose(mine, state, keys, jnp.argmax(movers, axis=0).astype(jnp.int32)), memory
    if memory is None:
        return batching.split_over_devices(partial(_agent_actions, divisor), devices, shared=1)(agent, mine, state, keys), None
    actions, memory = batching.split_over_devices(partial(_tree_actions, divisor), devices, shared=1)(
        agent, mine, state, keys, memory
    )
    return actions, memory


def _agent_actions(divisor: int, agent: Agent, mine: jax.Array, state: Any, keys: jax.Array) -> jax.Array:
    return _policy_actions(divisor, agent.act, mine, state, keys)


def _policy_actions(
    divisor: int, policy: Callable[..., Any], mine: jax.Array, state: Any, keys: jax.Array, *which: jax.Array
) -> jax.Array:
    """Return the actions of a policy in the games of the mask ``mine``, -1 elsewhere.

    The policy runs only in these games, in chunks of one in ``divisor`` games. An ``IndexedPolicy`` also takes ``which``.
    """
    impl, none = jax.random.key_impl(keys), jnp.full(mine.shape, -1, jnp.int32)

    def decide(state: Any, words: jax.Array, *which: jax.Array) -> jax.Array:
        keys = jax.random.wrap_key_data(words.T, impl=impl)
        actions: jax.Array = jax.vmap(policy, in_axes=(*(0 for _ in which), -1, 0))(*which, state, keys)
        return actions

    batch_last = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), (state, jax.random.key_data(keys), *which))
    return where_needed(mine, decide, batch_last, none, divisor)


def _tree_actions(
    divisor: int, agent: Agent, mine: jax.Array, state: Any, keys: jax.Array, memory: Any
) -> tuple[jax.Array, Any]:
    """Return the actions of an agent that keeps its tree, like ``_policy_actions``, and its new memory."""
    impl, none = jax.random.key_impl(keys), jnp.full(mine.shape, -1, jnp.int32)
    words = jax.random.key_data(keys)
    chunk = games_together(mine.shape[0], divisor)

    # The batch axis stays first: trees are too large to transpose.
    def decide(carry: tuple[jax.Array, jax.Array, Any]) -> tuple[jax.Array, jax.Array, Any]:
        remaining, action, memory = carry
        # XLA would compile the search for indices into each gather and scatter of the tree.
        index = materialize(partial(some_set, count=chunk), remaining)
        # A chunk that is not full repeats its first game, which takes no more steps.
        source = jnp.where(index < mine.shape[0], index, index[0])
        part = jax.tree.map(lambda leaf: jnp.take(leaf, source, axis=0, mode="clip"), (memory, state, words))
        some_memory, some_state, some_words = part
        chosen, after = jax.vmap(agent.play)(some_memory, some_state, jax.random.wrap_key_data(some_words, impl=impl))
        memory = jax.tree.map(lambda leaf, new: leaf.at[index].set(new, mode="drop"), memory, after)
        return remaining.at[index].set(False, mode="drop"), action.at[index].set(chosen, mode="drop"), memory

    _, action, memory = jax.lax.while_loop(lambda carry: jnp.any(carry[0]), decide, (mine, none, memory))
    return action, memory


def games_together(batch: int, divisor: int) -> int:
    """Return the number of games that an agent with a tree searches together, if it is to move in one of ``divisor`` games.

    All games of a chunk continue until the last one is decided, and on a CPU a simulation of 64 games together is hardly
    cheaper than of 16.
    """
    if jax.default_backend() != "cpu":
        return chunk_size(batch, divisor)
    movers = -(-batch // divisor)
    return -(-movers // -(-movers // SEARCHED_TOGETHER))
