"""Proximal policy optimisation (PPO): networks that learn in games against themselves, without search.

    python -m experiments.ppo.ppo --game triominos --init triominos --opponent block_hoard --out runs/ppo

An iteration plays some moves in many games, each drawn from the policy of the network, and makes steps of the clipped objective
(Schulman et al. 2017) with generalized advantage estimation. The policy is also held near its own moving average, the magnet of
magnetic mirror descent (Sokota et al. 2023): policies that only improve against each other may run in circles, and this lets
them settle. Policy gradients regularised well compare with anything else in games of hidden information (Rudolph et al. 2026).
"""

import json
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from experiments.ppo.policy_gradient import (
    Critic,
    Learner,
    Metrics,
    Settings,
    add_gradients,
    critic_input,
    make_optimizer,
    play,
    update,
)
from tilewe_jax import networks
from tilewe_jax.agents import Agent, agent
from tilewe_jax.arena import Match
from tilewe_jax.arena.results import mean_and_ci95
from tilewe_jax.batching.reset import init_batch
from tilewe_jax.cli.parsing import ArgumentError, parse
from tilewe_jax.game import Game, Policy, state_shapes
from tilewe_jax.networks import Model, weights
from tilewe_jax.networks.weights import TrainedNetwork
from tilewe_jax.utils.files import replacing

FILE = "ppo.npz"
"""Name of the file that holds the state of learning, in its folder."""
NETWORK = "actor"
"""Name of the network in the texts of agents."""
AGENT = f"puct:num_simulations=1,num_determinizations=1,reuse_subtree=false,network={NETWORK}"
"""The agent of the arena that plays the most probable action of a network: the only simulation of its search goes there."""
_BATCH = 256
"""Number of games of an evaluation that are played at once, at most."""


