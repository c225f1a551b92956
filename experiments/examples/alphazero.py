"""Gumbel AlphaZero in one file, from public functions of ``tilewe_jax``: self-play, replay, learning, evaluation.

    python -m experiments.examples.alphazero --game santorini --iterations 60

``docs/tutorials/train.md`` explains this file step by step. ``tilewe-jax train``, which trained the shipped weights, is the
same loop with checkpoints, symmetries, several devices and many settings.
"""

import argparse
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32, Int32, PRNGKeyArray

import tilewe_jax
from tilewe_jax.batching import auto_reset
from tilewe_jax.game import Game, state_shapes
from tilewe_jax.search import PolicyOutput, gumbel_policy, network_evaluator

NUM_GAMES = 64  # games played in parallel
UNROLL_LENGTH = 32  # moves per game and iteration
NUM_SIMULATIONS = 16
NUM_CANDIDATES = 32
REPLAY_ITERATIONS = 8  # iterations in the replay buffer
BATCH_SIZE = 256
UPDATES = 16  # optimizer steps per iteration
LEARNING_RATE = 2e-3


class Network(eqx.Module):
    """Perceptron that maps an observation to policy logits and to one value logit for each seat, the player to move first."""

    hidden: list[eqx.nn.Linear]
    policy: eqx.nn.Linear
    value: eqx.nn.Linear

    def __init__(self, game: Game[Any], key: PRNGKeyArray) -> None:
        observation = jax.eval_shape(lambda state: game.observe(state, jnp.int32(0)), state_shapes(game))
        keys = jax.random.split(key, 4)
        self.hidden = [eqx.nn.Linear(observation.size, 256, key=keys[0]), eqx.nn.Linear(256, 128, key=keys[1])]
        self.policy = eqx.nn.Linear(128, game.num_logits, key=keys[2])
        self.value = eqx.nn.Linear(128, game.num_players, key=keys[3])

    def __call__(self, observation: Float32[Array, "..."]) -> tuple[Float32[Array, "num_logits"], Float32[Array, "P"]]:
        features = observation.ravel()
        for layer in self.hidden:
            features = jax.nn.relu(layer(features))
        return self.policy(features), self.value(features)


class Sample(NamedTuple):
    """A searched position with its training targets."""

    state: Any
    candidates: Int32[Array, "K"]
    """Actions that the root kept; -1 in unused places."""
    policy: Float32[Array, "K"]
    """Improved policy of the search over the candidates."""
    outcome: Float32[Array, "P"]
    """Outcome of the game by seat; for a game that is still under way, the value of its last search."""


def predict(network: Network, observation: Array) -> tuple[Array, Array]:
    """Return action logits and the expected outcome of each seat, the player to move first."""
    logits, value_logits = network(observation)
    return logits, jax.nn.softmax(value_logits)


def search(game: Game[Any], network: Network, state: Any, key: PRNGKeyArray, gumbel_scale: float) -> PolicyOutput:
    """Search one position with the network. ``gumbel_scale=1`` adds exploration noise at the root."""
    return gumbel_policy(
        game,
        network_evaluator(game),
        state,
        key,
        params=jax.tree_util.Partial(predict, network),
        num_simulations=NUM_SIMULATIONS,
        num_candidates=NUM_CANDIDATES,
        gumbel_scale=gumbel_scale,
    ).policy_output


