"""Learn the weights of linear heuristics in games of a game against itself: a policy gradient, without search and network.

    python -m experiments.heuristics.heuristics --game duo_official --out runs/heuristics

The policy is the softmax of the logits of some random legal actions, and logits are linear in features of an action
(``LinearHeuristics``). So the gradient of the expected outcome of a game is the covariance of its outcome with its score, which
is the sum of the features of the actions played less their means under the policy; and the natural gradient (Kakade 2001) is
the vector of coefficients of the linear regression of outcomes on scores. One step of learning is such a regression, over
thousands of new games. No games are kept.

Learners that meet only themselves learn to beat nobody else. In half of the games all seats learn. In the others one seat does,
and the others are played with earlier weights, half of the time with noise added, such that there is always somebody who plays
in another way (fictitious self-play, Heinrich et al. 2015).
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax import make
from tilewe_jax.search.evaluators import terminal_value
from tilewe_jax.settings import from_arguments, setting, validate
from tilewe_jax.utils.files import read_json, replacing

FILE = "heuristics.json"
"""Name of the file that holds the state of learning, in its folder."""

Weights = NDArray[np.float32]
"""``float32[features]``."""
Play = Callable[[Array, PRNGKeyArray], tuple[Array, Array, Array]]


@runtime_checkable
class LinearHeuristics(Protocol):
    """What a ``Game`` has whose ``heuristic_logits`` are linear in features."""

    @property
    def num_players(self) -> int:
        """Number of players."""

    def heuristic_features(self, state: Any, actions: Int32[Array, "k"]) -> Float32[Array, "k features"]:
        """The features of legal actions."""

    @property
    def heuristic_weights(self) -> dict[str, tuple[float, ...]]:
        """The present weights by name. All first numbers come first in ``heuristic_features``, then all second ones."""


@dataclass(frozen=True)
class Settings:
    """Learn the weights of the heuristics of a game by playing it against itself.

    The state of learning is kept in a folder after each step; the same command goes on from it. At the end the table of weights
    is printed. Results are the same for the same settings and the same kind of processor.

    Raises ``ValueError`` for numbers out of range.
    """

    out: Path
    """Folder of the state of learning."""
    game: str = "duo_official"
    """Id of the game."""
    players: int = setting(0, 0)
    """Number of players, in games that let you choose it; 0 leaves it to the game."""
    steps: int = setting(70, 1)
    """Steps of learning, in all."""
    games: int = setting(6144, 2)
    """Number of games a step."""
    batch: int = setting(512, 2)
    """Number of games played at once."""
    from_zero: bool = False
    """Begin with weights of zero, and not with those of the game."""
    num_samples: int = setting(32, 2)
    """Number of random legal actions from which the policy chooses."""
    random_plies: int = setting(4, 0)
    """Games begin with up to so many plies by a policy that is five times as hot, and nothing is learned from these."""
    learning_rate: float = setting(8.0, 0)
    """Step size along the natural gradient."""
    max_divergence: float = setting(1.5, 0)
    """Steps are shortened such that the policy of a whole game changes by no more than this Kullback-Leibler divergence."""
    score_weight: float = setting(0.5, 0, 1)
    """Weight of ``heuristic_value`` in the outcome of a game, against win or loss."""
    opponent_noise: float = setting(0.5, 0)
    """Standard deviation of the noise in a weight of an opponent, as a fraction of what it was at the beginning, or of 0.3."""
    pool_interval: int = setting(8, 1)
    """Steps after which the weights join those that opponents play with."""
    spread: float = setting(2.7, 0)
    """Standard deviation of the logits of random legal actions to which the printed weights are scaled. A search takes the
    softmax of logits as priors, and learning makes the policy ever more greedy."""
    seed: int = setting(0, 0)
    """Seed of the games."""

    def __post_init__(self) -> None:
        validate(self)
        if self.games % self.batch or self.batch % 2:
            raise ValueError(f"games must be a multiple of batch, and batch even; not {self.games} and {self.batch}")


class Games(NamedTuple):
    """Games that were played, one row for each seat that learns."""

    scores: NDArray[np.float64]
    """``[rows, features]``: gradients of the logarithm of the probability of all actions of a seat."""
    outcomes: NDArray[np.float64]
    """``[rows]``: the outcome for the seat, less the mean of the seat."""
    variance: float
    """Mean variance of the logits of the random legal actions of a position."""


@dataclass
class Learner:
    """The state of learning."""

    settings: Settings
    initial: Weights
    weights: Weights
    pool: list[Weights] = field(default_factory=list)
    """Weights of opponents."""
    step: int = 0
    spread: float = 0.0
    """Standard deviation of the logits of random legal actions, in the last games."""


def learn(
    game: Any, settings: Settings, follow: Callable[[Learner, dict[str, float]], None] = lambda learner, metrics: None
) -> Learner:
    """Learn, from the state in the folder on where there is one.

    Args:
        game: the game, a ``Game`` with ``LinearHeuristics``.
        settings: how to learn.
        follow: called after each step with numbers about it.

    Raises ``ValueError`` for other games, and for a folder of other settings.
    """
    if not isinstance(game, LinearHeuristics):
        raise ValueError(f"the heuristics of {game.id} are not linear in features")
    learner = load(settings, _flatten(game.heuristic_weights))
    play = jax.jit(jax.vmap(partial(play_game, game, settings)))
    while learner.step < settings.steps:
        rng = np.random.default_rng((settings.seed, learner.step))
        games = [play_batch(learner, game.num_players, play, rng) for _ in range(settings.games // settings.batch)]
        scores, outcomes = (np.concatenate([getattr(batch, name) for batch in games]) for name in ("scores", "outcomes"))
        update, divergence = natural_gradient(scores, outcomes, settings)
        learner.weights = (learner.weights + update).astype(np.float32)
        learner.spread = float(np.sqrt(np.mean([batch.variance for batch in games])))
        learner.step += 1
        if learner.step % settings.pool_interval == 0:
            learner.pool.append(learner.weights)
        save(learner)
        follow(learner, {"divergence": divergence, "spread": learner.spread})
    return learner


def natural_gradient(
    scores: NDArray[np.float64], outcomes: NDArray[np.float64], settings: Settings
) -> tuple[NDArray[np.float64], float]:
    """The step of the weights, and the divergence that it was shortened for.

    Args:
        scores: ``[rows, features]``.
        outcomes: ``[rows]``.
        settings: the settings of the step.
    """
    fisher = scores.T @ scores / len(outcomes)
    # Features that never differ among legal actions have no variance; their weights stay as they are.
    ridge = 1e-3 * np.trace(fisher) / len(fisher) * np.eye(len(fisher))
    step = settings.learning_rate * np.linalg.solve(fisher + ridge, scores.T @ outcomes / len(outcomes))
    divergence = float(step @ fisher @ step) / 2
    return step * min(1.0, np.sqrt(settings.max_divergence / max(divergence, 1e-12))), divergence


def play_game(
    game: Any, settings: Settings, weights: Float32[Array, "players features"], key: PRNGKeyArray
) -> tuple[Float32[Array, "players features"], Float32[Array, "players"], Float32[Array, ""]]:
    """Play a game, each seat with weights of its own.

    Returns:
        The scores and the outcomes of the seats, and the mean variance of the logits of a position.
    """
    key_plies, key_state, key = jax.random.split(key, 3)
    random_plies = jax.random.randint(key_plies, (), 0, settings.random_plies + 1, jnp.int32)
    none = jnp.zeros_like(weights), jnp.float32(0.0), jnp.float32(0.0)

    def goes_on(carry: Any) -> Array:
        return cast(Array, ~game.is_terminal(carry[0]))

    def move(carry: Any) -> Any:
        state, (scores, variance, positions), key, ply = carry
        key, key_actions, key_choice = jax.random.split(key, 3)
        player, actions = game.current_player(state), game.sample_actions(state, key_actions, settings.num_samples)
        available, is_random = actions >= 0, ply < random_plies
        features = game.heuristic_features(state, actions)
        score = features @ weights[player]
        logits = jnp.where(available, jnp.where(is_random, 0.2, 1.0) * score, -jnp.inf)
        can_move = available[0]
        choice = jax.random.categorical(key_choice, jnp.where(can_move, logits, 0.0))
        probs = jax.nn.softmax(jnp.where(can_move, logits, 0.0))
        learns = can_move & ~is_random
        is_mover = jnp.arange(game.num_players, dtype=jnp.int32)[:, None] == player
        scores = scores + jnp.where(is_mover & learns, (features[choice] - probs @ features)[None], 0.0)
        variance = variance + jnp.where(learns, jnp.var(score, where=available), 0.0)
        positions = positions + learns.astype(jnp.float32)
        state = game.apply_deferred(state, jnp.where(can_move, actions[choice], -1))
        return state, (scores, variance, positions), key, ply + 1

    start = game.init(key_state), none, key, jnp.int32(0)
    state, (scores, variance, positions), _, _ = jax.lax.while_loop(goes_on, move, start)
    return scores, terminal_value(game, state, settings.score_weight), variance / jnp.maximum(positions, 1.0)


def play_batch(learner: Learner, players: int, play: Play, rng: np.random.Generator) -> Games:
    """Play ``batch`` games: in half of them all seats learn, in the others one against weights of the pool."""
    settings = learner.settings
    batch, half = settings.batch, settings.batch // 2
    weights = np.tile(learner.weights, (batch, players, 1))
    learns = np.ones((batch, players), bool)
    learns[:half] = rng.integers(players, size=half)[:, None] == np.arange(players)
    opponents = np.stack(learner.pool)[rng.integers(len(learner.pool), size=(half, players))]
    noise = settings.opponent_noise * np.maximum(np.abs(learner.initial), 0.3) * rng.normal(size=opponents.shape)
    noise[1::2] = 0
    weights[:half] = np.where(learns[:half, :, None], weights[:half], opponents + noise)
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), batch)
    scores, outcomes, variances = jax.device_get(play(jnp.asarray(weights, jnp.float32), keys))
    outcomes = outcomes - outcomes.mean(axis=0)
    return Games(scores[learns].astype(np.float64), outcomes[learns].astype(np.float64), float(variances[half:].mean()))


def table(game: LinearHeuristics, learner: Learner) -> str:
    """The weights, scaled to ``spread``, as a dictionary in the source of a program."""
    scale = learner.settings.spread / max(learner.spread, 1e-9)
    names = list(game.heuristic_weights)
    rows = (scale * learner.weights).reshape(-1, len(names)).T
    lines = [
        f'    "{name}": {tuple(round(float(number), 2) for number in row)},' for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join(["{", *lines, "}"])


def load(settings: Settings, present: Weights) -> Learner:
    """The state of learning in the folder; where there is none, its beginning. Raises ``ValueError`` for other settings."""
    path = settings.out / FILE
    if not path.exists():
        initial = present * (0 if settings.from_zero else 1)
        return Learner(settings, initial, initial, [initial])
    ours = _comparable(settings)
    try:
        saved = read_json(path)
        different = [name for name, value in ours.items() if saved["settings"].get(name) != value]
        initial, weights, *pool = (np.array(row, np.float32) for row in (saved["initial"], saved["weights"], *saved["pool"]))
        step, spread = int(saved["step"]), float(saved["spread"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is not what this program has written, or is damaged") from None
    if different:
        raise ValueError(f"{path} was learned with other settings: {', '.join(different)}")
    if any(row.shape != present.shape for row in (initial, weights, *pool)):
        raise ValueError(f"{path} has weights of other features than {settings.game} has now")
    return Learner(settings, initial, weights, pool, step, spread)


def save(learner: Learner) -> None:
    """Write the state of learning to the folder, replacing what is there."""
    learner.settings.out.mkdir(parents=True, exist_ok=True)
    state = {
        "settings": _comparable(learner.settings),
        "step": learner.step,
        "spread": learner.spread,
        "initial": learner.initial.tolist(),
        "weights": learner.weights.tolist(),
        "pool": [weights.tolist() for weights in learner.pool],
    }
    with replacing(learner.settings.out / FILE) as file:
        json.dump(state, file)


def _comparable(settings: Settings) -> dict[str, Any]:
    """The settings that must not change when learning goes on."""
    return {name: value for name, value in asdict(settings).items() if name not in ("out", "steps", "spread")}


def _flatten(weights: dict[str, tuple[float, ...]]) -> Weights:
    return np.array(list(weights.values()), np.float32).T.ravel()


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        settings = from_arguments(Settings, sys.argv[1:] if arguments is None else arguments)
        start = time.monotonic()

        def follow(learner: Learner, metrics: dict[str, float]) -> None:
            numbers = "  ".join(f"{name} {value:.3f}" for name, value in metrics.items())
            print(f"step {learner.step}  {numbers}  {time.monotonic() - start:.0f} s", flush=True)

        game = make(settings.game, **({"players": settings.players} if settings.players else {}))
        learner = learn(game, settings, follow)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    print(table(cast(LinearHeuristics, game), learner))


if __name__ == "__main__":
    main()
