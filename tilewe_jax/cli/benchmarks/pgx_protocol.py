"""Speed of play by the protocol of Pgx (Koyamada et al. 2023, https://github.com/sotetsuk/pgx).

Every step draws a uniformly random action from the dense mask of the legal actions, plays it, restarts finished games, and
computes the mask of the legal actions and the observation of the next player. Steps run in one compiled loop on the whole
machine, and wall time counts. ``tilewe_jax.cli.benchmarks.play`` draws actions without a mask.

The action is the legal one with the largest hash of a random word, in games of Pgx too. Pgx draws by
``jax.random.categorical``, which for a game of 18,000 actions takes ten times as long as the rest of the step.
"""

import time
from typing import Any

from tilewe_jax.cli.benchmarks.process import RefusedError, in_process

BATCHES = (1024, 8192, 65_536)
"""Numbers of games in parallel with which Pgx is measured."""
PGX = "pgx:"
"""Prefix of the names of games of Pgx."""
PGX_GAMES = ("go_19x19", "chess", "othello", "connect_four")


def measure(name: str, options: dict[str, Any], batch: int, seconds: float, seed: int) -> dict[str, Any]:
    """Measure a game, and return the figures as JSON; ``refused`` is the reason if the games do not fit into memory.

    Args:
        name: id of a game of this package, or of a game of Pgx after ``PGX``.
        options: options of a game of this package.
        batch: number of games in parallel.
        seconds: duration of the measurement, at least one step.
        seed: seed of the moves.

    Raises ``RuntimeError`` if the measuring process fails.
    """
    figures: dict[str, Any] = {"game": name, "options": options, "batch": batch, "protocol": "pgx"}
    try:
        figures |= in_process(work, name, options, batch, seconds, seed)
    except RefusedError as error:
        figures["refused"] = str(error)
    except RuntimeError as error:
        raise RuntimeError(f"{error} ({name}, {batch:,} games)") from None
    return figures


def work(name: str, options: dict[str, Any], batch: int, seconds: float, seed: int) -> dict[str, Any]:
    """Measure in this process."""
    import jax
    import jax.numpy as jnp

    from tilewe_jax.bits import hash32
    from tilewe_jax.search.memory import check_compiled

    init, step, num_actions = _pgx(name.removeprefix(PGX)) if name.startswith(PGX) else _ours(name, options)

    def move(carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        games, key = carry
        key, action_key, step_key = jax.random.split(key, 3)
        words = jax.random.bits(action_key, (batch, 1), jnp.uint32)
        numbers = hash32(words, jnp.arange(num_actions, dtype=jnp.uint32)[None]) | 1
        action = jnp.argmax(jnp.where(games[1], numbers, 0), axis=1).astype(jnp.int32)
        return step(games, action, jax.random.split(step_key, batch)), key

    def run(carry: tuple[Any, jax.Array], steps: jax.Array) -> tuple[Any, jax.Array]:
        moved: tuple[Any, jax.Array] = jax.lax.fori_loop(0, steps, lambda _, carry: move(carry), carry)
        return moved

    key = jax.random.key(seed)
    keys = jax.random.split(key, batch)
    started = time.perf_counter()
    start = jax.jit(init).lower(keys).compile()
    shapes = jax.eval_shape(init, keys), key
    compiled = jax.jit(run, donate_argnums=0).lower(shapes, jnp.int32(1)).compile()
    compile_seconds = time.perf_counter() - started
    check_compiled(batch, compiled)
    carry = jax.block_until_ready(compiled((start(keys), key), jnp.int32(2)))
    steps = 0
    started = time.perf_counter()
    count = 1
    while (elapsed := time.perf_counter() - started) < seconds:
        carry = jax.block_until_ready(compiled(carry, jnp.int32(count)))
        steps += count
        # About ten calls a measurement, so that they cost nothing and the last one does not take long.
        count = max(count, int(seconds / 10 / ((time.perf_counter() - started) / steps)))
    return {
        "actions": num_actions,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "steps": steps,
        "moves": steps * batch,
        "seconds": round(elapsed, 3),
        "compile_seconds": round(compile_seconds, 2),
        "moves_per_second": round(steps * batch / elapsed),
    }


def _ours(name: str, options: dict[str, Any]) -> tuple[Any, Any, int]:
    """Return ``init`` and ``step`` of a batch of (states, masks, observations) of a game, and its number of actions."""
    import jax

    from tilewe_jax import batching
    from tilewe_jax.registry import make_game

    game = make_game(name, options)

    def observed(states: Any) -> tuple[Any, Any, Any]:
        masks = jax.vmap(game.legal_action_mask)(states)
        return states, masks, jax.vmap(lambda state: game.observe(state, game.current_player(state)))(states)

    def step(games: Any, actions: Any, keys: Any) -> tuple[Any, Any, Any]:
        states = jax.vmap(game.apply)(games[0], actions)
        return observed(batching.auto_reset(game, keys, jax.vmap(game.is_terminal)(states), states))

    return lambda keys: observed(jax.vmap(game.init)(keys)), step, game.num_actions


def _pgx(name: str) -> tuple[Any, Any, int]:
    """The functions of ``_ours`` for a game of Pgx."""
    import jax
    import pgx
    from pgx.experimental.wrappers import auto_reset

    env = pgx.make(name)
    step_one = jax.vmap(auto_reset(env.step, env.init))

    def observed(states: Any) -> tuple[Any, Any]:
        return states, states.legal_action_mask

    def step(games: Any, actions: Any, keys: Any) -> tuple[Any, Any]:
        return observed(step_one(games[0], actions, keys))

    return lambda keys: observed(jax.vmap(env.init)(keys)), step, env.num_actions
