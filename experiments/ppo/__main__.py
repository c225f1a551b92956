"""Proximal policy optimisation (PPO): networks that learn by games against themselves, without search.

    python -m experiments.ppo --game triominos --init triominos --opponent block_hoard --out runs/ppo

An iteration plays some moves in many games, each drawn from the policy of the network, and makes steps of the clipped objective
(Schulman et al. 2017) with generalized advantage estimation. The policy is also held near its moving average, the magnet of
magnetic mirror descent (Sokota et al. 2023): policies that only improve against each other may run in circles.

The *actor* gives the policy, from the observation of its player; it also learns the expected outcome and score, so that a
search can use it. The *critic* is needed in training only, and may see all observations. It corrects the actor's values.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Float32, Int32, PRNGKeyArray

from tilewe_jax import agents, arena, batching, networks
from tilewe_jax.arena.results import mean_interval
from tilewe_jax.arguments import from_arguments
from tilewe_jax.batching.reset import init_batch
from tilewe_jax.game import Game, state_shapes
from tilewe_jax.networks import SIZES, Model, evaluate, weights
from tilewe_jax.networks.layers import BFloat16Linear, RMSNorm, ValueHead
from tilewe_jax.networks.mlp import DenseResidualBlock
from tilewe_jax.registry import game_options, make_game
from tilewe_jax.search.exported import network_interface


@dataclass(frozen=True)
class Settings:
    """Learn by proximal policy optimisation in games of a game against itself, without search.

    The state of learning is kept in a folder, and the same command continues it. The folder holds the weights of the network,
    so that agents name it as their network. Results are the same for the same settings and the same kind of processor.
    """

    out: Path
    """Folder of the state of learning and of the weights."""
    game: str = "triominos"
    """Id of the game."""
    options: tuple[str, ...] = ()
    """Options of the game, like ``players=4``."""
    architecture: str = "default"
    """Architecture of the network; with ``init`` the architecture of these weights."""
    size: str = "nano"
    """Size of the network; with ``init`` the size of these weights."""
    init: str = ""
    """Initial weights: the name of shipped ones, a file, or the folder of a run; random ones by default."""
    critic: Literal["full", "observed"] = "full"
    """The critic sees the observations of all players, or of the player to move."""
    critic_size: str = "nano"
    """Size of the critic, a perceptron."""
    iterations: int = 100
    """Iterations of playing and learning, in all."""
    minutes: float = 0.0
    """Minutes after which the command ends, with the iteration that passes them; 0 for no limit."""
    num_games: int = 64
    """Number of games that are played in parallel."""
    unroll_length: int = 128
    """Number of moves in each game in an iteration."""
    num_candidates: int = 64
    """Maximum number of legal actions from which the policy chooses, drawn uniformly."""
    epochs: int = 1
    """Number of times that the positions of an iteration are learned from."""
    batch_size: int = 512
    """Number of positions in a step of the optimizer, a multiple of ``chunk``."""
    chunk: int = 32
    """Number of positions that go through the network together. Their values should fit the cache of a CPU."""
    learning_rate: float = 5e-4
    """Learning rate of Adam."""
    max_grad_norm: float = 1.0
    """Global norm to which larger gradients are clipped."""
    clip: float = 0.2
    """Relative change of an action's probability beyond which an iteration gains nothing from it."""
    gae_lambda: float = 0.95
    """Weight of longer returns against shorter ones; 1 uses the outcomes of games if they are known."""
    entropy_weight: float = 0.01
    """Weight of the entropy of the policy."""
    magnet_weight: float = 0.05
    """Weight of the Kullback-Leibler divergence of the policy from its moving average."""
    magnet_decay: float = 0.95
    """Decay per iteration of the moving average of the weights."""
    value_weight: float = 0.5
    """Weight of the losses of the actor's outcome and score, against its policy."""
    score_weight: float = 0.0
    """Weight of ``heuristic_value`` in the value of a game, against win or loss."""
    opponent: str = ""
    """Agent against which the policy plays without search in evaluations."""
    eval_every: int = 25
    """Number of iterations between two evaluations, and between two files of weights."""
    eval_games: int = 512
    """Number of games of an evaluation."""
    seed: int = 0
    """Seed of all random numbers."""


