"""Train a network on the games of a search, and measure its errors and its CPU time.

    python -m experiments.imitation.teacher --game duo_official --out teacher
    python -m experiments.imitation.imitation --games teacher --architecture linear_policy_mlp --out network.npz

The positions come from ``experiments.imitation.teacher``. On held-out games the program prints the errors of policy and values
with respect to the search, for quartiles of the number of legal actions, and the CPU time of an evaluation.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, PRNGKeyArray

from experiments.imitation import teacher
from tilewe_jax import networks
from tilewe_jax.arguments import from_arguments
from tilewe_jax.game import Game
from tilewe_jax.networks import Model, weights
from tilewe_jax.registry import game_options, make_game
from tilewe_jax.search import network_evaluator
from tilewe_jax.settings import assignments, setting, validate
from tilewe_jax.training import loss
from tilewe_jax.training.config import LossConfig, OptimizerConfig
from tilewe_jax.training.learner import Learner, start, update
from tilewe_jax.training.loss import Losses, entropy
from tilewe_jax.training.replay import Positions

T = TypeVar("T")

BATCH = 64
"""Batch size of the time measurements."""
ACTIONS = 128
"""Number of actions in the time measurements, as in a search without a network."""


@dataclass(frozen=True)
class Settings:
    """Train a network on the positions of a search, and measure it on held-out games.

    Raises ``ValueError`` for numbers out of range.
    """

    games: Path
    """Folder of games from ``experiments.imitation.teacher``."""
    game: str = "duo_official"
    """Id of the game, or ``module:factory``."""
    set: tuple[str, ...] = ()
    """Options of the game that differ from its defaults, such as placement=random."""
    architecture: str = "default"
    """Architecture of the network."""
    size: str = "nano"
    """Size of the network."""
    out: Path | None = None
    """File for the weights."""
    files: int = setting(0, 0)
    """Number of files to learn from; 0 for all files that are not held out."""
    held_out: int = setting(1, 1)
    """Number of first files that are held out for measurement."""
    epochs: float = setting(4.0, 0)
    """Number of times that each position is learned."""
    batch_size: int = setting(512, 1)
    """Number of positions per step."""
    learning_rate: float = setting(1.5e-3, 0)
    """Maximum learning rate of AdamW, reached after 200 steps of linear warm-up and followed by a cosine decay."""
    weight_decay: float = setting(0.02, 0)
    """Weight decay of AdamW."""
    root_value_weight: float = setting(0.7, 0, 1)
    """Weight of the value of the search in the targets; the final outcome and score have the rest."""
    value_weight: float = setting(4.0, 0)
    """Weight of the value losses; the policy loss has weight 1."""
    score_weight: float = setting(0.3, 0, 1)
    """Weight of the score in the values of the search."""
    seed: int = setting(0, 0)
    """Seed of the weights and of the order of positions."""

    def __post_init__(self) -> None:
        validate(self)


class Row(NamedTuple):
    """Means over held-out positions."""

    positions: int
    policy: float
    """Cross-entropy of the network's policy with the visits of the search, over the candidates, in nats."""
    excess: float
    """Cross-entropy minus the entropy of the visits, in nats."""
    value: float
    """Mean squared error of the mover's value with respect to the search."""
    brier: float
    """Mean squared error of the mover's value with respect to the final outcome, mixed with the final score."""
    brier_of_search: float
    """Mean squared error of the value of the search with respect to the final outcome, mixed with the final score."""


def read(game: Game[Any], paths: list[Path]) -> Positions[Any]:
    """Read the positions in files of games, ``[N, ...]``, as NumPy arrays."""
    files = [teacher.load(game, path) for path in paths]
    positions: Positions[Any] = jax.tree.map(lambda *leaves: np.concatenate(leaves), *files)
    return positions


def _rows(tree: T, index: Any) -> T:
    """Index all arrays of a tree by rows."""
    rows: T = jax.tree.map(lambda leaf: leaf[index], tree)
    return rows


def learn(game: Game[Any], settings: Settings, positions: Positions[Any]) -> tuple[Model, float]:
    """Train a network on positions, and return it with the mean policy loss of the last tenth of the steps."""
    count = len(positions.surprise)
    steps = max(1, round(settings.epochs * count / settings.batch_size))
    warmup = max(1, min(200, steps - 1))
    optimizer = OptimizerConfig(
        learning_rate=settings.learning_rate,
        warmup_steps=warmup,
        decay_steps=max(1, steps - warmup),
        weight_decay=settings.weight_decay,
    )
    targets = LossConfig(
        outcome_loss_weight=settings.value_weight,
        score_loss_weight=settings.value_weight / 2 * (1 - settings.root_value_weight),
        root_value_weight=settings.root_value_weight,
    )

    @jax.jit
    def step(learner: Learner, batch: Positions[Any], key: PRNGKeyArray) -> tuple[Learner, Losses]:
        grads, losses = loss.gradients(targets, game, learner, batch, key)
        return update(optimizer, learner, grads), losses

    learner = start(optimizer, networks.make(game, settings.architecture, settings.size, jax.random.key(settings.seed)))
    rng, key = np.random.default_rng(settings.seed), jax.random.key(settings.seed)
    policy = []
    for number in range(steps):
        batch = _rows(positions, rng.integers(count, size=settings.batch_size))
        learner, losses = step(learner, batch, jax.random.fold_in(key, number))
        if number >= 0.9 * steps:
            policy.append(losses.policy)
    return learner.average, float(np.mean(jax.device_get(policy)))


