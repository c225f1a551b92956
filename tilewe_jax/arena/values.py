"""Tests of values: how well values of positions in recorded games predict the results of the games, by ply.

All values are those of the player to move, and the result is the return of this player: 1 for a win, 0 for a loss, and the
share of a tie.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Key, PRNGKeyArray

from tilewe_jax import records
from tilewe_jax.agents import Agent, OngoingGame, agent
from tilewe_jax.agents.base import split_name
from tilewe_jax.agents.gtp_player import GtpPlayer
from tilewe_jax.agents.levels import is_name
from tilewe_jax.agents.spec import RULES, AgentSpec
from tilewe_jax.game import Game
from tilewe_jax.networks import weights
from tilewe_jax.networks.weights import TrainedNetwork
from tilewe_jax.records import Record
from tilewe_jax.search import Determinized, InformationSetSearch, Network

WIDTH = 4
"""Default number of plies of a row."""
_NORMAL = 1.96
"""Half the width of a 95 % interval, in standard errors."""


# ---- The table: a pure function of arrays


@dataclass(frozen=True)
class Row:
    """How well one source of values predicts the results, over the positions of some plies.

    Intervals are half the widths of 95 % intervals, with games as observations, because the positions of a game are correlated;
    ``None`` for a single game.
    """

    source: str
    """Name of the source of the values."""
    first_ply: int
    """Smallest number of actions before a position."""
    last_ply: int
    """Largest number of actions before a position."""
    positions: int
    """Number of positions."""
    games: int
    """Number of games with such positions."""
    predicted: float
    """Mean value."""
    actual: float
    """Mean result."""
    correlation: float | None
    """Pearson correlation of value and result; ``None`` if all values or all results are equal."""
    correlation_ci95: float | None
    brier: float
    """Brier score: mean squared difference of value and result, 0 at best."""
    brier_ci95: float | None
    constant: float
    """Brier score of the constant ``actual``, which is the variance of the results."""
    gain: float
    """``constant`` minus ``brier``; negative if the values are worse than a constant."""
    gain_ci95: float | None
    difference: float | None
    """``brier`` minus the Brier score of the first source; ``None`` for the first source itself."""
    difference_ci95: float | None

    def json(self) -> dict[str, Any]:
        """Return the row as JSON, with numbers rounded to five decimals."""
        return {name: round(value, 5) if isinstance(value, float) else value for name, value in asdict(self).items()}


def table(
    game: np.ndarray, ply: np.ndarray, actual: np.ndarray, predicted: Mapping[str, np.ndarray], width: int = WIDTH
) -> list[Row]:
    """Compare sources of values on the same N positions.

    Args:
        game: index of the game of each position, ``int[N]``.
        ply: number of actions before each position, ``int[N]``.
        actual: result of the game for the player to move, ``float[N]``.
        predicted: values by the name of their source, ``float[N]``.
        width: number of plies of a row.

    Returns a row for each interval of plies that has positions and each source, and rows over all plies at the end.

    Raises ``ValueError`` for arrays of other shapes, without positions, or with values that are not finite.
    """
    game, ply, actual = np.asarray(game), np.asarray(ply), np.asarray(actual, np.float64)
    values = {name: np.asarray(value, np.float64) for name, value in predicted.items()}
    for name, array in [("game", game), ("ply", ply), ("actual", actual), *values.items()]:
        if array.shape != (actual.size,) or not actual.size:
            raise ValueError(f"{name} must be an array of at least one position, like actual {actual.shape}, got {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite numbers")
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    bins = [(first, first + width - 1) for first in np.unique(ply // width * width).tolist()]
    return [
        row
        for first, last in [*bins, (int(ply.min()), int(ply.max()))]
        for row in _rows(first, last, (ply >= first) & (ply <= last), game, actual, values)
    ]


def _rows(
    first: int, last: int, chosen: np.ndarray, game: np.ndarray, actual: np.ndarray, values: Mapping[str, np.ndarray]
) -> Iterator[Row]:
    """Yield the rows of all sources over the chosen positions."""
    games, index = np.unique(game[chosen], return_inverse=True)
    result = actual[chosen]
    variance = (result - result.mean()) ** 2
    baseline: np.ndarray | None = None
    for source, value in values.items():
        predicted = value[chosen]
        error = (predicted - result) ** 2
        correlation, influence = _correlation(predicted, result)
        difference = None if baseline is None else error - baseline
        yield Row(
            source,
            first,
            last,
            positions=len(result),
            games=len(games),
            predicted=float(predicted.mean()),
            actual=float(result.mean()),
            correlation=correlation,
            correlation_ci95=None if correlation is None else _ci95(influence, index),
            brier=float(error.mean()),
            brier_ci95=_ci95(error, index),
            constant=float(variance.mean()),
            gain=float((variance - error).mean()),
            gain_ci95=_ci95(variance - error, index),
            difference=None if difference is None else float(difference.mean()),
            difference_ci95=None if difference is None else _ci95(difference, index),
        )
        baseline = error if baseline is None else baseline


def _correlation(x: np.ndarray, y: np.ndarray) -> tuple[float | None, np.ndarray]:
    """Return the correlation of two variables and the influence of each observation on it (Devlin et al. 1975)."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None, x
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    correlation = float((x * y).mean())
    return correlation, x * y - correlation * (x**2 + y**2) / 2


