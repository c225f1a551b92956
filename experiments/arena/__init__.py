"""Players of any kind against each other, thousands of games at a time, with ratings.

A player is a ``Policy``, asked for all games at once on the device, or an ``Engine`` of ``tilewe_jax.tilewe``, asked game by
game on the host. A policy may be a pytree, like a ``jax.tree_util.Partial`` of a function and weights: then others of its kind
can take its place without anything being compiled again, see ``Match``. Every player takes every seat equally often. Whoever
chooses an illegal action, or fails, forfeits: chance moves for it from there on, and it is ranked behind those that did not.
"""

import importlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.arena.ratings import Sprt, ahead_of, pairwise, plackett_luce
from experiments.networks import weights as trained
from search.exported import as_tree
from search.spec import RULES, AgentSpec, build, check_memory
from tilewe_jax import env
from tilewe_jax.game import Game, Policy
from tilewe_jax.lanes import where_needed
from tilewe_jax.records import Record
from tilewe_jax.schedule import balanced_schedule
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.convert import action_of_move, moves_of_action
from tilewe_jax.tilewe.engine import Engine
from tilewe_jax.tilewe.tournament import ForfeitError, search


@dataclass(frozen=True)
class Player:
    """Who plays."""

    name: str
    mind: Policy | Engine
    search: AgentSpec | None = None
    """The agent, where it searches."""


def player(game: Game[Any], text: str) -> Player:
    """The player that a text stands for: an ``AgentSpec`` of the search, or ``module:factory``, called without arguments.

    ``name=...`` gives it another name. Raises ``ValueError`` where there is none.
    """
    head, equals, tail = text.partition("=")
    name, what = (head, tail) if equals and ":" not in head else ("", text)
    module, colon, factory = what.partition(":")
    if module in RULES or not colon:
        try:
            spec = AgentSpec.parse(what)
            return Player(name or what, build(spec, game, trained.load), spec if spec.is_search else None)
        except ValueError as error:
            raise ValueError(str(error) if module in RULES else f"{error}; or give module:factory") from None
    try:
        mind = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"player {what!r}: {error}") from None
    if isinstance(mind, Engine) and game.id != "tilewe":
        raise ValueError(f"player {what!r} is an engine of tilewe, and cannot play {game.id}")
    if not isinstance(mind, Engine) and not callable(mind):
        raise ValueError(f"player {what!r} gave {mind!r}, which is neither a policy nor an engine of tilewe")
    return Player(name or getattr(mind, "name", factory), mind)


@dataclass(frozen=True)
class Batch:
    """Games that were played together; arrays are ``[games, seats]``."""

    tables: np.ndarray
    """Who sat where, as an index of the players."""
    scores: np.ndarray
    forfeits: np.ndarray
    plies: np.ndarray
    """Actions by each seat."""
    legal: np.ndarray
    """Sum of the numbers of legal actions that each seat had."""
    records: list[Record]
    """One a game, where they are kept."""


