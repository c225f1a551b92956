"""Gumbel AlphaZero in one file, on the public API of tilewe_jax: self-play, replay, learning, evaluation.

    python -m experiments.examples.alphazero --game santorini --iterations 60

Games run in parallel on the device; each iteration is two compiled calls, self-play and learning. ``tilewe_jax/training`` is
the full version of this loop (``tilewe-jax train``), which trained the shipped weights.
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
    """A perceptron from an observation to policy logits and value logits, one per seat, starting with the player to move."""

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
    """One searched position and its training targets."""

    state: Any
    candidates: Int32[Array, "K"]
    policy: Float32[Array, "K"]
    """The improved policy of the search over the candidates."""
    outcome: Float32[Array, "P"]
    """The outcome of the game by seat; for unfinished games, the value of the last search."""


def predict(network: Network, observation: Array) -> tuple[Array, Array]:
    """Return action logits, and the expected outcome by seat, starting with the player to move."""
    logits, value_logits = network(observation)
    return logits, jax.nn.softmax(value_logits)


def search(game: Game[Any], network: Network, state: Any, key: PRNGKeyArray, gumbel_scale: float) -> PolicyOutput:
    """Search one position with the network; ``gumbel_scale`` scales the root noise."""
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
    """Play ``UNROLL_LENGTH`` moves in every game. Returns the states and the samples, ``[T, NUM_GAMES, ...]``."""

    def play(states: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        search_key, reset_key = jax.random.split(key)
        output = jax.vmap(partial(search, game, network, gumbel_scale=1.0))(states, jax.random.split(search_key, NUM_GAMES))
        after = jax.vmap(game.apply)(states, output.action)
        ended, returns = jax.vmap(game.is_terminal)(after), jax.vmap(game.returns)(after)
        following = auto_reset(game, jax.random.split(reset_key, NUM_GAMES), ended, after)
        return following, (states, output, ended, returns)

    states, (searched, output, ended, returns) = jax.lax.scan(play, states, jax.random.split(key, UNROLL_LENGTH))

    def earlier(outcome: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        ended, returns = step
        outcome = jnp.where(ended[:, None], returns, outcome)
        return outcome, outcome

    # Backwards: the outcome of a position is the next end of a game.
    _, outcome = jax.lax.scan(earlier, output.value[-1], (ended, returns), reverse=True)
    return states, Sample(searched, output.candidates, output.policy, outcome)


def loss(game: Game[Any], network: Network, sample: Sample) -> Float32[Array, ""]:
    """Return the cross entropies of the improved policy over the candidates and of the outcome, summed."""
    player = game.current_player(sample.state)
    logits, value_logits = network(game.observe(sample.state, player))
    available = sample.candidates >= 0
    among = jnp.where(available, game.gather_logits(sample.state, logits, sample.candidates), -1e9)
    policy_loss = -jnp.sum(jnp.where(available, sample.policy * jax.nn.log_softmax(among), 0.0))
    return policy_loss - jnp.sum(jnp.roll(sample.outcome, -player) * jax.nn.log_softmax(value_logits))


@partial(jax.jit, static_argnums=(0, 1))
def learn(
    game: Game[Any], optimizer: optax.GradientTransformation, network: Network, memory: Any, replay: Sample, key: PRNGKeyArray
) -> tuple[Network, Any, Float32[Array, ""]]:
    """Take ``UPDATES`` optimizer steps on samples of the replay buffer, ``[rows, ...]``."""
    rows = jax.tree.leaves(replay)[0].shape[0]

    def update(carry: tuple[Network, Any], key: PRNGKeyArray) -> tuple[tuple[Network, Any], Array]:
        network, memory = carry
        batch = jax.tree.map(lambda leaf: leaf[jax.random.randint(key, (BATCH_SIZE,), 0, rows, jnp.int32)], replay)
        mean_loss, gradients = jax.value_and_grad(lambda network: jnp.mean(jax.vmap(partial(loss, game, network))(batch)))(
            network
        )
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
            updates, memory = optimizer.update(gradients, memory, network)
        return (optax.apply_updates(network, updates), memory), mean_loss

    (network, memory), losses = jax.lax.scan(update, (network, memory), jax.random.split(key, UPDATES))
    return network, memory, jnp.mean(losses)


@partial(jax.jit, static_argnums=(0, 3))
def evaluate(game: Game[Any], network: Network, key: PRNGKeyArray, num_games: int) -> Float32[Array, ""]:
    """Return the win rate of the search in seat 0 against uniformly random moves."""

    def choose(state: Any, key: PRNGKeyArray) -> Array:
        search_key, random_key = jax.random.split(key)
        action = search(game, network, state, search_key, gumbel_scale=0.0).action
        return jnp.where(game.current_player(state) == 0, action, game.sample_action(state, random_key))

    return jnp.mean(tilewe_jax.rollout(game, key, num_games, choose).returns[:, 0])


def train(game: Game[Any], iterations: int, seed: int = 0, evaluate_every: int = 10) -> Network:
    """Train a network from random weights, printing the loss and the win rate."""
    key, network_key, init_key = jax.random.split(jax.random.key(seed), 3)
    network = Network(game, network_key)
    optimizer = optax.adamw(LEARNING_RATE)
    memory = optimizer.init(network)
    states = jax.vmap(game.init)(jax.random.split(init_key, NUM_GAMES))
    replay: list[Sample] = []
    for iteration in range(1, iterations + 1):
        key, play_key, learn_key, evaluate_key = jax.random.split(key, 4)
        states, samples = self_play(game, network, states, play_key)
        rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), samples)
        replay = [
            *(replay or [rows] * REPLAY_ITERATIONS)[1:],
            rows,
        ]  # filled with copies at the start, so that its shape is constant
        buffer = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *replay)
        network, memory, mean_loss = learn(game, optimizer, network, memory, buffer, learn_key)
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
