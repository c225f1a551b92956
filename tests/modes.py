"""Play small games under the current configuration of JAX: ``python -m tests.modes [PART ...]``.

Prints one digest per game and part. ``test_modes`` runs this program with the environment variables of each mode; digests must
be equal in modes that do not change arithmetic.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tilewe_jax
from tilewe_jax.batching import init_stream, run_stream
from tilewe_jax.search import (
    determinized_policy,
    gumbel_policy,
    heuristic_evaluator,
    ismcts_policy,
    playout_evaluator,
    puct_policy,
)

BATCH = 3
SEARCH = {"num_simulations": 4, "num_candidates": 4, "max_depth": 4}


def games() -> list[Any]:
    """Return a small game of every family."""
    return [
        tilewe_jax.make("santorini", size=3),
        tilewe_jax.make("duo", size=5, pieces=["O1", "I2", "L3"]),
        tilewe_jax.make("triominos", tiles=10, tray=2),
    ]


def keys(seed: int, count: int = BATCH) -> Any:
    """Return the keys of a batch."""
    return jax.random.split(jax.random.key(seed), count)


def play(game: Any) -> Any:
    """Play whole games, a stream, and steps of an ``Environment``."""
    ends = jax.jit(lambda key: tilewe_jax.rollout(game, key, BATCH))(jax.random.key(0))
    stream = init_stream(game, jax.random.key(1), BATCH, 2)
    _, steps = jax.jit(lambda stream: run_stream(game, stream, 3))(stream)
    environment = tilewe_jax.Environment(game)
    states, _ = environment.reset(jax.random.key(2), BATCH)
    actions = jax.vmap(game.sample_action)(states.state, keys(3))
    _, timestep = jax.jit(environment.step)(states, actions)
    return ends, steps, timestep


def policies(game: Any) -> Any:
    """Run the built-in policies."""
    state = game.init(jax.random.key(0))
    return {name: jax.jit(policy)(state, jax.random.key(1)) for name, policy in game.policies().items()}


def searches(game: Any) -> Any:
    """Run every search."""
    state, evaluator = game.init(jax.random.key(0)), heuristic_evaluator(game)

    def run(policy: Callable[..., Any], **settings: Any) -> Any:
        output = jax.jit(lambda state, key: policy(game, evaluator, state, key, **SEARCH, **settings))(state, jax.random.key(1))
        return getattr(output, "policy_output", output)

    outputs = {"gumbel": run(gumbel_policy, gumbel_scale=1.0), "puct": run(puct_policy)}
    if game.has_hidden_information:
        outputs["ismcts"] = run(ismcts_policy)
        outputs["determinized"] = run(determinized_policy, num_determinizations=2)
    else:
        output = jax.jit(
            lambda state, key: gumbel_policy(game, playout_evaluator(game), state, key, **SEARCH, leaves=2, exact_endings=True)
        )(state, jax.random.key(1))
        outputs["leaves"] = output.policy_output
    return outputs


def moves(game: Any) -> Any:
    """Play single moves without ``jit``."""
    state = game.init(jax.random.key(0))
    for key in jax.random.split(jax.random.key(1), 2):
        action = game.sample_action(state, key)
        state = game.step(state, action)
    legal, scores = game.legal_action_mask(state), game.scores(state)
    return state, legal, scores, game.observe(state, game.current_player(state))


def legacy(game: Any) -> Any:
    """Play with raw ``uint32`` keys."""
    with jax.numpy_dtype_promotion("standard"):
        key = jax.random.PRNGKey(0)
    state = game.init(key)
    action = game.sample_action(state, key)
    ends = jax.jit(lambda key: tilewe_jax.rollout(game, key, BATCH))(key)
    games, _ = tilewe_jax.Environment(game).reset(key, BATCH)
    actions = jnp.zeros(BATCH, jnp.int32)
    return game.step(state, action), ends, jax.jit(tilewe_jax.Environment(game).step)(games, actions)


def split(game: Any) -> Any:
    """Play on two devices with ``jax.shard_map`` and its default arguments."""
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    evaluator = heuristic_evaluator(game)
    environment = tilewe_jax.Environment(game)

    def of_part(keys: Any) -> Any:
        state, several = jax.vmap(game.init)(keys), jax.vmap(jax.random.split)(keys)[:, 0]
        actions = jax.vmap(game.sample_action)(state, several)
        state = jax.vmap(game.step)(state, actions)
        games, _ = environment.reset(keys[0], keys.shape[0])
        games, timestep = environment.step(games, jax.vmap(game.sample_action)(games.state, several))
        ends = tilewe_jax.rollout(game, keys[0], keys.shape[0], list(game.policies().values())[-1])
        stream = init_stream(game, keys[0], keys.shape[0], 2)
        _, steps = run_stream(game, stream, 3)
        searches = (gumbel_policy, puct_policy, *([ismcts_policy] if game.has_hidden_information else []))
        outputs = [jax.vmap(partial(search, game, evaluator, **SEARCH))(state, keys) for search in searches]
        return actions, state, timestep, ends, steps, [getattr(output, "policy_output", output) for output in outputs]

    function = jax.shard_map(of_part, mesh=mesh, in_specs=jax.P("data"), out_specs=jax.P("data"))
    return jax.jit(function)(keys(4, 2 * BATCH))


PARTS: dict[str, Callable[[Any], Any]] = {
    "play": play,
    "policies": policies,
    "searches": searches,
    "moves": moves,
    "legacy": legacy,
    "split": split,
}


def digest(tree: Any) -> str:
    """Return a digest of the arrays of a pytree and their dtypes."""
    parts = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            continue
        array = np.asarray(leaf)
        parts.update(f"{array.dtype}{array.shape}".encode())
        parts.update(np.round(array, 4).tobytes() if array.dtype.kind == "f" else array.tobytes())
    return parts.hexdigest()[:16]


def main(names: list[str]) -> None:
    """Print a digest for every game and part."""
    for game in games():
        for name in names or list(PARTS)[:3]:
            print(game.id, name, digest(PARTS[name](game)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