@dataclass
class Results:
    """The games played so far."""

    game: Game[Any]
    names: list[str]
    """Of the players."""
    batches: list[Batch] = field(default_factory=list)
    """A batch stands here whole or not at all, whenever the games are interrupted."""
    seconds: float = 0.0
    """Time spent playing, without compilation."""
    cpu_seconds: float = 0.0
    compile_seconds: float = 0.0
    host_seconds: dict[str, float] = field(default_factory=dict)
    """Time that engines on the host took."""
    sprt: dict[str, Any] | None = None
    faults: dict[str, str] = field(default_factory=dict)
    """Why a player forfeited, the last time."""
    interrupted: bool = False

    @property
    def games(self) -> int:
        """Number of games."""
        return sum(len(batch.tables) for batch in self.batches)

    @property
    def records(self) -> list[Record]:
        """Of all games."""
        return [record for batch in self.batches for record in batch.records]

    def all(self, name: str) -> np.ndarray:
        """An array of the batches, of all games."""
        return np.concatenate([getattr(batch, name) for batch in self.batches])

    def results(self) -> np.ndarray:
        """What players are ranked by: scores, and for those that forfeited less than any; ``[games, seats]``."""
        scores = self.all("scores")
        return np.where(self.all("forfeits"), scores.min() - 1, scores).astype(float)

    def winners(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which seats did best, ``[games, seats]``; whether one did alone, ``[games, 1]``; each seat's share of the win."""
        results = self.results()
        best: np.ndarray = results == results.max(axis=1, keepdims=True)
        count = best.sum(axis=1, keepdims=True)
        return best, count == 1, best / count

    def summary(self) -> dict[str, Any]:
        """Figures of these games, as JSON."""
        seats = self.game.num_players
        base = {
            "game": self.game.id,
            "options": self.game.options,
            "games": self.games,
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "compile_seconds": round(self.compile_seconds, 1),
            "interrupted": self.interrupted,
        }
        if not self.games:
            return {**base, "players": [], "seats": [], "pairs": {}}
        tables, results = self.all("tables"), self.results()
        best, alone, share = self.winners()
        scores, plies, legal, forfeits = map(self.all, ("scores", "plies", "legal", "forfeits"))
        rated = plackett_luce(tables, results, len(self.names)) if seats > 1 else None
        rows = []
        for index, name in enumerate(self.names):
            mine = tables == index
            count = int(mine.sum())
            row: dict[str, Any] = {
                "name": name,
                "elo": round(float(rated.players[index]), 1) if rated else None,
                "margin": round(float(rated.player_margins[index]), 1) if rated else None,
                "games": count,
                "wins": int((best & alone)[mine].sum()),
                "ties": int((best & ~alone)[mine].sum()),
                "win_share": _mean(share[mine]),
                "mean_score": _mean(scores[mine]),
                "plies": _mean(plies[mine]),
                "legal_actions": round(float(legal[mine].sum() / max(1, plies[mine].sum())), 1),
                "forfeits": int(forfeits[mine].sum()),
            }
            if name in self.host_seconds:
                row["seconds_per_move"] = self.host_seconds[name] / max(1, int(plies[mine].sum()))
            if name in self.faults:
                row["last_fault"] = self.faults[name]
            rows.append(row)
        wins, meetings = pairwise(tables, results, len(self.names))
        pairs = {
            name: {
                other: round(float(wins[i, j] / meetings[i, j]), 4)
                for j, other in enumerate(self.names)
                if i != j and meetings[i, j]
            }
            for i, name in enumerate(self.names)
        }
        seat_rows = [
            {
                "seat": seat + 1,
                "elo": round(float(rated.seats[seat]), 1) if rated else None,
                "margin": round(float(rated.seat_margins[seat]), 1) if rated else None,
                "win_share": _mean(share[:, seat]),
                "mean_score": _mean(scores[:, seat]),
            }
            for seat in range(seats)
        ]
        ranked = sorted(rows, key=lambda row: -(row["elo"] if rated else row["mean_score"]))
        tied = round(float(1 - alone.mean()), 4)
        found = {**base, "tied": tied, "players": ranked, "seats": seat_rows, "pairs": pairs}
        return found if self.sprt is None else {**found, "sprt": self.sprt}

    def standings(self) -> dict[str, Any]:
        """How often each player won, as JSON, in the order in which they were given.

        Intervals hold 95 % of normal distributions with the variance of the games' results; half a win and half a loss are
        added, without which results that are all alike would have no variance.
        """
        tables, results = self.all("tables"), self.results()
        best, alone, share = self.winners()
        rated = plackett_luce(tables, results, len(self.names)) if tables.shape[1] > 1 and len(self.names) > 1 else None
        agents = []
        for index, name in enumerate(self.names):
            mine = tables == index
            # A game is one observation, whatever the number of seats that a player has in it.
            sat = mine.any(axis=1)
            seats = mine.sum(axis=1)[sat]
            shares = np.append((share * mine).sum(axis=1)[sat] / seats, [0.0, 1.0])
            mean = float(shares[:-2].mean()) if sat.any() else 0.0
            error = NormalDist().inv_cdf(0.975) * float(shares.std()) / max(1, len(shares)) ** 0.5
            agents.append(
                {
                    "agent": name,
                    "games": int(sat.sum()),
                    "wins": int((best & alone & mine).sum()),
                    "ties": int((best & ~alone & mine).any(axis=1).sum()),
                    "win_share": round(mean, 4),
                    "interval": [round(max(0.0, mean - error), 4), round(min(1.0, mean + error), 4)],
                    "elo": round(float(rated.players[index]), 1) if rated else None,
                    "elo_margin": round(float(rated.player_margins[index]), 1) if rated else None,
                }
            )
        return {
            "game": self.game.id,
            "options": self.game.options,
            "games": self.games,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "agents": agents,
        }


def compete(
    game: Game[Any],
    players: Sequence[Player],
    games: int,
    batch: int,
    seed: int,
    progress: Callable[[int], None],
    keep: bool = False,
    sprt: Sprt | None = None,
    move_seconds: float = 60.0,
    devices: int = 1,
    opening: int | None = None,
) -> Results:
    """Play ``games`` games, ``batch`` at a time; see ``Match``."""
    begun = time.perf_counter()
    match = Match(game, players, min(batch, games), seed, move_seconds, devices, opening)
    seconds = time.perf_counter() - begun
    return replace(match.play(games, progress, keep, sprt), compile_seconds=seconds)


def _first_against_second(results: Results) -> np.ndarray:
    """For every game of both how often the first was ahead of the second, ties half."""
    tables, ranks = results.all("tables"), results.results()
    first, second = tables == 0, tables == 1
    both = first[:, :, None] & second[:, None, :]
    met = both.sum(axis=(1, 2))
    share: np.ndarray = (ahead_of(ranks) * both).sum(axis=(1, 2))[met > 0] / met[met > 0]
    return share


def _mean(values: np.ndarray) -> float | None:
    return round(float(values.mean()), 4) if values.size else None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Play:
    """A batch of games under way; seats stand first, ``[seats, lanes]``."""

    state: Any
    keys: jax.Array
    """One a game."""
    deals: jax.Array
    """One for what chance decides before the players do; the same in games that are paired."""
    forfeited: jax.Array
    plies: jax.Array
    legal: jax.Array


class Match:
    """Games between the same players, ``lanes`` at a time.

    A player that is given twice takes two seats and has one rating. The games follow from the seed alone, whatever ``lanes``,
    where host engines decide by Python's ``random`` and not by the clock. Players on the device decide over ``devices``, each
    for its part of the batch.

    With ``opening``, games are paired: in so many of them as there are seats, the same players sit in all seats in turn, chance
    deals alike, and plays the first ``opening`` moves, alike too.

    Raises ``ValueError`` where there are fewer players than seats, or where the batch cannot be divided among the devices, and
    ``MemoryError`` where searches do not fit into memory.
    """

    def __init__(
        self,
        game: Game[Any],
        players: Sequence[Player],
        lanes: int,
        seed: int,
        move_seconds: float = 60.0,
        devices: int = 1,
        opening: int | None = None,
    ) -> None:
        seats = game.num_players
        self.opening = opening
        if len(players) < seats:
            raise ValueError(
                f"{game.id} has {seats} seats, and there are fewer players than that, {len(players)}; one may be named twice"
            )
        self.game, self.lanes, self.seed, self.move_seconds, self.devices = game, lanes, seed, move_seconds, devices
        self.names = list(dict.fromkeys(player.name for player in players))
        minds = [next(player.mind for player in players if player.name == name) for name in self.names]
        self.entry = np.array([self.names.index(player.name) for player in players])
        # Who sits in one of so many places is to move in about one of so many games.
        self.shares = [len(players) // int((self.entry == index).sum()) for index in range(len(self.names))]
        for player in players:
            if player.search:
                check_memory(player.search, game, -(-lanes // self.shares[self.names.index(player.name)]))
        self.engines = {index: mind for index, mind in enumerate(minds) if isinstance(mind, Engine)}
        self.policies = {index: as_tree(mind) for index, mind in enumerate(minds) if not isinstance(mind, Engine)}
        number, ply = jnp.zeros(lanes, jnp.int32), jnp.int32(0)
        table = jnp.zeros((seats, lanes), jnp.int32)
        play = jax.eval_shape(self._start, number)
        self.start = jax.jit(self._start).lower(number).compile()
        self.choose = jax.jit(self._choose).lower(self.policies, play, ply, table).compile()
        self.move = jax.jit(self._move).lower(play, ply, number).compile()
        self.end = (
            jax.jit(lambda state: (jax.vmap(game.scores)(state), jax.vmap(game.returns)(state))).lower(play.state).compile()
        )

    def replace(self, name: str, mind: Policy) -> None:
        """Put another policy in the place of a player's, of the same kind: the same function, with other weights."""
        self.policies[self.names.index(name)] = as_tree(mind)

    def play(self, games: int, progress: Callable[[int], None], keep: bool = False, sprt: Sprt | None = None) -> Results:
        """Play games, every player in every seat equally often; Ctrl-C ends early with the batches that were finished.

        ``sprt`` tests the first player against the second after each batch, and ends the games once it has decided. ``keep``
        keeps a record of every game; ``progress`` is told the number of games in each finished batch.
        """
        if sprt and len(self.names) < 2:
            raise ValueError("a sequential test needs two players")
        schedule = balanced_schedule(len(self.entry), self.game.num_players, games, random.Random(f"{self.seed}/schedule"))
        tables = self.entry[np.array(schedule)]
        results = Results(self.game, self.names)
        begun, cpu_begun = time.perf_counter(), time.process_time()
        try:
            for start in range(0, games, self.lanes):
                count = min(self.lanes, games - start)
                results.batches.append(self._play(start, tables[start : start + count], keep, results))
                results.seconds, results.cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu_begun
                progress(count)
                if sprt:
                    results.sprt = {
                        "first": self.names[0],
                        "second": self.names[1],
                        **sprt.test(_first_against_second(results)),
                    }
                    if results.sprt["verdict"] != "continue":
                        break
        except KeyboardInterrupt:
            results.interrupted = True
        return results

    def _start(self, number: jax.Array) -> _Play:
        """New games, each decided by its number."""
        fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
        keys = fold(jax.random.key(self.seed), number)
        deals = keys if self.opening is None else fold(jax.random.key(self.seed), number // self.game.num_players)
        none = jnp.zeros((self.game.num_players, self.lanes), jnp.int32)
        return _Play(jax.vmap(self.game.init)(deals), keys, deals, none != 0, none, none)

    def _keys(self, play: _Play, ply: jax.Array) -> jax.Array:
        """A key for each game at a ply: one for the player, one for chance where the player fails."""
        return jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, ply)))(play.keys)

    def _choose(
        self, policies: dict[int, Policy], play: _Play, ply: jax.Array, table: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """What players on the device do; and whose turn it is, -1 where the game is over or that one has forfeited."""
        keys = self._keys(play, ply)[:, 0]
        over = jax.vmap(self.game.is_terminal)(play.state)
        seat = jax.vmap(self.game.current_player)(play.state)
        forfeited = jnp.take_along_axis(play.forfeited, seat[None], axis=0)[0]
        mover = jnp.where(over | forfeited, -1, jnp.take_along_axis(table, seat[None], axis=0)[0])
        action = jnp.full(self.lanes, -1, jnp.int32)
        for index, policy in policies.items():
            ask = partial(_ask, self.shares[index])
            decide = env.split_over_devices(ask, self.devices, shared=1)
            action = jnp.where(mover == index, decide(policy, mover == index, play.state, keys), action)
        if self.opening:
            by_chance = jax.vmap(self.game.sample_action)(play.state, jax.vmap(jax.random.fold_in, (0, None))(play.deals, ply))
            action = jnp.where(ply < self.opening, by_chance, action)
            mover = jnp.where(ply < self.opening, -1, mover)
        return action, mover

    def _move(self, play: _Play, ply: jax.Array, action: jax.Array) -> tuple[_Play, jax.Array]:
        """Play the actions, and others by chance for those that are illegal; those that were played, -1 where it is over."""
        game, state = self.game, play.state
        over = jax.vmap(game.is_terminal)(state)
        legal = jax.vmap(game.is_legal)(state, action)
        action = jnp.where(legal, action, jax.vmap(game.sample_action)(state, self._keys(play, ply)[:, 1]))
        seats = jnp.arange(game.num_players)[:, None]
        moving = (seats == jax.vmap(game.current_player)(state)[None]) & ~over[None]
        moved = moving.astype(jnp.int32)
        return _Play(
            jax.vmap(game.apply)(state, action),
            play.keys,
            play.deals,
            play.forfeited | (moving & ~legal[None]),
            play.plies + moved,
            play.legal + moved * jax.vmap(game.num_legal)(state)[None],
        ), action

    def _play(self, first: int, tables: np.ndarray, keep: bool, results: Results) -> Batch:
        """Play a game at each table, the ``first``-th game and the following."""
        count, seats = tables.shape
        table = np.zeros((self.lanes, seats), np.int32)
        table[:count] = tables
        number = first + np.arange(self.lanes)
        play = self.start(jnp.asarray(number, jnp.int32))
        deals = [self.game.deal(jax.tree.map(lambda leaf, i=i: leaf[i], play.state)) for i in range(count)] if keep else []
        boards = {lane: Board(seats) for lane in range(count) if self.engines.keys() & set(tables[lane].tolist())}
        actions = []
        seats_first = jnp.asarray(table.T)
        for ply in range(self.game.max_steps):
            # To the host and back, since they may lie on several devices.
            action, mover = (np.array(part) for part in self.choose(self.policies, play, np.int32(ply), seats_first))
            mover = mover[:count]
            if self.engines and any(index in self.engines for index in set(mover.tolist())):
                action = self._ask_engines(action, mover, boards, number, ply, results)
            play, action = self.move(play, np.int32(ply), action)
            actions.append(np.asarray(action)[:count])
            for lane, board in boards.items():
                if actions[-1][lane] >= 0:
                    board.push(moves_of_action(actions[-1][lane], board)[0])
            if np.all(actions[-1] < 0):
                break
        return self._batch(play, tables, np.stack(actions, axis=1), deals)

    def _ask_engines(
        self,
        action: np.ndarray,
        mover: np.ndarray,
        boards: dict[int, Board],
        number: np.ndarray,
        ply: int,
        results: Results,
    ) -> np.ndarray:
        """The actions with those of the engines; one that forfeits keeps -1."""
        for lane, index in enumerate(mover.tolist()):
            if index in self.engines:
                name = self.names[index]
                random.seed(f"{self.seed}/{number[lane]}/{ply}")
                begun = time.perf_counter()
                try:
                    action[lane] = action_of_move(search(self.engines[index], boards[lane], self.move_seconds))
                except ForfeitError as forfeit:
                    results.faults[name] = str(forfeit)
                spent = results.host_seconds.get(name, 0.0) + time.perf_counter() - begun
                results.host_seconds[name] = spent
        return action

    def _batch(self, play: _Play, tables: np.ndarray, actions: np.ndarray, deals: list[Any]) -> Batch:
        scores, returns = (np.asarray(values)[: len(tables)] for values in self.end(play.state))
        forfeits, plies, legal = (np.asarray(counts).T[: len(tables)] for counts in (play.forfeited, play.plies, play.legal))
        records = []
        for lane, deal in enumerate(deals):
            played = tuple(actions[lane][actions[lane] >= 0].tolist())
            who = tuple(self.names[index] for index in tables[lane])
            records.append(Record(deal, played, tuple(scores[lane].tolist()), tuple(returns[lane].tolist()), who))
        return Batch(tables, scores, forfeits, plies, legal, records)


def _ask(share: int, policy: Policy, mine: jax.Array, state: Any, keys: jax.Array) -> jax.Array:
    """What a player does in the games where it is to move; it is not asked about others, one in ``share`` at a time."""
    impl = jax.random.key_impl(keys)

    def some(state: Any, words: jax.Array) -> jax.Array:
        return jax.vmap(policy, in_axes=(-1, 0))(state, jax.random.wrap_key_data(words.T, impl=impl))

    lanes_last = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), (state, jax.random.key_data(keys)))
    return where_needed(mine, some, lanes_last, jnp.full(mine.shape, -1, jnp.int32), share)
