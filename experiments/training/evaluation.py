"""Tests of a run under way: its player against fixed opponents, and against what it was at the test before."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from experiments import networks
from experiments.arena import Match, Player, Results, player
from experiments.arena.ratings import Sprt
from experiments.config import Config
from experiments.networks import weights as trained
from experiments.training import selfplay
from tilewe_jax import records
from tilewe_jax.game import Action, Game

_NAME = "network"
_LAST = "last"
_GATE = "what plays"
_KEPT = 2
"""Games of each test that are kept, against each opponent."""


class Tests:
    """The opponents, compiled once for all tests; ``before`` is the round of the test before, in a run that goes on.

    Raises ``ValueError`` where there is no such opponent.
    """

    def __init__(self, config: Config, game: Game[Any], folder: Path, before: int | None = None) -> None:
        self.config, self.game, self.folder = config, game, folder
        self.opponents = {name: None if name == _LAST else player(game, name) for name in config.opponents}
        self.matches: dict[str, Match] = {}
        self.last: networks.Model | None = None
        if before is not None:
            self.last = trained.read(game, folder / "weights" / f"{before:06d}.npz").model

    def run(self, number: int, model: networks.Model) -> dict[str, Any]:
        """Play against all opponents.

        Gives for each the mean share of the win and its standard error, and who sat where in which games with which results.
        """
        found: dict[str, Any] = {}
        for name, opponent in self.opponents.items():
            if opponent is None and self.last is None:
                continue
            against = self._policy(self.last) if opponent is None else opponent.mind
            match = self._match(name, model, against)
            results = match.play(self.config.test_games, lambda _: None, keep=True)
            found[name] = self._figures(results)
            folder = self.folder / "games"
            folder.mkdir(exist_ok=True)
            records.write(folder / f"{number:06d}-{len(found)}.jsonl", self.game, results.records[:_KEPT], 0)
        self.last = model
        return {"opponents": found}

    def gate(self, model: networks.Model, plays: networks.Model) -> dict[str, Any]:
        """A sequential test of weights against those that play now."""
        assert self.config.gate
        match = self._match(_GATE, model, self._policy(plays))
        sprt = match.play(self.config.test_games, lambda _: None, sprt=Sprt(*self.config.gate)).sprt
        assert sprt
        return sprt

    def _match(self, name: str, model: networks.Model, against: Any) -> Match:
        mine = self._policy(model)
        if name not in self.matches:
            players = [Player(_NAME, mine), *[Player(name, against)] * max(1, self.game.num_players - 1)]
            # A sequential test looks at the results after each batch.
            lanes = min(self.config.test_games, 32 if name == _GATE else 256)
            seats = max(1, self.game.num_players)
            opening = self.config.test_opening
            self.matches[name] = Match(self.game, players[:seats], lanes, self.config.seed, opening=opening)
        match = self.matches[name]
        match.replace(_NAME, mine)
        if name in (_LAST, _GATE):
            match.replace(name, against)
        return match

    def _policy(self, model: networks.Model | None) -> Any:
        """The player that searches with a network, as it is tested."""
        return jax.tree_util.Partial(self._decide, jax.device_put(model))

    def _decide(self, model: networks.Model, state: Any, key: PRNGKeyArray) -> Action:
        evaluate = selfplay.evaluator(self.config, self.game, model)
        search = selfplay.searcher(self.config, self.game, evaluate, self.config.test_simulations, noise=False)
        return search(state, key).action

    def _figures(self, results: Results) -> dict[str, Any]:
        tables = results.all("tables")
        _, _, shares = results.winners()
        shares = (shares * (tables == 0)).sum(axis=1)
        return {
            "win_share": round(float(shares.mean()), 4),
            "error": round(float(shares.std() / np.sqrt(len(shares))), 4),
            "tables": tables.tolist(),
            "results": results.results().astype(int).tolist(),
        }
