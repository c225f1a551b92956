"""Games that a policy plays without search, and what it learns from them by proximal policy optimisation (PPO).

Positions are seen by two networks. The *actor* gives the policy, from what its player may know; its expected outcome and score
are learned too, so that a search can be put on top of it. The *critic*, which nobody asks in a game, may see what all players
see. It corrects the values of the actor: so it begins as good as these are.

All functions are pure. ``experiments.ppo.ppo`` compiles them, and is the program.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Float32, Int32, PRNGKeyArray

from tilewe_jax.batching.reset import auto_reset
from tilewe_jax.game import Game, Policy
from tilewe_jax.networks import SIZES, Model, evaluate
from tilewe_jax.networks.layers import BFloat16Linear, RMSNorm, ValueHead
from tilewe_jax.networks.mlp import DenseResidualBlock
from tilewe_jax.registry import game_options, make_game
from tilewe_jax.search.exported import network_interface
from tilewe_jax.settings import assignments, setting, validate
from tilewe_jax.training.agents import legal_action
from tilewe_jax.training.loss import divergence


@dataclass(frozen=True)
class Settings:
    """Learn by proximal policy optimisation (PPO) in games of a game against itself, without search.

    The state of learning is kept in a folder after each iteration, and the same command goes on from it; weights are kept in
    its folder ``weights``, with which the folder is a network wherever agents are named. Results are the same for the same
    settings and the same kind of processor.

    Raises ``ValueError`` for numbers out of range.
    """

    out: Path
    """Folder of the state of learning and of the weights."""
    game: str = "triominos"
    """Id of the game, or ``module:factory``."""
    options: tuple[str, ...] = ()
    """Options of the game that differ from its defaults, like ``players=4``."""
    architecture: str = "default"
    """Name of the network's architecture; that of ``init`` where weights are given."""
    size: str = "nano"
    """Name of its size; that of ``init`` where weights are given."""
    init: str = ""
    """Weights to begin with: the name of shipped ones, a file, or the folder of a run; random ones unless given."""
    critic: Literal["full", "observed"] = "full"
    """What the critic sees: what all players see, or the player to move alone."""
    critic_size: str = "nano"
    """Name of the size of the critic, a perceptron."""
    iterations: int = setting(100, 1)
    """Iterations of playing and learning, in all."""
    minutes: float = setting(0.0, 0)
    """Minutes of wall-clock time after which the command ends, with the iteration that passes them; 0 sets no limit."""
    num_games: int = setting(64, 1)
    """Number of games played at once."""
    unroll_length: int = setting(128, 1)
    """Number of moves played in each game in an iteration."""
    num_candidates: int = setting(64, 2)
    """Actions among which the policy chooses: all legal ones, or so many of them, drawn uniformly."""
    epochs: int = setting(1, 1)
    """Number of times that the positions of an iteration are learned from."""
    batch_size: int = setting(512, 1)
    """Number of positions in a step of the optimizer."""
    chunk: int = setting(32, 1)
    """Number of positions that go through the network together. What these need should fit the cache of a CPU."""
    learning_rate: float = setting(5e-4, 0)
    """Learning rate of Adam."""
    max_grad_norm: float = setting(1.0, 0)
    """Global norm to which larger gradients are clipped, of actor and critic separately."""
    clip: float = setting(0.2, 0)
    """Change of an action's probability, as a fraction of it, beyond which an iteration gains nothing from it."""
    gae_lambda: float = setting(0.95, 0, 1)
    """Weight of longer returns against shorter ones in advantages; 1 takes the outcomes of games wherever they are known."""
    entropy_weight: float = setting(0.01, 0)
    """Weight of the entropy of the policy, which is to be high."""
    magnet_weight: float = setting(0.05, 0)
    """Weight of the Kullback-Leibler divergence of the policy from its moving average."""
    magnet_decay: float = setting(0.95, 0, 1)
    """Decay per iteration of this moving average of the weights; 1 leaves it where it began."""
    value_weight: float = setting(0.5, 0)
    """Weight of the losses of the actor's outcome and score, against that of its policy."""
    score_weight: float = setting(0.0, 0, 1)
    """Weight of ``heuristic_value`` in what a game is worth, against win or loss."""
    opponent: str = ""
    """Agent of the arena against which the policy plays without search in evaluations; none unless given."""
    opponent_fraction: float = setting(0.0, 0, 1)
    """Fraction of the games to learn from in which this agent plays all seats but one. Nothing is learned from its moves."""
    eval_every: int = setting(25, 1)
    """Number of iterations between two evaluations, and between two files of weights."""
    eval_games: int = setting(512, 1)
    """Number of games of an evaluation."""
    eval_opening: int = setting(0, 0)
    """Number of random moves with which these begin."""
    seed: int = setting(0, 0)
    """Seed of all random numbers."""

    def __post_init__(self) -> None:
        validate(self)
        if self.critic_size not in SIZES:
            raise ValueError(f"critic_size must be one of {', '.join(SIZES)}, not {self.critic_size!r}")
        if self.batch_size % self.chunk:
            raise ValueError(f"batch_size must be a multiple of chunk, {self.chunk}, not {self.batch_size}")
        if self.opponent_fraction and not self.opponent:
            raise ValueError("opponent_fraction is that of the games against opponent; set that too")

    def make_game(self) -> Game[Any]:
        """The game. Raises ``ValueError`` where there is none with these options."""
        return make_game(self.game, game_options(self.game, assignments(self.options, "--options", "OPTION")))


