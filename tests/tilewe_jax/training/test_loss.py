"""Losses."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests import toy
from tests.search.tictactoe import TicTacToe
from tests.support import positions, rows
from tilewe_jax import networks
from tilewe_jax.game import observation_shape
from tilewe_jax.training import loss, replay
from tilewe_jax.training.config import LossConfig
from tilewe_jax.training.heads import ownership_head
from tilewe_jax.training.replay import Positions

GAME = TicTacToe()


def test_losses_agree_with_numpy() -> None:
    """The second player is to move, so that seats are rotated."""
    config = LossConfig(root_value_weight=0.25, outcome_loss_weight=2.0, score_loss_weight=0.5)
    state = GAME.step(GAME.init(jax.random.key(0)), jnp.int32(4))
    outputs = networks.Outputs(jnp.arange(9.0), jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 0.5]))
    position = Positions(
        state,
        jnp.asarray([8, 0, 2, -1]),
        jnp.asarray([0.5, 0.25, 0.25, 0.0]),
        jnp.asarray([0.4, 0.6]),
        jnp.float32(0),
        jnp.int32(0),
        jnp.asarray([0.0, 1.0]),
        jnp.asarray([0.1, 0.9]),
        jnp.asarray([0.2, 0.8]),
    )
    total, parts = loss.position_loss(config, GAME, lambda observation: outputs, position, jax.random.key(0))

    def divergence(target: list[float], logits: list[float]) -> float:
        guess = np.exp(logits) / np.exp(logits).sum()
        return float(sum(p * np.log(p / q) for p, q in zip(target, guess, strict=True) if p))

    policy = divergence([0.5, 0.25, 0.25], [8.0, 0.0, 2.0])
    # The mover, seat 1, comes first.
    outcome = divergence([0.25 * 0.6 + 0.75 * 0.9, 0.25 * 0.4 + 0.75 * 0.1], [1.0, 0.0])
    score = divergence([0.8, 0.2], [0.0, 0.5])
    np.testing.assert_allclose([parts.policy, parts.outcome, parts.score], [policy, outcome, score], rtol=1e-5)
    np.testing.assert_allclose(total, policy + 2 * outcome + 0.5 * score, rtol=1e-5)
    assert float(parts.agreement) == 1
    assert np.asarray(parts.calibration)[0].sum() == 2
    unfinished = replace(position, returns=jnp.full(2, replay.UNKNOWN))
    nothing, _ = loss.position_loss(config, GAME, lambda observation: outputs, unfinished, jax.random.key(0))
    assert float(nothing) == 0
    wrong = outputs._replace(outcome_logits=jnp.zeros(3))
    with pytest.raises(ValueError, match=r"outcome_logits float32\[2\], got float32\[3\]"):
        loss.predict(GAME, lambda observation: wrong, state, position.candidates)

    def model_of_logits(observation: Any) -> Any:
        return outputs.logits

    with pytest.raises(TypeError, match=r"model_of_logits: expected networks\.Outputs"):
        networks.check_outputs(model_of_logits, outputs.logits, 9, 2)


def test_ownership_loss_is_relative_to_the_mover() -> None:
    """The loss agrees with NumPy, and the final state is transformed with the position."""
    config = LossConfig(ownership_loss_weight=0.5, augment=False)
    game, size = toy.GAME, toy.GAME.config.size
    state = final = game.step(game.init(jax.random.key(0)), game.sample_action(game.init(jax.random.key(0)), jax.random.key(1)))
    step, draw = jax.jit(game.step), jax.jit(game.sample_action)
    while not game.is_terminal(final):
        final = step(final, draw(final, jax.random.key(2)))
    boards = [sum(int(word) << 32 * i for i, word in enumerate(words)) for words in np.asarray(final.occupied)]
    assert np.asarray(game.ownership(final)).tolist() == [
        next((seat for seat in range(2) if boards[seat] >> cell & 1), -1) for cell in range(size * size)
    ]
    actions = jnp.asarray(game.legal_list(state, 8))
    share = jnp.asarray([0.5, 0.5])
    position = Positions(
        state,
        actions,
        jnp.eye(8)[0],
        share,
        jnp.float32(0),
        jnp.int32(0),
        *[share] * 3,
        final=final,
    )

    def vector(observation: Any) -> networks.Outputs:
        return networks.Outputs(jnp.zeros(game.num_logits), jnp.zeros(2), jnp.zeros(2), jnp.asarray([1.0, -2.0]))

    def board(observation: Any) -> networks.Outputs:
        return vector(observation)._replace(features=jnp.moveaxis(observation, 0, -1))

    def learned(model: Any, position: Any, config: LossConfig, seed: int = 0) -> tuple[Any, Any, Any]:
        head = ownership_head(game, model)
        weight = jax.random.normal(jax.random.key(3), head.linear.weight.shape)
        head = eqx.tree_at(lambda head: head.linear.weight, head, weight)
        compute = jax.jit(lambda position, head, key: loss.position_loss(config, game, model, position, key, head))
        total, parts = compute(position, head, jax.random.key(seed))
        return total, parts, weight

    total, parts, weight = learned(vector, position, config)
    logits = (np.asarray([1.0, -2.0]) @ np.asarray(weight)).reshape(size * size, 3)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    # Seat 1 is to move, so that it comes first.
    owner = [1 if boards[0] >> cell & 1 else 0 if boards[1] >> cell & 1 else 2 for cell in range(size * size)]
    expected = -np.log(probabilities[np.arange(size * size), owner]).mean()
    np.testing.assert_allclose(parts.ownership, expected, rtol=1e-5)
    without = jax.jit(lambda: loss.position_loss(config, game, vector, position, jax.random.key(0))[0])()
    np.testing.assert_allclose(total, without + 0.5 * parts.ownership, rtol=1e-5)
    assert float(learned(vector, replace(position, final=state), config)[1].ownership) == 0

    assert game.num_symmetries > 1
    plain = learned(board, position, config)[1].ownership
    for seed in range(2):
        turned = learned(board, position, replace(config, augment=True), seed)[1].ownership
        np.testing.assert_allclose(turned, plain, rtol=1e-5)
    with pytest.raises(ValueError, match="features"):
        ownership_head(game, lambda observation: vector(observation)._replace(features=None))


def test_loss_is_invariant_under_symmetries() -> None:
    """The loss of an augmented position is that of the transformed position with renamed candidates."""
    game = tilewe_jax.make("santorini", size=3)
    config = LossConfig()
    weights = jax.random.normal(jax.random.key(0), (game.num_logits, *observation_shape(game)))

    def model(observation: Any) -> networks.Outputs:
        return networks.Outputs(jnp.einsum("achw,chw->a", weights, observation), jnp.zeros(2), jnp.zeros(2))

    state = rows(list(positions(game, 2))[5][0], 0)
    actions = game.sample_actions(state, jax.random.key(1), 16)
    valid = (actions >= 0).astype(jnp.float32)
    policy = valid / valid.sum()
    position = Positions(
        state,
        actions,
        policy,
        jnp.full(2, 0.5),
        jnp.float32(0),
        jnp.int32(0),
        *[jnp.full(2, 0.5)] * 3,
    )
    compute = jax.jit(lambda config, position, key: loss.position_loss(config, game, model, position, key)[0], static_argnums=0)
    for seed in range(4):
        key = jax.random.key(seed)
        index = jax.random.randint(key, (), 0, game.num_symmetries)
        transformed = game.transform(state, index)
        renamed = jnp.where(actions >= 0, jnp.asarray(game.action_symmetries)[index][jnp.maximum(actions, 0)], -1)
        turned = replace(position, state=transformed, candidates=renamed)
        plain = compute(replace(config, augment=False), turned, key)
        augmented = compute(config, position, key)
        np.testing.assert_allclose(plain, augmented, rtol=1e-5)
        assert np.asarray(game.legal_action_mask(transformed))[np.asarray(renamed)[np.asarray(renamed) >= 0]].all()