class Critic(eqx.Module):
    """A perceptron that corrects the values of the actor, from the observations of one player or of all."""

    stem: BFloat16Linear
    blocks: list[DenseResidualBlock]
    norm: RMSNorm
    value: ValueHead

    def __init__(self, inputs: int, players: int, size: str, key: PRNGKeyArray) -> None:
        key_stem, key_value, *block_keys = jax.random.split(key, 2 + SIZES[size].blocks)
        width = 4 * SIZES[size].channels
        self.stem = BFloat16Linear(inputs, width, key_stem, scale=2**0.5)
        self.blocks = [DenseResidualBlock(width, block_key) for block_key in block_keys]
        self.norm = RMSNorm(width)
        self.value = ValueHead(width, players, key_value)

    def __call__(self, observations: Float[Array, "..."]) -> Float32[Array, "2 P"]:
        """Return the correction of the logits of outcome and score, by seat from the mover's on."""
        x = self.stem(observations.ravel())
        for block in self.blocks:
            x = block(x)
        return jnp.stack(self.value(jax.nn.relu(self.norm(x))))


class Learner(NamedTuple):
    """The state of learning."""

    models: tuple[Model, Critic]
    """Actor and critic."""
    magnet: Model
    """The moving average of the actor."""
    optimizer: Any
    games: Any
    """States of the games in progress, ``[G, ...]``."""
    iteration: Int32[Array, ""]
    """Number of iterations made."""


class Positions(NamedTuple):
    """Positions to learn from; K candidates, P players. Seats are counted from the mover's on."""

    state: Any
    candidates: Int32[Array, "... K"]
    """The actions from which the policy chose, -1 in unused places."""
    choice: Int32[Array, "..."]
    """Index of the action played among the candidates."""
    log_probs: Float32[Array, "... K"]
    """Logarithms of the probabilities of the candidates when the action was drawn."""
    magnet: Float32[Array, "... K"]
    """The same for the magnet."""
    base: Float32[Array, "... 2 P"]
    """The actor's logits of outcome and score, which the critic corrects."""
    values: Float32[Array, "... 2 P"]
    """Outcome and score that the critic expected; after ``targets`` the returns."""
    advantage: Float32[Array, "..."]
    """Advantage of the move for the mover, in standard deviations."""


def critic_input(game: Game[Any], critic: str, state: Any) -> Float32[Array, "seats ..."]:
    """Return the input of the critic: the observations of all players from the mover on, or of the mover alone."""
    count = game.num_players if critic == "full" and game.has_hidden_information else 1
    seats = (game.current_player(state) + jnp.arange(count, dtype=jnp.int32)) % game.num_players
    return jax.vmap(game.observe, in_axes=(None, 0))(state, seats)


def policy_and_values(
    game: Game[Any], model: Model, state: Any, candidates: Int32[Array, "K"]
) -> tuple[Float32[Array, "K"], Float32[Array, "2 P"]]:
    """Return log-probabilities of candidates, and the logits of outcome and score by seat from the mover's on."""
    interface = network_interface(game, model)
    outputs = evaluate(model, interface.observe(state, game.current_player(state)))
    logits = interface.gather_logits(state, outputs.logits, candidates)
    log_probs = jax.nn.log_softmax(jnp.where(candidates >= 0, logits, -1e9))
    return log_probs, jnp.stack([outputs.outcome_logits, outputs.score_logits])