class Critic(eqx.Module):
    """A perceptron that corrects the values of the actor by what it sees, the observations of one player or of all."""

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
        """What is added to the logits of outcome and score, by seat from the mover's on."""
        x = self.stem(observations.ravel())
        for block in self.blocks:
            x = block(x)
        return jnp.stack(self.value(jax.nn.relu(self.norm(x))))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Learner:
    """The state of learning."""

    actor: Model
    """The network."""
    critic: Critic
    """The critic."""
    magnet: Model
    """The moving average of the actor."""
    optimizer: tuple[Any, Any]
    """States of the optimizers of actor and critic."""
    games: Any
    """The states of the games under way, ``[G, ...]``."""
    iteration: Int32[Array, ""]
    """Number of iterations made."""


class Evaluated(NamedTuple):
    """What the networks say of a position; K candidates, P players."""

    candidates: Int32[Array, "K"]
    """The actions that the policy chooses from, -1 in places left over."""
    log_probs: Float32[Array, "K"]
    """Logarithms of their probabilities."""
    magnet: Float32[Array, "K"]
    """The same for the magnet."""
    base: Float32[Array, "2 P"]
    """The actor's logits of outcome and score, by seat from the mover's on."""
    values: Float32[Array, "2 P"]
    """Outcome and score that the critic expects, by absolute seat."""


class Positions(NamedTuple):
    """Positions to learn from, ``[N, ...]``; seats are counted from the mover's on."""

    state: Any
    """Their states."""
    candidates: Int32[Array, "N K"]
    """The actions that the policy chose from, -1 in places left over."""
    choice: Int32[Array, "N"]
    """Place of the action played among the candidates."""
    log_prob: Float32[Array, "N"]
    """Logarithm of its probability when it was played."""
    magnet: Float32[Array, "N K"]
    """Logarithms of the probabilities that the magnet gives the candidates."""
    base: Float32[Array, "N 2 P"]
    """Logits of outcome and score that the actor gave, which the critic corrects."""
    advantage: Float32[Array, "N"]
    """How much better than expected the move was for the mover, in standard deviations."""
    returns: Float32[Array, "N 2 P"]
    """Outcome and score to be expected."""
    learned: Bool[Array, "N"]
    """Whether there is something to be learned: the policy had a choice, and it was not the opponent's move."""


class Metrics(NamedTuple):
    """Means over positions that were learned from."""

    surrogate: Float32[Array, ""]
    """The clipped objective."""
    entropy: Float32[Array, ""]
    """Entropy of the policy, in nats."""
    magnet: Float32[Array, ""]
    """Divergence of the policy from the magnet, in nats."""
    clipped: Float32[Array, ""]
    """How often the objective is clipped."""
    outcome: Float32[Array, ""]
    """Divergence of the actor's outcome from its target, in nats."""
    critic: Float32[Array, ""]
    """The same for the critic."""


def critic_input(game: Game[Any], critic: str, state: Any) -> Float32[Array, "seats ..."]:
    """What the critic sees of a position: the observations of all players from the mover on, or of the mover alone."""
    count = game.num_players if critic == "full" and game.has_hidden_information else 1
    seats = (game.current_player(state) + jnp.arange(count, dtype=jnp.int32)) % game.num_players
    return jax.vmap(game.observe, in_axes=(None, 0))(state, seats)


def policy_and_values(
    game: Game[Any], model: Model, state: Any, candidates: Int32[Array, "K"]
) -> tuple[Float32[Array, "K"], Float32[Array, "2 P"]]:
    """Logarithms of the probabilities of candidates, and the logits of outcome and score by seat from the mover's on."""
    interface = network_interface(game, model)
    outputs = evaluate(model, interface.observe(state, game.current_player(state)))
    logits = interface.gather_logits(state, outputs.logits, candidates)
    log_probs = jax.nn.log_softmax(jnp.where(candidates >= 0, logits, -1e9))
    return log_probs, jnp.stack([outputs.outcome_logits, outputs.score_logits])


