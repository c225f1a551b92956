"""Evaluations during a run: matches of its agent against opponents, and tests of its values on games between others."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from tilewe_jax import records
from tilewe_jax.agents import Agent, agent
from tilewe_jax.arena import Match, Results, Sprt, values
from tilewe_jax.game import Action, Game
from tilewe_jax.networks import Model, weights
from tilewe_jax.networks.weights import TrainedNetwork
from tilewe_jax.replay import recorded
from tilewe_jax.training import agents
from tilewe_jax.training.config import TrainConfig

_NAME = "network"
_LAST = "last"
_GATE = "acting"
_KEPT = 2
"""Number of recorded games of each evaluation, per opponent."""
_POSITIONS = 20_000
"""Maximum number of positions on which values are tested."""
_BATCH = 1024
"""Number of positions that the network evaluates in one call."""


def check_evaluation(config: TrainConfig, game: Game[Any]) -> None:
    """Raise ``ValueError`` for unknown opponents and too long openings, before anything compiles."""
    evaluation = config.evaluation
    for name in evaluation.opponents:
        if name != _LAST:
            agent(name, game)
    if evaluation.eval_opening > game.max_steps:
        raise ValueError(
            f"evaluation.eval_opening must be at most {game.max_steps} (the longest game), got {evaluation.eval_opening}"
        )


def value_sample(config: TrainConfig, game: Game[Any]) -> values.Sample | None:
    """Read the positions of ``evaluation.value_games``; ``None`` if it is not set. Raises ``ValueError``."""
    path = config.evaluation.value_games
    if not path:
        return None
    try:
        return values.sample(game, recorded.finished_games(game, path), limit=_POSITIONS, seed=config.seed)
    except OSError as error:
        raise ValueError(f"evaluation.value_games: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"evaluation.value_games: {error}") from None


def last_weights(config: TrainConfig, game: Game[Any], folder: Path, iteration: int | None) -> Model | None:
    """Return the weights of the previous evaluation if "last" is an opponent. Raises ``ValueError``."""
    if iteration is None or _LAST not in config.evaluation.opponents:
        return None
    path = folder / "weights" / f"{iteration:06d}.npz"
    return weights.read(game, path, known=config.network.architecture).model


class Evaluation:
    """Plays the matches against the opponents of a run and tests its values, compiled once for all evaluations.

    Args:
        config: settings of the run.
        game: game of the run.
        folder: folder of the run, where games are saved.
        before: iteration of the last evaluation, for a resumed run.
        sample: positions on which values are tested, see ``value_sample``.

    Raises ``ValueError`` for unknown opponents.
    """

    def __init__(
        self,
        config: TrainConfig,
        game: Game[Any],
        folder: Path,
        before: int | None = None,
        sample: values.Sample | None = None,
    ) -> None:
        self.config, self.game, self.folder, self._sample = config, game, folder, sample
        opponents = config.evaluation.opponents
        self._opponents = {name: None if name == _LAST else agent(name, game, name=name) for name in opponents}
        self._matches: dict[str, Match] = {}
        self._last = last_weights(config, game, folder, before)

    def run(self, iteration: int, model: Model) -> dict[str, Any]:
        """Play against all opponents, and test the values.

        Returns ``opponents``, for each opponent the win rate, its standard error, and the seating and the results of all games;
        and with a sample ``values``, the rows of ``arena.values.table`` as JSON, with the row over all plies at the end.
        """
        figures: dict[str, Any] = {}
        for name, opponent in self._opponents.items():
            if opponent is None and self._last is None:
                continue
            against = self._agent(name, self._last) if opponent is None else opponent
            match = self._match(name, model, against)
            results = match.play(self.config.evaluation.eval_games, keep=True)
            figures[name] = _figures(results)
            folder = self.folder / "games"
            folder.mkdir(exist_ok=True)
            records.write(folder / f"{iteration:06d}-{len(figures)}.jsonl", self.game, results.records[:_KEPT], 0)
        self._last = model
        return {"opponents": figures, **({"values": self._values(self._sample, model)} if self._sample else {})}

    def _values(self, sample: values.Sample, model: Model) -> list[dict[str, Any]]:
        """Test the expected outcomes of the network."""
        source = values.network_source(self.game, TrainedNetwork(jax.device_put(model), 0.0), _NAME)
        predicted = source.predict(sample, min(_BATCH, len(sample.ply)))
        return [row.json() for row in values.table(sample.game, sample.ply, sample.actual, {_NAME: predicted})]

    def gate(self, model: Model, acting: Model) -> dict[str, Any]:
        """Run a sequential test of new weights against the acting ones."""
        assert self.config.evaluation.gate
        match = self._match(_GATE, model, self._agent(_GATE, acting))
        sprt = match.play(self.config.evaluation.eval_games, sprt=Sprt(*self.config.evaluation.gate)).sprt
        assert sprt
        return sprt

    def _match(self, name: str, model: Model, against: Agent) -> Match:
        """Return the compiled match against an opponent, with the current agents."""
        config = self.config.evaluation
        network = self._agent(_NAME, model)
        if name not in self._matches:
            players = [network, *[against] * max(1, self.game.num_players - 1)]
            # A sequential test checks the results after each batch.
            batch = min(config.eval_games, 32 if name == _GATE else 256)
            seats = max(1, self.game.num_players)
            self._matches[name] = Match(self.game, players[:seats], batch, self.config.seed, opening=config.eval_opening)
        match = self._matches[name]
        match.replace(network)
        if name in (_LAST, _GATE):
            match.replace(against)
        return match

    def _agent(self, name: str, model: Model | None) -> Agent:
        """Return the agent that searches with a network in evaluations."""
        return agent(jax.tree_util.Partial(self._decide, jax.device_put(model)), self.game, name=name)

    def _decide(self, model: Model, state: Any, key: PRNGKeyArray) -> Action:
        selfplay, num_simulations = self.config.selfplay, self.config.evaluation.eval_simulations
        searcher = agents.searcher(selfplay, self.game, agents.evaluator(selfplay, self.game), num_simulations, explore=False)
        return searcher(state, key, agents.network_of(selfplay, model)).action


def _figures(results: Results) -> dict[str, Any]:
    outcomes = results.outcomes(0)
    return {
        "win_rate": round(float(outcomes.mean()), 4),
        "standard_error": round(float(outcomes.std() / np.sqrt(len(outcomes))), 4),
        "seating": results.all("seating").tolist(),
        "results": results.ranked_by().astype(int).tolist(),
    }