def play(game: Game[Any], settings: Settings, learner: Learner, key: PRNGKeyArray) -> tuple[Any, Positions, Array]:
    """Play ``unroll_length`` moves in every game, and restart games that end.

    Returns the games, the positions with their targets, ``[T * G, ...]``, and the number of games that ended.
    """
    count, (actor, critic) = settings.num_games, learner.models

    def look(arguments: tuple[Any, PRNGKeyArray]) -> Positions:
        state, (key_candidates, key_choice) = arguments[0], jax.random.split(arguments[1])
        candidates = game.sample_actions(state, key_candidates, min(settings.num_candidates, game.num_actions))
        log_probs, base = policy_and_values(game, actor, state, candidates)
        magnet, _ = policy_and_values(game, learner.magnet, state, candidates)
        values = jax.nn.softmax(base + critic(critic_input(game, settings.critic, state)))
        choice = jax.random.categorical(key_choice, log_probs).astype(jnp.int32)
        return Positions(state, candidates, choice, log_probs, magnet, base, values, jnp.float32(0))

    def look_at_all(games: Any, key: PRNGKeyArray) -> Positions:
        return cast(Positions, lax.map(look, (games, jax.random.split(key, count)), batch_size=min(settings.chunk, count)))

    def move(games: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        key_look, key_reset = jax.random.split(key)
        positions = look_at_all(games, key_look)
        action = jnp.take_along_axis(positions.candidates, positions.choice[:, None], axis=1)[:, 0]
        after = jax.vmap(game.apply)(games, action)
        ended = jax.vmap(game.is_terminal)(after)
        outcome = jax.vmap(lambda state: jnp.stack([game.returns(state), game.heuristic_value(state)]))(after)
        return batching.auto_reset(game, jax.random.split(key_reset, count), ended, after), (positions, ended, outcome)

    key_moves, key_last = jax.random.split(key)
    games, (positions, ended, outcome) = lax.scan(move, learner.games, jax.random.split(key_moves, settings.unroll_length))
    positions = targets(game, settings, positions, look_at_all(games, key_last), ended, outcome)
    return games, positions, jnp.sum(ended, dtype=jnp.int32)


def targets(
    game: Game[Any],
    settings: Settings,
    positions: Positions,
    last: Positions,
    ended: Bool[Array, "T G"],
    outcome: Float32[Array, "T G 2 P"],
) -> Positions:
    """Return positions with returns and advantages, ``[T * G, ...]``; ``last`` are the positions after them, ``[G, ...]``."""
    rotate = jax.vmap(lambda values, shift: jnp.roll(values, shift, axis=-1))
    mover = jax.vmap(game.current_player)
    absolute = jax.vmap(rotate)(positions.values, jax.vmap(mover)(positions.state))
    last_values = rotate(last.values, mover(last.state))
    returns = lambda_returns(absolute, last_values, ended, outcome, settings.gae_lambda)
    positions, returns = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (positions, returns))
    returns = rotate(returns, -mover(positions.state))
    ahead = (returns - positions.values)[:, :, 0]
    advantage = (1 - settings.score_weight) * ahead[:, 0] + settings.score_weight * ahead[:, 1]
    learned = has_choice(positions)
    mean, deviation = jnp.mean(advantage, where=learned), jnp.std(advantage, where=learned)
    return positions._replace(values=returns, advantage=(advantage - mean) / (deviation + 1e-6))


def has_choice(positions: Positions) -> Bool[Array, "N"]:
    """Return whether the policy had a choice in each position."""
    return jnp.sum(positions.candidates >= 0, axis=1, dtype=jnp.int32) > 1