def evaluate_position(game: Game[Any], settings: Settings, learner: Learner, state: Any, key: PRNGKeyArray) -> Evaluated:
    """What the networks say of one position."""
    candidates = game.sample_actions(state, key, min(settings.num_candidates, game.num_actions))
    log_probs, base = policy_and_values(game, learner.actor, state, candidates)
    magnet = policy_and_values(game, learner.magnet, state, candidates)[0] if settings.magnet_weight else log_probs
    values = jax.nn.softmax(base + learner.critic(critic_input(game, settings.critic, state)))
    seats = (jnp.arange(game.num_players, dtype=jnp.int32) - game.current_player(state)) % game.num_players
    return Evaluated(candidates, log_probs, magnet, base, values[:, seats])


def play(
    game: Game[Any], settings: Settings, learner: Learner, key: PRNGKeyArray, opponent: Policy | None = None
) -> tuple[Any, Positions, dict[str, Array]]:
    """Play ``unroll_length`` moves in every game; where a game ends, the next one starts.

    Args:
        game: the game.
        settings: the settings.
        learner: the networks, and the games.
        key: consumed.
        opponent: plays all seats but one in the first ``opponent_fraction`` of the games.

    Returns the games, the positions, and numbers about the games that ended.
    """
    count, chunk = settings.num_games, min(settings.chunk, settings.num_games)
    num_against = round(settings.opponent_fraction * count) if opponent else 0
    own_seat = jnp.where(
        jnp.arange(count, dtype=jnp.int32) < num_against, jnp.arange(count, dtype=jnp.int32) % game.num_players, -1
    )

    def evaluate_all(state: Any, key: PRNGKeyArray) -> Evaluated:
        def evaluate_one(arguments: tuple[Any, PRNGKeyArray]) -> Evaluated:
            return evaluate_position(game, settings, learner, *arguments)

        # Some at a time: on a CPU, message passing among those that fit the cache takes less than half of the time.
        return cast(Evaluated, lax.map(evaluate_one, (state, jax.random.split(key, count)), batch_size=chunk))

    def move(state: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        key_evaluate, key_choice, key_opponent, key_reset = jax.random.split(key, 4)
        evaluated = evaluate_all(state, key_evaluate)
        choice = jax.random.categorical(key_choice, evaluated.log_probs, axis=1).astype(jnp.int32)
        action = jnp.take_along_axis(evaluated.candidates, choice[:, None], axis=1)[:, 0]
        is_opponent = (own_seat >= 0) & (jax.vmap(game.current_player)(state) != own_seat)
        if opponent and num_against:
            some = jax.tree.map(lambda leaf: leaf[:num_against], state)
            replies = jax.vmap(partial(legal_action, game, opponent))(some, jax.random.split(key_opponent, num_against))
            action = jnp.where(is_opponent, jnp.pad(replies, (0, count - num_against)), action)
        after = jax.vmap(game.apply)(state, action)
        ended = jax.vmap(game.is_terminal)(after)
        outcome = jax.vmap(lambda state: jnp.stack([game.returns(state), game.heuristic_value(state)]))(after)
        games = auto_reset(game, jax.random.split(key_reset, count), ended, after)
        return games, (state, evaluated, choice, is_opponent, ended, outcome)

    key_moves, key_last = jax.random.split(key)
    games, (state, evaluated, choice, is_opponent, ended, outcome) = lax.scan(
        move, learner.games, jax.random.split(key_moves, settings.unroll_length)
    )
    last = evaluate_all(games, key_last).values
    returns = lambda_returns(evaluated.values, last, ended, outcome, settings.gae_lambda)

    def position(state: Any, evaluated: Evaluated, choice: Array, is_opponent: Array, returns: Array) -> Positions:
        player = game.current_player(state)
        seats = (player + jnp.arange(game.num_players, dtype=jnp.int32)) % game.num_players
        ahead, score_ahead = (returns - evaluated.values)[:, player]
        advantage = (1 - settings.score_weight) * ahead + settings.score_weight * score_ahead
        candidates, log_probs, magnet, base, _ = evaluated
        learned = (jnp.sum(candidates >= 0, dtype=jnp.int32) > 1) & ~is_opponent
        return Positions(state, candidates, choice, log_probs[choice], magnet, base, advantage, returns[:, seats], learned)

    positions = jax.vmap(jax.vmap(position))(state, evaluated, choice, is_opponent, returns)
    positions = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), positions)
    advantage = standardized(positions.advantage, positions.learned)
    numbers = {"games": jnp.sum(ended, dtype=jnp.int32), "advantage": jnp.std(positions.advantage)}
    return games, positions._replace(advantage=advantage), numbers


def standardized(numbers: Float32[Array, "N"], counted: Bool[Array, "N"]) -> Float32[Array, "N"]:
    """Numbers with mean 0 and standard deviation 1 among those that count."""
    mean, deviation = jnp.mean(numbers, where=counted), jnp.std(numbers, where=counted)
    return (numbers - mean) / (deviation + 1e-6)


