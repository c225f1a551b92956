"""Games in Pgx: the checks of Pgx, its wrappers, and the loop of its AlphaZero example."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("pgx")

import jax
import jax.numpy as jnp
import mctx
import pgx
from pgx._src import api_test as checks
from pgx.experimental import auto_reset

import tilewe_jax
from tests.support import rows, slow, zero_sum_rewards
from tilewe_jax.interop.pgx import PgxEnv, save_svg_animation

SANTORINI = PgxEnv("santorini", size=3)
TILEWE = PgxEnv("tilewe", size=5, players=3, pieces=["O1", "I2", "L3"])
TRIOMINOS = PgxEnv("triominos", tiles=4, tray=1)


@pytest.fixture(autouse=True)
def _pgx_promotes() -> Iterator[None]:
    """Pgx relies on JAX's default promotion of dtypes and ranks."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("env", [SANTORINI, slow(TILEWE), slow(TRIOMINOS)], ids=lambda env: env.id)
def test_api_test_passes(env: PgxEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """``api_test`` with two changes.

    It compares the id with the ids of Pgx. Its random player, for one game, uses axis 1 of a vector, which JAX 0.10 rejects.
    """
    monkeypatch.setattr(checks, "get_args", lambda ids: (env.id,))
    monkeypatch.setattr(checks, "act_randomly", jax.jit(lambda key, mask: jax.random.categorical(key, jnp.log(mask))))
    checks.api_test(env, 3)


@pytest.mark.parametrize("env", [slow(SANTORINI), TILEWE], ids=lambda env: env.id)
def test_games_follow_the_rules(env: PgxEnv) -> None:
    """Players, masks, observations and rewards against the game in plain Python."""
    init, step, observe = jax.jit(env.init), jax.jit(env.step), jax.jit(env.game.observe)
    random = np.random.default_rng(0)
    orders = set()
    for seed in range(6):
        state = init(jax.random.PRNGKey(seed))
        seat_of = np.asarray(state._seat_of).tolist()
        orders.add(tuple(seat_of))
        position = env.game.host(state._x)
        while not position.is_terminal:
            assert seat_of[int(state.current_player)] == position.current_player
            assert np.flatnonzero(state.legal_action_mask).tolist() == position.legal_actions()
            np.testing.assert_array_equal(state.observation, observe(state._x, position.current_player))
            assert not state.rewards.any()
            action = int(random.choice(position.legal_actions()))
            position, state = position.after(action), step(state, action)
        assert state.terminated
        assert not state.truncated
        np.testing.assert_allclose(state.rewards, zero_sum_rewards(position.scores())[seat_of], atol=1e-6)
    assert len(orders) > 1


def test_illegal_actions_lose() -> None:
    state = jax.jit(SANTORINI.init)(jax.random.PRNGKey(0))
    illegal = int(np.argmin(state.legal_action_mask))
    after = jax.jit(SANTORINI.step)(state, illegal)
    assert after.terminated
    assert after.rewards[state.current_player] == -1
    assert after.rewards.sum() == 0


def test_sizes_are_known_without_playing() -> None:
    state = jax.eval_shape(SANTORINI.init, jax.random.PRNGKey(0))
    assert state.observation.shape == SANTORINI.observation_shape
    assert state.legal_action_mask.shape == (SANTORINI.num_actions,)
    assert (SANTORINI.version, SANTORINI.num_players) == ("v1", 2)
    assert PgxEnv(tilewe_jax.make("santorini", size=3)).game == SANTORINI.game


def test_hidden_trays_stay_hidden() -> None:
    env = PgxEnv("triominos", tiles=4, tray=1)
    state = jax.jit(env.init)(jax.random.PRNGKey(0))
    game = env.game
    resample = jax.jit(jax.vmap(game.determinize, in_axes=(None, None, 0)))
    states = resample(state._x, game.current_player(state._x), jax.random.split(jax.random.key(2), 8))
    resampled = rows(states, np.argmax((states.trays != state._x.trays).any(axis=(1, 2))))
    assert (resampled.trays != state._x.trays).any()
    after = state.replace(_x=resampled)
    np.testing.assert_array_equal(env.observe(after), state.observation)
    assert after.to_svg() == state.to_svg()
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), state, after)
    assert batch.to_svg().count("<svg") == 3


