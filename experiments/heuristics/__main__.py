"""Learn the weights of linear heuristics by games of a game against itself: a policy gradient, without search and network.

    python -m experiments.heuristics --game duo_official --out runs/heuristics

The policy is the softmax of the logits of some random legal actions, and logits are linear in features of an action. The
gradient of the expected outcome of a game is the covariance of its outcome with its score, the sum over the actions played of
their features less the mean of the features under the policy. The natural gradient (Kakade 2001) is the vector of coefficients
of the linear regression of outcomes on scores. A step of learning is one regression over thousands of new games.

In half of the games all seats learn. In the others one seat does, and the others play with earlier weights, half of the time
with noise added, so that there are always opponents who play in another way (fictitious self-play, Heinrich et al. 2015).
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax import make
from tilewe_jax.arguments import from_arguments
from tilewe_jax.search.evaluators import terminal_value

Weights = NDArray[np.float32]
"""``float32[features]``."""


@dataclass(frozen=True)
class Settings:
    """Learn the weights of the heuristics of a game by playing it against itself.

    The state of learning is kept in a folder after each step, and the same command continues it. At the end the table of
    weights is printed. Results are the same for the same settings and the same kind of processor.
    """

    out: Path
    """Folder of the state of learning."""
    game: str = "duo_official"
    """Id of the game."""
    players: int = 0
    """Number of players, in games that let you choose it; 0 for the default of the game."""
    steps: int = 70
    """Steps of learning, in all."""
    games: int = 6144
    """Number of games a step, a multiple of the batch."""
    batch: int = 512
    """Number of games that are played in parallel, an even number."""
    from_zero: bool = False
    """Start with weights of zero instead of the weights of the game."""
    num_samples: int = 32
    """Number of random legal actions from which the policy chooses."""
    random_plies: int = 4
    """Games start with at most this many plies of a policy that is five times as hot; nothing is learned from these."""
    learning_rate: float = 8.0
    """Step size along the natural gradient."""
    max_divergence: float = 1.5
    """Maximum Kullback-Leibler divergence of the policy of a whole game in a step; longer steps are shortened."""
    score_weight: float = 0.5
    """Weight of ``heuristic_value`` in the outcome of a game, against win or loss."""
    opponent_noise: float = 0.5
    """Standard deviation of the noise in a weight of an opponent, as a fraction of the initial weight, or of 0.3."""
    pool_interval: int = 8
    """Steps after which the weights join those of the opponents."""
    spread: float = 2.7
    """Standard deviation of the logits of random legal actions to which the printed weights are scaled. A search takes the
    softmax of logits as priors, and learning makes the policy ever more greedy."""
    seed: int = 0
    """Seed of the games."""


@dataclass
class Learner:
    """The state of learning."""

    initial: Weights
    weights: Weights
    pool: list[Weights]
    """Weights of opponents."""
    step: int = 0
    spread: float = 0.0
    """Standard deviation of the logits of random legal actions, in the last games."""

    def save(self, path: Path) -> None:
        """Write the state to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {"initial": self.initial, "weights": self.weights, "pool": self.pool}
        lists = {name: np.asarray(value).tolist() for name, value in arrays.items()}
        path.write_text(json.dumps({"step": self.step, "spread": self.spread, **lists}))


def load(path: Path, initial: Weights) -> Learner:
    """Return the state in a file, or the initial state."""
    if not path.exists():
        return Learner(initial, initial, [initial])
    saved = json.loads(path.read_text())
    first, weights, *pool = (np.array(row, np.float32) for row in (saved["initial"], saved["weights"], *saved["pool"]))
    if weights.shape != initial.shape:
        raise ValueError(f"{path} has weights of other features than the game")
    return Learner(first, weights, pool, saved["step"], saved["spread"])