def lambda_returns(
    values: Float32[Array, "T G 2 P"],
    last: Float32[Array, "G 2 P"],
    ended: Bool[Array, "T G"],
    outcome: Float32[Array, "T G 2 P"],
    gae_lambda: float,
) -> Float32[Array, "T G 2 P"]:
    """The returns of all seats from each move on, undiscounted: averages over shorter and longer ones.

    The return after n moves is the value of the position then, or the outcome where the game has ended by then; that of n moves
    has the weight ``gae_lambda**(n-1)``. Less the value of the position, the return of the mover is its generalized advantage
    estimate (Schulman et al. 2016): each decision is judged by what its own seat gets.

    Args:
        values: values of the positions, by seat.
        last: values after the last move.
        ended: whether the game ended with the move.
        outcome: what it was worth, where it did.
        gae_lambda: from 0 to 1, which takes the outcome itself, and ``last`` where it is not known yet.
    """

    def back(carry: tuple[Array, Array], step: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        next_return, next_value = carry
        value, ended, outcome = step
        mixed = gae_lambda * next_return + (1 - gae_lambda) * next_value
        result = jnp.where(ended[:, None, None], outcome, mixed)
        return (result, value), result

    return lax.scan(back, (last, last), (values, ended, outcome), reverse=True)[1]


def clipped_surrogate(
    ratio: Float32[Array, ""], advantage: Float32[Array, ""], clip: float
) -> tuple[Float32[Array, ""], Bool[Array, ""]]:
    """The clipped objective of a move, and whether its gradient is 0."""
    free, bounded = ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage
    return jnp.minimum(free, bounded), bounded < free


def position_loss(
    game: Game[Any], settings: Settings, models: tuple[Model, Critic], position: Positions
) -> tuple[Float32[Array, ""], Metrics]:
    """The loss of actor and critic in one position, and its parts. The gradient of neither depends on the other."""
    actor, critic = models
    log_probs, logits = policy_and_values(game, actor, position.state, position.candidates)
    probs = jnp.exp(log_probs)
    ratio = jnp.exp(log_probs[position.choice] - position.log_prob)
    surrogate, clipped = clipped_surrogate(ratio, position.advantage, settings.clip)
    entropy = -jnp.sum(probs * log_probs)
    magnet = jnp.sum(probs * (log_probs - position.magnet))
    outcome, score = jax.vmap(divergence)(position.returns, jax.nn.log_softmax(logits))
    corrected = position.base + critic(critic_input(game, settings.critic, position.state))
    critic_outcome, critic_score = jax.vmap(divergence)(position.returns, jax.nn.log_softmax(corrected))
    policy = -surrogate - settings.entropy_weight * entropy + settings.magnet_weight * magnet
    total = policy + settings.value_weight * (outcome + score) + critic_outcome + critic_score
    return total, Metrics(surrogate, entropy, magnet, clipped.astype(jnp.float32), outcome, critic_outcome)


def add_gradients(
    game: Game[Any],
    settings: Settings,
    models: tuple[Model, Critic],
    positions: Positions,
    index: Int32[Array, "chunk"],
    sums: tuple[Any, Metrics],
) -> tuple[Any, Metrics]:
    """Sums of gradients and metrics, with those of some positions added."""
    some = jax.tree.map(lambda leaf: leaf[index], positions)

    def loss(models: tuple[Model, Critic]) -> tuple[Array, Metrics]:
        total, metrics = jax.vmap(partial(position_loss, game, settings, models))(some)
        return jnp.sum(total), jax.tree.map(jnp.sum, metrics)

    return cast(tuple[Any, Metrics], jax.tree.map(jnp.add, sums, jax.grad(loss, has_aux=True)(models)))


def update(settings: Settings, learner: Learner, grads: tuple[Any, Any]) -> Learner:
    """A step of the optimizer, with the sums of the gradients of a batch."""
    optimizer, results = make_optimizer(settings), []
    for model, gradient, state in zip((learner.actor, learner.critic), grads, learner.optimizer, strict=True):
        mean = jax.tree.map(lambda leaf: leaf / settings.batch_size, gradient)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
            updates, after = optimizer.update(mean, state, model)
        results.append((optax.apply_updates(model, updates), after))
    (actor, actor_state), (critic, critic_state) = results
    return replace(learner, actor=actor, critic=critic, optimizer=(actor_state, critic_state))


def make_optimizer(settings: Settings) -> optax.GradientTransformation:
    """Adam with gradient clipping."""
    return optax.chain(optax.clip_by_global_norm(settings.max_grad_norm), optax.adam(settings.learning_rate, eps=1e-5))