def measure(game: Game[Any], settings: Settings, model: Model, positions: Positions[Any]) -> list[Row]:
    """Measure a network on searched positions: quartiles by descending number of legal actions, and all positions."""
    positions = _rows(positions, positions.surprise >= 0)
    evaluate = network_evaluator(game, weights.TrainedNetwork(model, settings.score_weight))

    def numbers(position: Positions[Any]) -> Float32[Array, "numbers"]:
        logits, value = evaluate(None, position.state, jax.random.key(0))
        valid = position.candidates >= 0
        log_probs = jax.nn.log_softmax(jnp.where(valid, logits(position.candidates), -jnp.inf))
        policy = -jnp.sum(jnp.where(valid, position.policy * log_probs, 0.0))
        final = (1 - settings.score_weight) * position.returns + settings.score_weight * position.score_value
        differences = jnp.stack([value - position.root_value, value - final, position.root_value - final])
        player = game.current_player(position.state)
        return jnp.concatenate([jnp.stack([policy, policy - entropy(position.policy)]), jnp.square(differences)[:, player]])

    compiled, count = jax.jit(jax.vmap(numbers)), len(positions.surprise)
    batches = [np.minimum(np.arange(start, start + 512), count - 1) for start in range(0, count, 512)]
    results = np.concatenate([np.asarray(compiled(_rows(positions, batch))) for batch in batches])[:count]
    legal = np.asarray(jax.jit(jax.vmap(game.num_legal))(positions.state))
    quarter = np.digitize(-legal, np.quantile(-legal, [0.25, 0.5, 0.75]))
    parts = [*(quarter == number for number in range(4)), np.ones(count, np.bool_)]
    return [Row(int(part.sum()), *results[part].mean(axis=0).tolist()) for part in parts if part.any()]


def microseconds(game: Game[Any], model: Model, positions: Positions[Any]) -> tuple[float, float]:
    """Return the CPU time per position of the value alone, and of the value with the logits of ``ACTIONS`` actions."""
    evaluate = network_evaluator(game, weights.TrainedNetwork(model, 0.0))
    states = _rows(positions.state, np.linspace(0, len(positions.surprise) - 1, BATCH).astype(int))
    sample = jax.jit(jax.vmap(lambda state, key: game.sample_actions(state, key, ACTIONS)))
    actions = sample(states, jax.random.split(jax.random.key(0), BATCH))

    def timed(function: Callable[[Any, Array], Any]) -> float:
        compiled, times = jax.jit(jax.vmap(function)), []
        for _ in range(21):
            start = time.process_time()
            jax.block_until_ready(compiled(states, actions))
            times.append(time.process_time() - start)
        return 1e6 * float(np.median(times)) / BATCH

    def with_logits(state: Any, actions: Array) -> tuple[Array, Array]:
        evaluation = evaluate(None, state, jax.random.key(0))
        return evaluation.logits(actions), evaluation.value

    return timed(lambda state, actions: evaluate(None, state, jax.random.key(0)).value), timed(with_logits)


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        settings = from_arguments(Settings, sys.argv[1:] if arguments is None else arguments)
        game = make_game(settings.game, game_options(settings.game, assignments(settings.set, "--set", "OPTION")))
        paths = sorted(settings.games.glob("*.npz"))
        if len(paths) <= settings.held_out:
            raise ValueError(f"{settings.games} has {len(paths)} files of games, too few to hold {settings.held_out} out")
        last = settings.held_out + settings.files if settings.files else len(paths)
        positions, clock = read(game, paths[settings.held_out : last]), time.process_time()
        model, last_loss = learn(game, settings, positions)
        seconds, learned = time.process_time() - clock, len(positions.surprise)
        name, size = settings.architecture, settings.size
        print(f"{name} {size}, {networks.num_parameters(model)} weights: policy loss {last_loss:.4f}", end="")
        print(f" after {learned} positions {settings.epochs:g} times, {seconds:.0f} CPU s", flush=True)
        held_out = read(game, paths[: settings.held_out])
        value, logits = microseconds(game, model, held_out)
        print(f"{value:.1f} CPU us for a value in batches of {BATCH}, {logits:.1f} with the logits of {ACTIONS} actions")
        print("  ".join(f"{name:>15}" for name in Row._fields))
        for row in measure(game, settings, model, held_out):
            print("  ".join(f"{number:15.4f}" if isinstance(number, float) else f"{number:15}" for number in row), flush=True)
        if settings.out:
            description = weights.Description(game.id, game.options, name, size, settings.score_weight)
            about = {"positions": learned, "config": {**asdict(settings), "games": str(settings.games), "out": None}}
            weights.save(settings.out, model, description, game.version, about)
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