def test_pictures_are_saved_by_the_functions_of_pgx(tmp_path: Path) -> None:
    env = PgxEnv("santorini", size=3)
    first = jax.jit(env.init)(jax.random.PRNGKey(0))
    state = jax.jit(env.step)(first, jnp.argmax(first.legal_action_mask))
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), first, state)
    pgx.save_svg(state, tmp_path / "state.svg", color_theme="dark")
    assert (tmp_path / "state.svg").read_text() == state.to_svg(color_theme="dark")
    for states, count, boards in (([first, state, first], 3, 1), ((batch, batch), 2, 3), ([state], 1, 1)):  # a grid is one more
        pgx.save_svg_animation(states, tmp_path / "game.svg", frame_duration_seconds=0.5)
        root = ET.parse(tmp_path / "game.svg").getroot()
        frames = root.findall("{http://www.w3.org/2000/svg}g")
        assert len(frames) == count
        assert all(len(list(frame.iter("{http://www.w3.org/2000/svg}svg"))) == boards for frame in frames)
        times = [animate.get("keyTimes") for animate in root.iter("{http://www.w3.org/2000/svg}animate")]
        assert len(times) == (count if count > 1 else 0)
    for states, seconds in (([], None), ([state], 0.0), ([state], -1.0)):
        with pytest.raises(ValueError, match="animation"):
            save_svg_animation(states, tmp_path / "none.svg", frame_duration_seconds=seconds)
    pgx_state = pgx.make("tic_tac_toe").init(jax.random.PRNGKey(0))
    pgx.save_svg(pgx_state, tmp_path / "pgx.svg")
    pgx.save_svg_animation([pgx_state, pgx_state], tmp_path / "pgx.svg")
    assert "_fr1" in (tmp_path / "pgx.svg").read_text()


@pytest.mark.slow
def test_gumbel_muzero_plays() -> None:
    """A search of mctx with uniform priors beats random moves, with auto-reset as in the AlphaZero example of Pgx."""
    env, batch = SANTORINI, 8

    def recurrent_fn(params: Any, key: Any, action: Any, state: Any) -> Any:
        after = jax.vmap(env.step)(state, action)
        reward = after.rewards[jnp.arange(batch), state.current_player]
        discount = jnp.where(after.terminated, 0.0, -1.0)
        logits = jnp.where(after.legal_action_mask, 0.0, jnp.finfo(jnp.float32).min)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=jnp.zeros(batch)), after

    def play(state: Any, key: Any) -> Any:
        search_key, random_key, reset_key = jax.random.split(key, 3)
        legal = state.legal_action_mask
        root = mctx.RootFnOutput(prior_logits=jnp.where(legal, 0.0, -1e9), value=jnp.zeros(batch), embedding=state)
        output = mctx.gumbel_muzero_policy(None, search_key, root, recurrent_fn, num_simulations=16, invalid_actions=~legal)
        random_action = jax.random.categorical(random_key, jnp.log(legal))
        action = jnp.where(state.current_player == 0, output.action, random_action)
        after = jax.vmap(auto_reset(env.step, env.init))(state, action, jax.random.split(reset_key, batch))
        return after, (after.terminated, after.rewards[:, 0])

    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(0), batch))
    _, (terminated, rewards) = jax.jit(lambda state, keys: jax.lax.scan(play, state, keys))(
        state, jax.random.split(jax.random.PRNGKey(1), 40)
    )
    assert terminated.sum() > batch
    assert rewards.sum() > terminated.sum() / 4