class Program:
    """The compiled functions of a run.

    Args:
        settings: the settings.

    Raises ``ValueError`` where there is no such game, or one of a single player, or no such network, opponent or weights.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        """How to learn."""
        self.game = game = settings.make_game()
        """The game."""
        if game.num_players < 2:
            raise ValueError(f"values are shares of a win, and {game.id} has a single player here, who has all of it")
        self.architecture, self.size = settings.architecture, settings.size
        self._init: Model | None = None
        if settings.init:
            initial = weights.read_initial(game, settings.init, "init")
            self._init = initial.model
            self.architecture, self.size = initial.description.architecture, initial.description.size
        self.opponent = _opponent(game, settings)
        self.play = jax.jit(partial(play, game, settings))
        # Gradients are added up by the host: in a loop, XLA's CPU compiler makes those of convolutions thirty times as slow.
        self.add_gradients = jax.jit(partial(add_gradients, game, settings), donate_argnums=3)
        self.update = jax.jit(partial(update, settings))
        self.finish = jax.jit(self._finish)
        self.zeros = jax.jit(
            lambda models: (jax.tree.map(jnp.zeros_like, models), Metrics(*jnp.zeros(len(Metrics._fields), jnp.float32)))
        )

    def begin(self) -> Learner:
        """The state at the beginning."""
        game, settings = self.game, self.settings
        key_actor, key_critic, key_games = jax.random.split(jax.random.key(settings.seed), 3)
        actor = self._init
        if actor is None:
            actor = networks.make(game, self.architecture, self.size, key_actor)
        critic_shape = jax.eval_shape(partial(critic_input, game, settings.critic), state_shapes(game))
        critic = Critic(critic_shape.size, game.num_players, settings.critic_size, key_critic)
        states = make_optimizer(settings).init(actor), make_optimizer(settings).init(critic)
        games = init_batch(game, key_games, settings.num_games)
        return Learner(actor, critic, actor, states, games, jnp.int32(0))

    def _finish(self, learner: Learner, games: Any) -> Learner:
        """The state after an iteration."""
        decay = self.settings.magnet_decay
        magnet = jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, learner.magnet, learner.actor)
        return replace(learner, magnet=magnet, games=games, iteration=learner.iteration + 1)

    def iterate(self, learner: Learner) -> tuple[Learner, dict[str, float]]:
        """An iteration of playing and learning, and numbers about it; CPU seconds are of this process."""
        settings, number, clock = self.settings, int(learner.iteration), time.process_time()
        key = jax.random.fold_in(jax.random.key(settings.seed), number)
        games, positions, numbers = jax.block_until_ready(self.play(learner, key, self.opponent))
        seconds, clock = time.process_time() - clock, time.process_time()
        sums = self.zeros(())[1]
        rows = batches(np.flatnonzero(positions.learned), settings, number)
        for index in rows:
            models = learner.actor, learner.critic
            grads = self.zeros(models)[0]
            for some in index.reshape(-1, settings.chunk):
                grads, sums = self.add_gradients(models, positions, some, (grads, sums))
            learner = self.update(learner, grads)
        learner = jax.block_until_ready(self.finish(learner, games))
        means = {name: value / max(1, rows.size) for name, value in sums._asdict().items()}
        cpu = {"cpu_play": seconds, "cpu_learn": time.process_time() - clock, "learned": rows.size}
        return learner, {name: float(value) for name, value in {**numbers, **means, **cpu}.items()}

    def save_weights(self, learner: Learner) -> Path:
        """Write the weights of the actor as those of a network. Returns the file."""
        settings, number = self.settings, int(learner.iteration)
        description = weights.Description(self.game.id, self.game.options, self.architecture, self.size, settings.score_weight)
        path = settings.out / "weights" / f"{number:06d}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        weights.save(path, learner.actor, description, self.game.version, {"iteration": number, "config": _plain(settings)})
        return path


def _opponent(game: Game[Any], settings: Settings) -> Policy | None:
    """The policy of the opponent in games to learn from, a pytree of its weights; ``None`` where there is none."""
    if not settings.opponent_fraction:
        return None
    opponent = agent(settings.opponent, game)
    if opponent.player:
        raise ValueError(f"opponent must be an agent that decides on the device; {settings.opponent!r} plays on the host")
    return jax.tree_util.Partial(Agent.act, opponent)


def batches(index: NDArray[np.int64], settings: Settings, number: int) -> NDArray[np.int32]:
    """Batches of positions in random order, ``[steps, batch_size]``: each position ``epochs`` times, less what is left over."""
    rng, size = np.random.default_rng((settings.seed, number)), settings.batch_size
    orders = [rng.permutation(index) for _ in range(settings.epochs)]
    return np.concatenate(orders)[: settings.epochs * len(index) // size * size].reshape(-1, size).astype(np.int32)


class Evaluation:
    """Games of the policy, without search, against an agent in all other seats; compiled once.

    Args:
        game: the game.
        settings: the settings.

    Raises ``ValueError`` where there is no such agent.
    """

    def __init__(self, game: Game[Any], settings: Settings) -> None:
        self.game, self.settings = game, settings
        self._opponent = agent(settings.opponent, game, name="opponent").without_tree()
        self._match: Match | None = None

    def __call__(self, model: Model) -> dict[str, Any]:
        """The win rate, with its interval."""
        actor = agent(AGENT, self.game, name=NETWORK, network=TrainedNetwork(model, self.settings.score_weight))
        if self._match is None:
            players = [actor, *[self._opponent] * (self.game.num_players - 1)]
            games = self.settings.eval_games
            batch = -(-games // -(-games // _BATCH))  # batches of equal size
            self._match = Match(self.game, players, batch, self.settings.seed, opening=self.settings.eval_opening)
        self._match.replace(actor)
        results = self._match.play(self.settings.eval_games)
        return mean_and_ci95("win_rate", results.by_start(results.shares()), bounds=(0.0, 1.0))


def learn(settings: Settings, follow: Callable[[str], None] = lambda line: None) -> Learner:
    """Learn, from the state in the folder on where there is one.

    Args:
        settings: how to learn.
        follow: called with each line to print.

    Raises ``ValueError`` for settings that do not fit the game, and for a folder of other settings.
    """
    start, program = time.monotonic(), Program(settings)
    evaluation = Evaluation(program.game, settings) if settings.opponent else None
    learner = load(settings, program)

    def measure() -> None:
        path = program.save_weights(learner)
        if evaluation:
            figures = evaluation(learner.actor)
            low, high = figures["win_rate_ci95"]
            text = f"wins {figures['win_rate']:.3f} ({low:.3f} to {high:.3f}) of {settings.eval_games} games"
            follow(f"{path}  {text} against {settings.opponent}, without search")

    if not int(learner.iteration):
        measure()
    while (number := int(learner.iteration)) < settings.iterations:
        learner, metrics = program.iterate(learner)
        number, seconds = number + 1, time.monotonic() - start
        text = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        follow(f"iteration {number}  {text}  {seconds:.0f} s")
        is_over = number == settings.iterations or 0 < 60 * settings.minutes <= seconds
        save(settings, learner)
        if number % settings.eval_every == 0 or is_over:
            measure()
        if is_over:
            break
    return learner


def save(settings: Settings, learner: Learner) -> None:
    """Write the state of learning to the folder, replacing what is there."""
    settings.out.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {f"a{index}": np.asarray(leaf) for index, leaf in enumerate(jax.tree.leaves(learner))}
    arrays["settings"] = np.array(json.dumps(_comparable(settings)))
    with replacing(settings.out / FILE, "wb") as file:
        np.savez(file, **arrays)


def load(settings: Settings, program: Program) -> Learner:
    """The state of learning in the folder; where there is none, its beginning. Raises ``ValueError`` for other settings."""
    path, learner = settings.out / FILE, program.begin()
    if not path.exists():
        return learner
    leaves, tree = jax.tree.flatten(learner)
    try:
        with np.load(path, allow_pickle=False) as archive:
            saved = json.loads(str(archive["settings"]))
            arrays = [archive[f"a{index}"] for index in range(len(archive.files) - 1)]
        different = [name for name, value in _comparable(settings).items() if saved.get(name) != value]
    except (AttributeError, EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile):
        raise ValueError(f"{path} is not what this program has written, or is damaged") from None
    if different:
        raise ValueError(f"{path} was learned with other settings: {', '.join(different)}")
    if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(array.shape, array.dtype) for array in arrays]:
        raise ValueError(f"{path} is of another network or game than these settings name now")
    return cast(Learner, jax.tree.unflatten(tree, map(jnp.asarray, arrays)))


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings as JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(settings), default=str))
    return plain


def _comparable(settings: Settings) -> dict[str, Any]:
    """The settings that must not change when learning goes on."""
    may_change = ["out", "iterations", "minutes", "eval_every", "eval_games", "eval_opening"]
    may_change += [] if settings.opponent_fraction else ["opponent"]
    return {name: value for name, value in _plain(settings).items() if name not in may_change}


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        settings = parse(Settings, sys.argv[1:] if arguments is None else arguments, "python -m experiments.ppo.ppo")
        learn(settings, partial(print, flush=True))
    except (ArgumentError, OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