def _ci95(values: np.ndarray, game: np.ndarray) -> float | None:
    """Return half the width of the 95 % interval of a mean, with games as observations (Liang and Zeger 1986).

    Args:
        values: ``float[N]``.
        game: index of the game of each value, ``int[N]``, without gaps.
    """
    totals = np.bincount(game, values - values.mean())
    count = len(totals)
    return _NORMAL * float(np.sqrt(count / (count - 1) * (totals**2).sum())) / len(values) if count > 1 else None


# ---- Positions


@dataclass(frozen=True)
class Sample:
    """N positions of finished games before an action."""

    records: Sequence[Record]
    """The games."""
    game: np.ndarray
    """Index of the game of each position, ``int[N]``, ascending."""
    ply: np.ndarray
    """Number of actions before each position, ``int[N]``, ascending in a game."""
    player: np.ndarray
    """The player to move, ``int32[N]``."""
    actual: np.ndarray
    """Return of the player to move, ``float32[N]``."""
    state: Any
    """The positions, ``[N, ...]`` on the host."""


def sample(
    game: Game[Any],
    games: Sequence[Record],
    name: str | None = None,
    seat: int | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Sample:
    """Return the positions of games before their actions.

    Args:
        game: the game that was played.
        games: finished games with legal actions, see ``replay.recorded.finished_games``.
        name: only positions before a move of the player with this name.
        seat: only positions before a move of this seat.
        limit: maximum number of positions; of more, a random sample is drawn.
        seed: seed of the sample.

    Raises ``ValueError`` if no positions are left.
    """
    names = {player for record in games for player in record.players}
    if name is not None and name not in names:
        known = f"the players are {', '.join(sorted(names))}" if names else "the files have no names of players"
        raise ValueError(f"no game has a player {name!r}; {known}")
    parts: list[tuple[np.ndarray, ...]] = []
    states: list[Any] = []
    start = 0
    for part, positions in records.positions(game, games):
        returns = np.array([record.returns for record in part], np.float32)
        kept = np.ones(len(positions.ply), np.bool_)
        if name is not None:
            is_named = np.array([[player == name for player in record.players or [""] * game.num_players] for record in part])
            kept &= is_named[positions.record, positions.player]
        if seat is not None:
            kept &= positions.player == seat
        index, player = positions.record[kept], positions.player[kept]
        parts.append((start + index, positions.ply[kept], player, returns[index, player]))
        states.append(jax.tree.map(lambda leaf, kept=kept: leaf[kept], positions.state))
        start += len(part)
    index, ply, player, actual = map(np.concatenate, zip(*parts, strict=True))
    if not len(ply):
        raise ValueError("the games have no positions of this player")
    chosen = np.arange(len(ply))
    if limit is not None and limit < len(ply):
        chosen = np.random.default_rng(seed % 2**64).choice(len(ply), limit, replace=False)
    chosen = chosen[np.lexsort((ply[chosen], index[chosen]))]
    state = jax.tree.map(lambda *leaves: np.concatenate(leaves)[chosen], *states)
    return Sample(games, index[chosen], ply[chosen], player[chosen], actual[chosen], state)


# ---- Sources of values


def value_of_search(agent: Agent, state: Any, key: PRNGKeyArray) -> Float32[Array, "P"]:
    """Return the mean value of the root of a search, by seat; ``key`` is consumed."""
    return agent.search(state, key).value


def value_without_search(agent: Agent, state: Any, key: PRNGKeyArray) -> Float32[Array, "P"]:
    """Return the value of a position by the evaluator of a search, by seat; ``key`` is consumed.

    With hidden information it is the mean over the agent's number of determinizations.
    """
    search, game = agent.built(), agent.game
    evaluator = (search.search if isinstance(search, Determinized) else search).evaluator
    if not game.has_hidden_information:
        return evaluator(agent.weights, state, key).value
    count = 1 if isinstance(search, InformationSetSearch) else search.num_determinizations  # type: ignore[union-attr]
    key_determinize, key_evaluate = jax.random.split(key)
    determinize = partial(game.determinize, state, game.current_player(state))
    states = jax.vmap(determinize)(jax.random.split(key_determinize, count))
    evaluations = jax.vmap(lambda state, key: evaluator(agent.weights, state, key).value)
    return jnp.mean(evaluations(states, jax.random.split(key_evaluate, count)), axis=0)


@dataclass(frozen=True)
class Source:
    """A source of values of positions."""

    agent: Agent
    """An agent that searches, or a GTP engine."""
    searches: bool = True
    """Whether the values are those of the search; otherwise those of its evaluator, such as a network, alone."""

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self.agent.name

    def predict(
        self,
        sample: Sample,
        batch: int = 64,
        seed: int = 0,
        move_seconds: float = 600.0,
        follow: Callable[[int], object] = lambda done: None,
    ) -> np.ndarray:
        """Return the values of positions for the player to move, ``float32[N]``.

        Args:
            sample: the positions.
            batch: number of positions evaluated or searched in one call.
            seed: seed of the random numbers.
            move_seconds: time limit of a position for a GTP engine, in seconds.
            follow: called with the number of positions done so far.

        Raises ``ForfeitError`` if a GTP engine fails, and ``MemoryError`` if the trees of a batch do not fit into memory.
        """
        if self.agent.player:
            return _of_engine(self.agent, sample, move_seconds, seed, follow)
        if self.searches and self.agent.spec:
            self.agent.spec.check_memory(self.agent.game, batch)
        function = jax.tree_util.Partial(value_of_search if self.searches else value_without_search, self.agent)
        count = len(sample.ply)
        values = np.empty(count, np.float32)
        for start in range(0, count, batch):
            # The last block is padded, so that all blocks have one shape.
            index = np.minimum(np.arange(start, start + batch), count - 1)
            state = jax.tree.map(lambda leaf, index=index: leaf[index], sample.state)
            block = _values(function, state, sample.player[index], jax.random.key(seed), index.astype(np.int32))
            values[start : start + batch] = np.asarray(block)[: count - start]
            follow(min(start + batch, count))
        return values


@jax.jit
def _values(
    value: Any, state: Any, player: Int32[Array, "B"], key: Key[Array, ""], index: Int32[Array, "B"]
) -> Float32[Array, "B"]:
    """Return the values of positions for the player to move."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, index)
    return jnp.take_along_axis(jax.vmap(value)(state, keys), player[:, None], axis=1)[:, 0]


def _of_engine(agent: Agent, sample: Sample, move_seconds: float, seed: int, follow: Callable[[int], object]) -> np.ndarray:
    """Return the values of a GTP engine, which values each game in a process."""
    player, game = agent.player, agent.game
    assert isinstance(player, GtpPlayer)
    values, done = np.empty(len(sample.ply), np.float32), 0

    def value_game(positions: list[int]) -> int:
        number = int(sample.game[positions[0]])
        record = sample.records[number]
        ongoing = OngoingGame(game, lambda: game.init_from_deal(record.deal), deal=record.deal)
        for position in positions:
            ongoing.actions = list(record.actions[: sample.ply[position]])
            values[position] = player.value(ongoing, move_seconds, f"{seed} {number}")
        return len(positions)

    games = [list(positions) for _, positions in groupby(range(len(sample.ply)), lambda position: int(sample.game[position]))]
    with ThreadPoolExecutor(min(player.max_processes, os.cpu_count() or 1)) as threads:
        try:
            for count in threads.map(value_game, games):
                done += count
                follow(done)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            player.close()
    return values


def network_source(game: Game[Any], network: Network, name: str) -> Source:
    """Return the source of a network's expected outcomes, without its scores and without search."""
    if isinstance(network, TrainedNetwork):
        network = replace(network, score_weight=0.0)
    return Source(agent("puct", game, name=name, network=network), searches=False)


def source_without_search(game: Game[Any], text: str, trust: bool = False) -> Source:
    """Return the source of a text: a network, see ``weights.load``, or the evaluator of an agent that searches.

    ``NAME=...`` names it. Raises ``ValueError`` for unknown networks and agents, and for agents without search.
    """
    name, what = split_name(text)
    if what.partition(":")[0] in RULES or is_name(what):
        return replace(source(game, text), searches=False)
    return network_source(game, weights.load(game, what, trust), name or what)


def source(game: Game[Any], text: str) -> Source:
    """Return the source of the text of an agent that searches, or of a GTP engine with ``reg_genmove`` and ``move_values``.

    Raises ``ValueError`` for other agents.
    """
    created = agent(text, game)
    if not (created.is_search or isinstance(created.player, GtpPlayer)):
        raise ValueError(f"{text} has no values; only searches, such as puct, and GTP engines have")
    if created.spec and created.spec.seconds is not None:
        raise ValueError(f"{text}: seconds is not supported, because many positions are searched together")
    return Source(created)


def default_network(game: Game[Any]) -> str:
    """Return the name of the network of the agent ``best``; empty if it has none, or if it does not fit the options."""
    return AgentSpec.parse("best", game).evaluator.network