@partial(jax.jit, static_argnums=0)
def self_play(game: Game[Any], network: Network, states: Any, key: PRNGKeyArray) -> tuple[Any, Sample]:
    """Play ``UNROLL_LENGTH`` moves in every game.

    Returns:
      The states after these moves, ``[NUM_GAMES, ...]``, and the samples, ``[UNROLL_LENGTH, NUM_GAMES, ...]``.
    """

    def play(states: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        search_key, reset_key = jax.random.split(key)
        output = jax.vmap(partial(search, game, network, gumbel_scale=1.0))(states, jax.random.split(search_key, NUM_GAMES))
        after = jax.vmap(game.apply)(states, output.action)
        ended, returns = jax.vmap(game.is_terminal)(after), jax.vmap(game.returns)(after)
        next_states = auto_reset(game, jax.random.split(reset_key, NUM_GAMES), ended, after)
        return next_states, (states, output, ended, returns)

    states, (searched, output, ended, returns) = jax.lax.scan(play, states, jax.random.split(key, UNROLL_LENGTH))

    def carry_back(outcome: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        ended, returns = step
        outcome = jnp.where(ended[:, None], returns, outcome)
        return outcome, outcome

    # Backwards in time, so that each position gets the outcome of the game to which it belongs.
    _, outcome = jax.lax.scan(carry_back, output.value[-1], (ended, returns), reverse=True)
    return states, Sample(searched, output.candidates, output.policy, outcome)


def loss(game: Game[Any], network: Network, sample: Sample) -> Float32[Array, ""]:
    """Return the cross entropy of the improved policy over the candidates plus the cross entropy of the outcome."""
    player = game.current_player(sample.state)
    logits, value_logits = network(game.observe(sample.state, player))
    available = sample.candidates >= 0
    candidate_logits = jnp.where(available, game.gather_logits(sample.state, logits, sample.candidates), -1e9)
    policy_loss = -jnp.sum(jnp.where(available, sample.policy * jax.nn.log_softmax(candidate_logits), 0.0))
    value_loss = -jnp.sum(jnp.roll(sample.outcome, -player) * jax.nn.log_softmax(value_logits))
    return policy_loss + value_loss


@partial(jax.jit, static_argnums=(0, 1))
def learn(
    game: Game[Any],
    optimizer: optax.GradientTransformation,
    network: Network,
    opt_state: Any,
    replay: Sample,
    key: PRNGKeyArray,
) -> tuple[Network, Any, Float32[Array, ""]]:
    """Take ``UPDATES`` optimizer steps on random batches of the replay buffer, ``[rows, ...]``."""
    rows = jax.tree.leaves(replay)[0].shape[0]

    def update(carry: tuple[Network, Any], key: PRNGKeyArray) -> tuple[tuple[Network, Any], Array]:
        network, opt_state = carry
        picks = jax.random.randint(key, (BATCH_SIZE,), 0, rows, jnp.int32)
        batch = jax.tree.map(lambda leaf: leaf[picks], replay)

        def batch_loss(network: Network) -> Array:
            return jnp.mean(jax.vmap(partial(loss, game, network))(batch))

        mean_loss, gradients = jax.value_and_grad(batch_loss)(network)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
            updates, opt_state = optimizer.update(gradients, opt_state, network)
        return (optax.apply_updates(network, updates), opt_state), mean_loss

    (network, opt_state), losses = jax.lax.scan(update, (network, opt_state), jax.random.split(key, UPDATES))
    return network, opt_state, jnp.mean(losses)


@partial(jax.jit, static_argnums=(0, 3))
def evaluate(game: Game[Any], network: Network, key: PRNGKeyArray, num_games: int) -> Float32[Array, ""]:
    """Return the win rate of the search in seat 0 against uniformly random moves in the other seats."""

    def choose(state: Any, key: PRNGKeyArray) -> Array:
        search_key, random_key = jax.random.split(key)
        action = search(game, network, state, search_key, gumbel_scale=0.0).action
        return jnp.where(game.current_player(state) == 0, action, game.sample_action(state, random_key))

    return jnp.mean(tilewe_jax.rollout(game, key, num_games, choose).returns[:, 0])


def train(game: Game[Any], iterations: int, seed: int = 0, evaluate_every: int = 10) -> Network:
    """Train a network from random weights and print its loss and win rate."""
    key, network_key, init_key = jax.random.split(jax.random.key(seed), 3)
    network = Network(game, network_key)
    optimizer = optax.adamw(LEARNING_RATE)
    opt_state = optimizer.init(network)
    states = jax.vmap(game.init)(jax.random.split(init_key, NUM_GAMES))
    replay: list[Sample] = []
    for iteration in range(1, iterations + 1):
        key, play_key, learn_key, evaluate_key = jax.random.split(key, 4)
        states, samples = self_play(game, network, states, play_key)
        rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), samples)
        replay = [*(replay or [rows] * REPLAY_ITERATIONS)[1:], rows]  # of constant shape, so that nothing recompiles
        buffer = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *replay)
        network, opt_state, mean_loss = learn(game, optimizer, network, opt_state, buffer, learn_key)
        line = f"iteration {iteration}: loss {float(mean_loss):.3f}"
        if iteration % evaluate_every == 0:
            line += f", win rate against random moves {float(evaluate(game, network, evaluate_key, 64)):.2f}"
        print(line, flush=True)
    return network


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Gumbel AlphaZero in one file")
    parser.add_argument("--game", default="santorini")
    parser.add_argument("--iterations", type=int, default=60)
    arguments = parser.parse_args()
    train(tilewe_jax.make(arguments.game), arguments.iterations)
