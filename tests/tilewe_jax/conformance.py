"""What every Game must do, whatever its rules. ``check`` calls all of it."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tilewe_jax
from tests.support import assert_same, batched, positions, rows
from tilewe_jax.game import Game
from tilewe_jax.registry import games

BATCH = 16


def check(game: Game[Any], max_state_bytes: int, eager: bool = True) -> None:
    """Raise ``AssertionError`` where the game breaks the protocol. ``eager`` asks a function without ``jit`` too: slow."""
    check_identity(game)
    check_state(game, max_state_bytes)
    history = list(positions(game, BATCH))
    check_play(game, history)
    check_masks(game, history)
    check_refusals(game, history)
    check_sampling(game, history)
    check_forms(game, history, eager)
    check_hidden(game, history)
    check_choices(game, history)


def check_identity(game: Game[Any]) -> None:
    again = tilewe_jax.make(game.id, **game.options)
    assert again == game
    assert hash(again) == hash(game)
    assert game.id in games()
    assert isinstance(game.version, int)


def check_state(game: Game[Any], max_state_bytes: int) -> None:
    state = game.init(jax.random.key(0))
    leaves = jax.tree.leaves(state)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    assert sum(leaf.nbytes for leaf in leaves) <= max_state_bytes
    assert_same(game.init_from_deal(game.deal(state)), state)
    if game.fixed_start:
        assert_same(game.init(jax.random.key(1)), state)
        assert game.deal(state) is None
    for function, dtype, shape in (
        (game.current_player, jnp.int32, ()),
        (game.is_terminal, jnp.bool_, ()),
        (game.is_truncated, jnp.bool_, ()),
        (game.num_legal, jnp.int32, ()),
        (game.legal_actions, jnp.bool_, (game.num_actions,)),
        (game.scores, jnp.int32, (game.num_players,)),
        (game.returns, jnp.float32, (game.num_players,)),
    ):
        result = jax.eval_shape(function, state)
        assert (result.dtype, result.shape) == (dtype, shape), function
    assert jax.eval_shape(game.observe, state, jnp.int32(0)).dtype == jnp.float32
    after = jax.eval_shape(game.apply, state, jnp.int32(-1))
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)
    assert game.text(state)
    assert game.svg(state).startswith("<svg")


def check_play(game: Game[Any], history: list[tuple[Any, np.ndarray]]) -> None:
    """Every random game ends, and only then has returns; the share of the win sums to one."""
    functions = batched(game)
    for state, action in history:
        over = np.asarray(functions.is_terminal(state))
        np.testing.assert_array_equal(over, action < 0)
        np.testing.assert_array_equal(over, np.asarray(functions.num_legal(state)) == 0)
        player = np.asarray(functions.current_player(state))
        assert np.all((player >= 0) & (player < game.num_players))
        returns = np.asarray(functions.returns(state))
        assert np.all(returns[~over] == 0)
        if game.num_players > 1:
            np.testing.assert_allclose(returns[over].sum(axis=1), 1, rtol=1e-6)
        assert np.all((returns >= 0) & (returns <= 1))
    assert not np.any(np.asarray(functions.is_truncated(history[-1][0]) & ~functions.is_terminal(history[-1][0])))


def check_masks(game: Game[Any], history: list[tuple[Any, np.ndarray]]) -> None:
    """The mask is the set of actions for which ``is_legal``, and ``num_legal`` is its size."""
    every = jnp.arange(-2, game.num_actions + 2, dtype=jnp.int32)
    one_by_one = jax.jit(jax.vmap(game.is_legal, in_axes=(None, 0)))
    for state, _ in (history[0], history[len(history) // 3], history[len(history) // 2], history[-2], history[-1]):
        mask = np.asarray(batched(game).legal_actions(state))
        np.testing.assert_array_equal(mask.sum(axis=1), np.asarray(batched(game).num_legal(state)))
        for lane in range(0, BATCH, 5):
            legal = np.asarray(one_by_one(rows(state, lane), every))
            np.testing.assert_array_equal(legal[2:-2], mask[lane])
            assert not legal[:2].any()
            assert not legal[-2:].any()


def check_refusals(game: Game[Any], history: list[tuple[Any, np.ndarray]]) -> None:
    """An illegal action, and any action at the end, leaves the state as it is; so does -1."""
    functions = batched(game)
    rng = np.random.default_rng(0)
    for state, _ in (*history[:: max(1, len(history) // 4)], history[-1]):
        mask = np.asarray(functions.legal_actions(state))
        illegal = np.array([rng.choice(np.flatnonzero(~row)) for row in mask], np.int32)
        for action in (illegal, *(np.full(BATCH, a, np.int32) for a in (-1, -2, -(2**31), game.num_actions, 2**31 - 1))):
            assert not np.any(np.asarray(functions.is_legal(state, action)))
            assert_same(functions.step(state, action), state)
        assert_same(functions.apply(state, np.full(BATCH, -1, np.int32)), state)
    last, _ = history[-1]
    for action in rng.integers(0, game.num_actions, (8, BATCH)).astype(np.int32):
        assert_same(functions.step(last, action), last)


def check_sampling(game: Game[Any], history: list[tuple[Any, np.ndarray]]) -> None:
    """``sample_action`` is uniform over the legal actions, by a chi-square test at four and a half standard deviations."""
    sample = jax.jit(jax.vmap(game.sample_action, in_axes=(None, 0)))
    for step in (0, len(history) // 2, len(history) - 3):
        state = rows(history[step][0], 1)
        legal = np.flatnonzero(np.asarray(game.legal_actions(state)))
        if not len(legal):
            continue
        draws = 8192
        actions = np.asarray(sample(state, jax.random.split(jax.random.key(step), draws)))
        counts = np.bincount(actions, minlength=game.num_actions)
        assert counts.sum() == counts[legal].sum() == draws
        expected, freedom = draws / len(legal), len(legal) - 1
        if not freedom:
            continue
        statistic = ((counts[legal] - expected) ** 2 / expected).sum()
        # Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is close to normal.
        deviation = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
        assert abs(deviation) < 4.5, (step, statistic, freedom)


def check_forms(game: Game[Any], history: list[tuple[Any, np.ndarray]], eager: bool) -> None:
    """vmap = loop, nested vmap = flat, jit = no jit, the same call gives the same, and forced skips come out the same."""
    functions = batched(game)
    single = jax.jit(game.step)
    for state, action in (history[0], history[len(history) // 2], history[-2]):
        after = functions.step(state, action)
        assert_same(functions.step(state, action), after)
        for lane in (0, BATCH - 1):
            assert_same(single(rows(state, lane), action[lane]), rows(after, lane))
        nested = jax.tree.map(lambda leaf: leaf.reshape(2, BATCH // 2, *leaf.shape[1:]), (state, action))
        twice = jax.jit(jax.vmap(jax.vmap(game.step)))(*nested)
        assert_same(jax.tree.map(lambda leaf: leaf.reshape(BATCH, *leaf.shape[2:]), twice), after)
        outer = jax.jit(jax.vmap(jax.vmap(game.is_legal, in_axes=(None, 0)), in_axes=(0, None)))(state, action)
        assert bool(jnp.all(jnp.diagonal(outer) == (action >= 0)))
        owing = functions.apply_deferred(state, action)
        assert_same(functions.resolve_passes(owing), after)
        for _ in range(game.num_players):
            owing = functions.apply_deferred(owing, jnp.full(BATCH, -1, jnp.int32))
        assert_same(owing, after)
    if eager:
        state, action = rows(history[len(history) // 2], 0)
        assert_same(game.step(state, action), single(state, action))
    keys = jax.random.split(jax.random.key(3), BATCH)
    shares = np.asarray(functions.playout(history[len(history) // 2][0], keys))
    if game.num_players > 1:
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)


def check_hidden(game: Game[Any], history: list[tuple[Any, np.ndarray]]) -> None:
    """What ``determinize`` draws anew, the observer cannot tell from what was; nor can the rules."""
    functions = batched(game)
    keys = jax.random.split(jax.random.key(1), BATCH)
    for state, _ in history[:: max(1, len(history) // 3)]:
        for player in range(game.num_players):
            seat = jnp.full(BATCH, player, jnp.int32)
            other = functions.determinize(state, seat, keys)
            assert_same(functions.observe(other, seat), functions.observe(state, seat))
            for known in (functions.current_player, functions.is_terminal, functions.scores, functions.returns):
                assert_same(known(other), known(state))


def check_choices(game: Game[Any], history: list[tuple[Any, np.ndarray]]) -> None:
    """Random actions are legal and different, all of them where they fit; and what they look worth are numbers."""
    size = 8
    choose = jax.jit(jax.vmap(lambda state, key: game.sample_actions(state, key, size)))
    heuristic_logits = jax.jit(jax.vmap(game.heuristic_logits))
    heuristic_value = jax.jit(jax.vmap(game.heuristic_value))
    for state, _ in (history[0], history[-4], history[-1]):
        mask = np.asarray(batched(game).legal_actions(state))
        actions = choose(state, jax.random.split(jax.random.key(4), BATCH))
        for legal, chosen in zip(mask, np.asarray(actions), strict=True):
            real = chosen[chosen >= 0]
            assert len(set(real.tolist())) == len(real) == min(size, legal.sum())
            assert np.all(legal[real])
        assert np.isfinite(np.asarray(heuristic_logits(state, actions))[np.asarray(actions) >= 0]).all()
        shares = np.asarray(heuristic_value(state))
        assert np.all(shares >= 0)
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