def lambda_returns(
    values: Float32[Array, "T G 2 P"],
    last: Float32[Array, "G 2 P"],
    ended: Bool[Array, "T G"],
    outcome: Float32[Array, "T G 2 P"],
    gae_lambda: float,
) -> Float32[Array, "T G 2 P"]:
    """Return the undiscounted returns of all seats from each move on.

    The return after n moves is the value of the position then, or the outcome if the game has ended; its weight is
    ``gae_lambda**(n-1)``. Less the value of the position, the return of the mover is its generalized advantage estimate
    (Schulman et al. 2016).
    """

    def back(carry: tuple[Array, Array], step: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        value, ended, outcome = step
        result = jnp.where(ended[:, None, None], outcome, gae_lambda * carry[0] + (1 - gae_lambda) * carry[1])
        return (result, value), result

    return lax.scan(back, (last, last), (values, ended, outcome), reverse=True)[1]


def clipped_surrogate(ratio: Float32[Array, ""], advantage: Float32[Array, ""], clip: float) -> Float32[Array, ""]:
    """Return the clipped objective of a move."""
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def loss(
    game: Game[Any], settings: Settings, models: tuple[Model, Critic], position: Positions
) -> tuple[Array, dict[str, Array]]:
    """Return the loss of actor and critic in one position, and its parts. The gradient of neither depends on the other."""
    log_probs, logits = policy_and_values(game, models[0], position.state, position.candidates)
    ratio = jnp.exp(log_probs[position.choice] - position.log_probs[position.choice])
    surrogate = clipped_surrogate(ratio, position.advantage, settings.clip)
    entropy = -jnp.sum(jnp.exp(log_probs) * log_probs)
    magnet = jnp.sum(jnp.exp(log_probs) * (log_probs - position.magnet))
    corrected = position.base + models[1](critic_input(game, settings.critic, position.state))
    actor, critic = (jnp.sum(optax.kl_divergence(jax.nn.log_softmax(x), position.values)) for x in (logits, corrected))
    policy = -surrogate - settings.entropy_weight * entropy + settings.magnet_weight * magnet
    parts = {"surrogate": surrogate, "entropy": entropy, "magnet": magnet, "actor": actor, "critic": critic}
    return policy + settings.value_weight * actor + critic, parts


def evaluation(game: Game[Any], settings: Settings, path: Path) -> str:
    """Play a policy without search against the opponent, and return the result in words."""
    text, seats = f"puct:num_simulations=1,reuse_subtree=false,network={path}", game.num_players
    text += ",num_determinizations=1" if game.has_hidden_information else ""
    actor, opponent = (agents.agent(agent, game, name=agent) for agent in (text, settings.opponent))
    games = -(-settings.eval_games // seats) * seats
    results = arena.play_match(game, [actor, *[opponent] * (seats - 1)], games, games, settings.seed)
    mean, low, high = mean_interval(results.by_start(results.shares()), bounds=(0.0, 1.0))
    return f"wins {mean:.3f} ({low:.3f} to {high:.3f}) of {games} games against {settings.opponent}, without search"


def learn(settings: Settings, follow: Callable[[str], None] = print) -> Learner:
    """Learn, from the state in the folder on if there is one. Raises ``ValueError`` for wrong settings."""
    start, path = time.monotonic(), settings.out / "ppo.eqx"
    game: Game[Any] = make_game(settings.game, game_options(settings.game, dict(o.split("=", 1) for o in settings.options)))
    key = jax.random.key(settings.seed)
    key_actor, key_critic, key_games = jax.random.split(key, 3)
    initial = weights.read_initial(game, settings.init, "init") if settings.init else None
    kind = initial.description if initial else settings
    actor = initial.model if initial else networks.make(game, kind.architecture, kind.size, key_actor)
    inputs = jax.eval_shape(partial(critic_input, game, settings.critic), state_shapes(game)).size
    models = actor, Critic(inputs, game.num_players, settings.critic_size, key_critic)
    # Gradients of chunks add up in calls, as XLA's CPU compiler makes those of convolutions in loops thirty times as slow.
    adam = optax.chain(optax.clip_by_global_norm(settings.max_grad_norm), optax.adam(settings.learning_rate, eps=1e-5))
    optimizer = optax.MultiSteps(adam, settings.batch_size // settings.chunk)

    @jax.jit
    def step(models: Any, state: Any, positions: Positions, index: Array) -> Any:
        def mean_loss(models: Any) -> Any:
            some = jax.tree.map(lambda leaf: leaf[index], positions)
            return jax.tree.map(jnp.mean, jax.vmap(partial(loss, game, settings, models))(some))

        gradients, parts = jax.grad(mean_loss, has_aux=True)(models)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
            updates, state = optimizer.update(gradients, state, models)
        return optax.apply_updates(models, updates), state, parts

    rollout = jax.jit(partial(play, game, settings))
    learner = Learner(models, actor, optimizer.init(models), init_batch(game, key_games, settings.num_games), jnp.int32(0))
    learner = eqx.tree_deserialise_leaves(path, learner) if path.exists() else learner
    for number in range(int(learner.iteration), settings.iterations):
        games, positions, ended = rollout(learner, jax.random.fold_in(key, number))
        models, state, sums = learner.models, learner.optimizer, []
        rng, rows = np.random.default_rng((settings.seed, number)), np.flatnonzero(has_choice(positions)).astype(np.int32)
        size = len(rows) // settings.batch_size * settings.batch_size
        for index in np.concatenate([rng.permutation(rows)[:size] for _ in range(settings.epochs)]).reshape(-1, settings.chunk):
            models, state, parts = step(models, state, positions, index)
            sums.append(parts)
        magnet = optax.incremental_update(models[0], learner.magnet, 1 - settings.magnet_decay)
        learner = Learner(models, magnet, state, games, jnp.int32(number + 1))
        means = {name: float(np.mean([parts[name] for parts in sums])) for name in (sums[0] if sums else ())}
        seconds = time.monotonic() - start
        figures = {"games": int(ended), **means, "seconds": seconds}
        follow(f"iteration {number + 1}  " + "  ".join(f"{name} {value:.4g}" for name, value in figures.items()))
        is_over = number + 1 == settings.iterations or 0 < 60 * settings.minutes <= seconds
        (settings.out / "weights").mkdir(parents=True, exist_ok=True)
        eqx.tree_serialise_leaves(path, learner)
        if is_over or (number + 1) % settings.eval_every == 0:
            file = settings.out / "weights" / f"{number + 1:06d}.npz"
            about = weights.Description(game.id, game.options, kind.architecture, kind.size, settings.score_weight)
            weights.save(file, models[0], about, game.version, {"iteration": number + 1})
            follow(f"{file}  {evaluation(game, settings, file) if settings.opponent else ''}")
        if is_over:
            break
    return learner


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        learn(from_arguments(Settings, arguments, "python -m experiments.ppo"), partial(print, flush=True))
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