def learn(game: Any, settings: Settings, follow: Callable[[str], None] = print) -> Learner:
    """Learn, from the state in the folder on if there is one. Raises ``ValueError`` for games without linear heuristics."""
    if not hasattr(game, "heuristic_features"):
        raise ValueError(f"the heuristics of {game.id} are not linear in features")
    initial = np.array(list(game.heuristic_weights.values()), np.float32).T.ravel()
    learner = load(settings.out / "heuristics.json", initial * (0 if settings.from_zero else 1))
    play, start = jax.jit(jax.vmap(partial(play_game, game, settings))), time.monotonic()
    while learner.step < settings.steps:
        rng = np.random.default_rng((settings.seed, learner.step))
        games = [play_batch(learner, settings, game.num_players, play, rng) for _ in range(settings.games // settings.batch)]
        scores, outcomes = (np.concatenate(arrays) for arrays in list(zip(*games, strict=True))[:2])
        update, divergence = natural_gradient(scores, outcomes, settings)
        learner.weights = (learner.weights + update).astype(np.float32)
        learner.spread = float(np.sqrt(np.mean([variance for *_, variance in games])))
        learner.step += 1
        if learner.step % settings.pool_interval == 0:
            learner.pool.append(learner.weights)
        learner.save(settings.out / "heuristics.json")
        seconds = time.monotonic() - start
        follow(f"step {learner.step}  divergence {divergence:.3f}  spread {learner.spread:.3f}  {seconds:.0f} s")
    return learner


def natural_gradient(
    scores: NDArray[np.float64], outcomes: NDArray[np.float64], settings: Settings
) -> tuple[NDArray[np.float64], float]:
    """Return the step of the weights, and the divergence of the whole step before it was shortened.

    Args:
        scores: gradients of the logarithm of the probability of all actions of a seat, ``[rows, features]``.
        outcomes: outcomes for the seats, less their means, ``[rows]``.
        settings: the settings of the step.
    """
    fisher = scores.T @ scores / len(outcomes)
    # Features that never differ among legal actions have no variance; their weights do not change.
    ridge = 1e-3 * np.trace(fisher) / len(fisher) * np.eye(len(fisher))
    step = settings.learning_rate * np.linalg.solve(fisher + ridge, scores.T @ outcomes / len(outcomes))
    divergence = float(step @ fisher @ step) / 2
    return step * min(1.0, np.sqrt(settings.max_divergence / max(divergence, 1e-12))), divergence


def play_game(
    game: Any, settings: Settings, weights: Float32[Array, "players features"], key: PRNGKeyArray
) -> tuple[Float32[Array, "players features"], Float32[Array, "players"], Float32[Array, ""]]:
    """Play a game with weights for each seat. Returns the scores and outcomes of the seats, and the mean variance of logits."""
    key_plies, key_state, key = jax.random.split(key, 3)
    random_plies = jax.random.randint(key_plies, (), 0, settings.random_plies + 1, jnp.int32)

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

    none = jnp.zeros_like(weights), jnp.float32(0.0), jnp.float32(0.0)
    start = game.init(key_state), none, key, jnp.int32(0)
    state, (scores, variance, positions), _, _ = jax.lax.while_loop(lambda carry: ~game.is_terminal(carry[0]), move, start)
    return scores, terminal_value(game, state, settings.score_weight), variance / jnp.maximum(positions, 1.0)


def play_batch(
    learner: Learner, settings: Settings, players: int, play: Callable[..., Any], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Play ``batch`` games: in half of them all seats learn, in the others one seat against weights of the pool.

    Returns the scores and outcomes of the seats that learn (see ``natural_gradient``) and the mean variance of the logits.
    """
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
    return scores[learns].astype(np.float64), outcomes[learns].astype(np.float64), float(variances[half:].mean())


def table(game: Any, settings: Settings, learner: Learner) -> str:
    """Return the weights, scaled to ``spread``, as a dictionary in the source of a program."""
    rows = (settings.spread / max(learner.spread, 1e-9) * learner.weights).reshape(-1, len(game.heuristic_weights)).T
    texts = (tuple(round(float(number), 2) for number in row) for row in rows)
    lines = [f'    "{name}": {text},' for name, text in zip(game.heuristic_weights, texts, strict=True)]
    return "\n".join(["{", *lines, "}"])


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        settings = from_arguments(Settings, arguments, "python -m experiments.heuristics")
        game = make(settings.game, **({"players": settings.players} if settings.players else {}))
        print(table(game, settings, learn(game, settings, partial(print, flush=True))))
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
