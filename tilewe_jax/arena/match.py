"""Matches between agents, a batch of games at a time; policies and searches decide on the device, other players on the host."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax import batching
from tilewe_jax.agents import Agent, ForfeitError, HostPlayer, OngoingGame
from tilewe_jax.agents.base import identity_of_game
from tilewe_jax.agents.host_agent import host_player
from tilewe_jax.agents.host_player import ParallelHostPlayer
from tilewe_jax.arena.deciders import Decider, advance_trees, as_argument, decide, games_together, init_trees, make_deciders
from tilewe_jax.arena.device_games import DeviceGames, Play
from tilewe_jax.arena.host_games import HostGames, is_random
from tilewe_jax.arena.ratings import Sprt
from tilewe_jax.arena.results import Batch, Results
from tilewe_jax.arena.shards import WHOLE, Shard
from tilewe_jax.game import Game
from tilewe_jax.lanes import chunk_size, expecting_lanes
from tilewe_jax.records import Record
from tilewe_jax.registry import available_games, options
from tilewe_jax.search import memory
from tilewe_jax.utils.programs import Program, compile_all
from tilewe_jax.utils.schedule import balanced_schedule

Progress = Callable[[Results], None]
"""Called with the results of a match so far."""
Opening = int | Sequence[Sequence[int]] | None
"""The opening of games: a number of random moves, or lists of actions."""
MAX_HOST_GAMES = 32
"""Maximum number of games of a match that is played on the host: more games take longer than loading the compiled rules."""


def play_match(
    game: Game[Any],
    players: Sequence[Agent],
    games: int,
    batch: int,
    seed: int,
    progress: Progress = lambda results: None,
    keep: bool = False,
    sprt: Sprt | None = None,
    move_seconds: float = 60.0,
    devices: int = 1,
    opening: Opening = None,
    enough: Callable[[Results], bool] = lambda results: False,
    shard: Shard = WHOLE,
) -> Results:
    """Compile a ``Match`` and play ``games`` games, ``batch`` at a time; arguments as for ``Match`` and ``Match.play``.

    Fewer games than ``batch`` are padded to ``batch_of(games, batch, devices)``.
    """
    # Schedule and results of all games stay in memory.
    memory.check_fits("games (--games)", games, 200 + 48 * game.num_players, memory.host_memory())
    started = time.perf_counter()
    num_games = len(shard.games(games, game.num_players))
    together = batch_of(num_games, batch, devices)
    match = Match(game, players, together, seed, move_seconds, devices, opening, num_games <= MAX_HOST_GAMES)
    seconds = time.perf_counter() - started
    return replace(match.play(games, progress, keep, sprt, enough, shard), compile_seconds=seconds)


def batch_of(games: int, batch: int, devices: int = 1) -> int:
    """Return the batch that plays ``games`` games: a power of two for each device, at most ``batch``.

    Matches with different numbers of games then share their compiled programs.

    >>> [batch_of(games, 100) for games in (1, 3, 5, 60, 70, 1000)]
    [1, 4, 8, 64, 100, 100]
    """
    return min(batch, devices << max(0, -(-games // devices) - 1).bit_length())


class Match:
    """Games between the same players, compiled once, a batch at a time.

    Every player sits in every seat equally often. A player that fails or chooses an illegal action forfeits: it continues with
    random actions and ranks behind the players that did not forfeit. Games depend only on the seed, not on the batch size, if
    players on the host use the given seeds and no clock; networks may round differently in batches of another size.

    Args:
        game: the game.
        players: at least one agent per seat. An agent that is given twice takes two seats and has one rating.
        batch: number of games in a batch.
        seed: seed of the games; the attribute ``seed`` can be changed between matches.
        move_seconds: time limit per move for players on the host, in seconds.
        devices: number of devices that share the batch.
        opening: number of random opening moves, or a list of openings (action lists) to use in turn. Games are then paired:
            for each deal and opening, one game per seat rotates the same players through all seats. ``None`` pairs no games.
        on_host: whether to play the moves and the policy ``random`` on the host if the game supports it
            (``Game.host_draws``), on one device. Games are the same; programs compile faster, moves take longer.

    Raises:
        ValueError: too few players, an opening longer than a game, or a batch that ``devices`` does not divide.
        MemoryError: the games or their search trees do not fit into memory.
    """

    def __init__(
        self,
        game: Game[Any],
        players: Sequence[Agent],
        batch: int,
        seed: int,
        move_seconds: float = 60.0,
        devices: int = 1,
        opening: Opening = None,
        on_host: bool = False,
    ) -> None:
        seats = game.num_players
        if len(players) < seats:
            parameters = options(game.id) if game.id in available_games() else {}
            fewer = f", or play with --players {len(players)}" if "players" in parameters and len(players) > 1 else ""
            names = [player.name for player in players]
            raise ValueError(
                f"{game.id} is played by {seats} here, got {len(names)} agent{'s' * (len(names) > 1)};"
                f" name some twice, like {' '.join((seats * names)[:seats])}{fewer}"
            )
        if isinstance(opening, int) and not 0 <= opening <= game.max_steps:
            raise ValueError(f"opening must be 0 to {game.max_steps} moves, the longest game, got {opening}")
        memory.check_batch(game, batch)
        self.game, self.batch, self.seed, self.move_seconds, self.devices = game, batch, seed, move_seconds, devices
        num_random = opening if isinstance(opening, int) else 0
        openings = [[]] if opening is None or isinstance(opening, int) else opening
        self._rules = DeviceGames(game, _padded(openings), num_random, is_paired=opening is not None)
        self.names = list(dict.fromkeys(player.name for player in players))
        agents = [as_argument(next(player for player in players if player.name == name)) for name in self.names]
        self._entries = np.array([self.names.index(player.name) for player in players])
        # A player with one of n entries is to move in about one of n games.
        divisors = [len(players) // int((self._entries == index).sum()) for index in range(len(self.names))]
        for agent, divisor in zip(agents, divisors, strict=True):
            if agent.spec:
                keeps_tree = agent.keeps_tree
                agent.spec.check_memory(game, batch if keeps_tree else -(-batch // divisor), keeps_tree)
        hosts = {index: host_player(agent) for index, agent in enumerate(agents)}
        self._host_players = {index: player for index, player in hosts.items() if player}
        self._identities = [agent.identity for agent in agents]
        self._on_host = on_host and devices == 1 and game.host_draws is not None
        self._random_players = [index for index, agent in enumerate(agents) if self._on_host and is_random(agent)]
        on_device = hosts.keys() - self._host_players.keys()
        self._timed = sorted(on_device)
        self._deciders = make_deciders(
            {index: agents[index] for index in sorted(on_device - {*self._random_players})}, divisors
        )
        self._policies = [decider for decider in self._deciders if not decider.keeps_tree]
        self._tree_deciders = [decider for decider in self._deciders if decider.keeps_tree]
        self._compile()

    def _compile(self) -> None:
        """Compile all programs, the searches first, because they take longest."""
        rules = self._rules
        number, ply, key = jnp.zeros(self.batch, jnp.int32), jnp.int32(0), jax.random.key(self.seed)
        play = jax.eval_shape(rules.start, number, key)
        seating = jnp.zeros((self.game.num_players, self.batch), jnp.int32)
        programs: dict[Any, Program] = {}
        for program, decider in {decider.program_key: decider for decider in self._tree_deciders}.items():
            agent, identity = decider.agent, self._identity([decider], decider.divisor)
            init, advance = (
                batching.split_over_devices(function, self.devices, shared=1) for function in (init_trees, advance_trees)
            )
            trees = jax.eval_shape(init, agent, play.state)
            choose = expecting_lanes(games_together(self.batch, decider.divisor), partial(self._choose, decider.divisor, None))
            deciding = agent, trees, number, number, play, ply, jnp.asarray(decider.indices)
            programs[program, "choose"] = Program("the search", choose, deciding, (1,), identity)
            programs[program, "advance"] = Program("the reuse of trees", advance, (agent, trees, number), (1,), identity)
            programs[program, "init"] = Program("the trees", init, (agent, play.state), (), identity)
        settings = [(decider.indices.tolist(), decider.divisor) for decider in self._policies], rules.num_random
        agents = self._policy_agents
        lanes = min((chunk_size(self.batch, decider.divisor) for decider in self._policies), default=self.batch)
        policies = self._identity(self._policies, settings, self._on_host)
        if self._on_host:
            programs["draws"] = Program("the random draws", rules.draws, (play.keys, play.deals, ply), (), self._identity())
        if self._on_host and self._policies:
            adding = expecting_lanes(lanes, self._add_policies)
            programs["policies"] = Program("the policies", adding, (agents, play, ply, number, number), (), policies)
        if not self._on_host:
            choosing, moving = expecting_lanes(lanes, self._choose_policies), expecting_lanes(self.batch, rules.move)
            programs["policies"] = Program("the policies", choosing, (agents, play, ply, seating), (), policies)
            programs["move"] = Program("the moves", moving, (play, number), (), self._identity())
            programs["end"] = Program("the results", rules.results, (play.state,), (), self._identity())
        identity = self._identity([], rules.is_paired, rules.openings.tolist())
        programs["start"] = Program("the start of games", rules.start, (number, key), (), identity)
        refusing = play, ply, number, number != 0
        self._random_moves = Program("random moves", rules.forfeit, refusing, (), self._identity())
        compiled = dict(zip(programs, compile_all(list(programs.values())), strict=True))
        memory.check_compiled(self.batch, *compiled.values())
        self._compiled = compiled
        for decider in self._tree_deciders:
            program = decider.program_key
            decider.choose, decider.init, decider.advance = (compiled[program, name] for name in ("choose", "init", "advance"))

    @property
    def _policy_agents(self) -> list[Agent | None]:
        return [decider.agent for decider in self._policies]

    @cached_property
    def _random_program(self) -> Any:
        """The program of random moves after forfeits, which most matches do not need."""
        (compiled,) = compile_all([self._random_moves])
        return compiled

    def _identity(self, deciders: Sequence[Decider] = (), *settings: Any) -> str | None:
        """Return ``Program.identity`` for a program of the match in which some players decide."""
        identities = [self._identities[index] for decider in deciders for index in decider.indices.tolist()]
        identities.append(identity_of_game(self.game))
        return None if None in identities or self.devices > 1 else repr((identities, settings))

    def replace(self, agent: Agent) -> None:
        """Replace the agent of the same name on the device by one that differs only in its weights."""
        index = self.names.index(agent.name)
        decider = next(decider for decider in self._deciders if index in decider.indices)
        decider.agent = as_argument(agent)

    def play(
        self,
        games: int,
        progress: Progress = lambda results: None,
        keep: bool = False,
        sprt: Sprt | None = None,
        enough: Callable[[Results], bool] = lambda results: False,
        shard: Shard = WHOLE,
    ) -> Results:
        """Play games; Ctrl-C stops the match and returns the finished batches.

        Args:
            games: number of games.
            progress: called with the results so far at the start, after each batch, and after each move of the current batch.
            keep: whether to keep a record of every game.
            sprt: sequential test of the first player against the second; the match stops once it has decided.
            enough: called after each batch; the match stops if it returns true.
            shard: play only this part of the games.

        Raises ``ValueError`` for a sequential test with fewer than two players, and for more shards than starts of games.
        """
        if sprt and len(self.names) < 2:
            raise ValueError("a sequential test (--sprt) needs two agents")
        numbers = shard.games(games, self.game.num_players)
        schedule = balanced_schedule(len(self._entries), self.game.num_players, games, random.Random(f"{self.seed}/schedule"))
        seating = self._entries[np.array(schedule)]
        results = Results(self.game, self.names)
        started, cpu_started = time.perf_counter(), time.process_time()

        def follow(results: Results) -> None:
            results.clock = time.perf_counter() - started
            progress(results)

        follow(results)
        try:
            for first in numbers[:: self.batch]:
                count = min(self.batch, numbers.stop - first)
                results.batches.append(self._play(first, seating[first : first + count], keep, results, follow))
                results.ply = 0
                results.seconds, results.cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
                follow(results)
                if sprt:
                    results.sprt = {"first": self.names[0], "second": self.names[1], **sprt.test(results.against())}
                    if results.sprt["verdict"] != "continue":
                        break
                if enough(results):
                    break
        except KeyboardInterrupt:
            results.interrupted = True
        return results

    def _choose_policies(
        self, agents: Sequence[Agent | None], play: Play, ply: jax.Array, seating: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the actions of openings and of all agents without trees, -1 elsewhere, and the players that decide."""
        return self._add_policies(agents, play, ply, *self._rules.movers(play, ply, seating))

    def _add_policies(
        self, agents: Sequence[Agent | None], play: Play, ply: jax.Array, action: jax.Array, mover: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Add the actions of all agents without trees to the actions of all games."""
        for decider, agent in zip(self._policies, agents, strict=True):
            arguments = None, action, mover, play, ply, jnp.asarray(decider.indices)
            action, _ = self._choose(decider.divisor, decider.together, agent, *arguments)
        return action, mover

    def _choose(
        self,
        divisor: int,
        together: Callable[..., Any] | None,
        agent: Agent | None,
        memory: Any,
        action: jax.Array,
        mover: jax.Array,
        play: Play,
        ply: jax.Array,
        indices: jax.Array,
    ) -> tuple[jax.Array, Any]:
        """Add the actions of a decider to the actions of all games; also return its new memory."""
        movers, keys = mover[None] == indices[:, None], self._rules.keys(play, ply)[:, 0]
        chosen, memory = decide(divisor, together, self.devices, agent, memory, movers, play.state, keys)
        return jnp.where(jnp.any(movers, axis=0), chosen, action), memory

    def _play(self, first: int, seating: np.ndarray, keep: bool, results: Results, progress: Progress) -> Batch:
        """Play consecutive games from number ``first``, one for each row of ``seating``."""
        count, seats = seating.shape
        # Games beyond ``count`` stay at their start, because nobody decides in them.
        padded = np.full((self.batch, seats), -1, np.int32)
        padded[:count] = seating
        number = first + np.arange(self.batch)
        play = self._compiled["start"](jnp.asarray(number, jnp.int32), jax.random.key(self.seed))
        memories = [decider.init(decider.agent, play.state) for decider in self._tree_deciders]
        initial = play.state
        deals = [self.game.deal(_row(initial, index)) for index in range(count)] if keep else []
        host_games = {
            index: OngoingGame(self.game, partial(_row, initial, index))
            for index in range(count)
            if self._host_players.keys() & set(padded[index].tolist())
        }
        games = (_OnHost if self._on_host else _OnDevice)(self, play, padded, count)
        actions: list[np.ndarray] = []
        for ply in range(self.game.max_steps):
            cpu_started = time.process_time()
            choice: Any = games.choose(np.int32(ply))
            for place, decider in enumerate(self._tree_deciders):
                if self.devices > 1:  # the results of the last program may be on several devices
                    choice = tuple(map(np.array, choice))
                action, memories[place] = decider.choose(
                    decider.agent, memories[place], *choice, games.play, np.int32(ply), decider.indices
                )
                choice = action, choice[1]
            action, mover = map(np.array, choice)
            results.count_decisions(mover[:count], self._timed, time.process_time() - cpu_started)
            self._ask_host_players(action, mover[:count], host_games, number, ply, results)
            played = games.move(np.int32(ply), action)
            for place, decider in enumerate(self._tree_deciders):
                memories[place] = decider.advance(decider.agent, memories[place], played)
            actions.append(played[:count])
            for index, host_game in host_games.items():
                if actions[-1][index] >= 0:
                    host_game.actions.append(int(actions[-1][index]))
            if np.all(actions[-1] < 0):
                break
            results.ply = ply + 1
            progress(results)
        return self._batch(seating, np.stack(actions, axis=1), deals, games.results())

    def _ask_host_players(
        self,
        action: np.ndarray,
        mover: np.ndarray,
        host_games: dict[int, OngoingGame],
        number: np.ndarray,
        ply: int,
        results: Results,
    ) -> None:
        """Write the actions of players on the host into ``action``, -1 for a forfeit."""
        for player, agent in self._host_players.items():
            indices = np.flatnonzero(mover == player).tolist()
            if not indices:
                continue
            name, seeds = self.names[player], [f"{self.seed}/{number[index]}/{ply}" for index in indices]
            games = [host_games[index] for index in indices]
            cpu_clock = getattr(agent, "cpu_seconds", time.process_time)
            started, cpu_started = time.perf_counter(), cpu_clock()
            if isinstance(agent, ParallelHostPlayer):
                choices = agent.choose_all(games, self.move_seconds, seeds)
            else:
                choices = [self._choice(agent, game, seed) for game, seed in zip(games, seeds, strict=True)]
            for index, choice in zip(indices, choices, strict=True):
                if isinstance(choice, ForfeitError):
                    results.faults[name] = str(choice)
                else:
                    action[index] = choice
            results.host_seconds[name] = results.host_seconds.get(name, 0.0) + time.perf_counter() - started
            results.player_cpu_seconds[name] = results.player_cpu_seconds.get(name, 0.0) + cpu_clock() - cpu_started

    def _choice(self, agent: HostPlayer, game: OngoingGame, seed: str) -> int | ForfeitError:
        """Return the action of a player on the host, or the error of its forfeit."""
        try:
            return agent.choose(game, self.move_seconds, seed)
        except ForfeitError as forfeit:
            return forfeit

    def _batch(self, seating: np.ndarray, actions: np.ndarray, deals: list[Any], arrays: "_Arrays") -> Batch:
        """Return the finished games; ``actions`` is ``[games, plies]``."""
        count = len(seating)
        scores, returns = (np.asarray(values)[:count] for values in arrays[:2])
        forfeits, plies, legal = (np.asarray(counts).T[:count] for counts in arrays[2:])
        records = []
        for index, deal in enumerate(deals):
            played = tuple(actions[index][actions[index] >= 0].tolist())
            names = tuple(self.names[player] for player in seating[index])
            records.append(Record(deal, played, tuple(scores[index].tolist()), tuple(returns[index].tolist()), names))
        return Batch(seating, scores, forfeits, plies, legal, records)


_Arrays = tuple[Any, Any, Any, Any, Any]
"""Scores and returns, ``[games, seats]``; forfeits, number of actions and sum of legal actions, ``[seats, games]``."""


class _OnDevice:
    """A batch of games that are played on the device. ``play`` are the games."""

    def __init__(self, match: Match, play: Play, seating: np.ndarray, count: int) -> None:
        self.play, self._match = play, match
        self._seating, self._is_played = jnp.asarray(seating.T), np.arange(match.batch) < count

    def choose(self, ply: np.int32) -> tuple[Any, Any]:
        """Return the actions of openings and of agents without trees, -1 elsewhere, and the players that decide."""
        match = self._match
        chosen: tuple[Any, Any] = match._compiled["policies"](match._policy_agents, self.play, ply, self._seating)
        return chosen

    def move(self, ply: np.int32, action: np.ndarray) -> np.ndarray:
        """Play the actions, or random ones in games whose players forfeit; return the actions played, -1 for none."""
        match = self._match
        after, played, refused = match._compiled["move"](self.play, action)
        if np.any(refusals := np.asarray(refused) & self._is_played):
            self.play, action = match._random_program(self.play, ply, action, refusals)
            after, played, _ = match._compiled["move"](self.play, action)
        self.play = after
        return np.asarray(played)

    def results(self) -> _Arrays:
        """Return the results of the finished games."""
        play = self.play
        return *self._match._compiled["end"](play.state), play.forfeited, play.plies, play.legal


class _OnHost:
    """A batch of games that are played on the host, like ``_OnDevice``."""

    def __init__(self, match: Match, play: Play, seating: np.ndarray, count: int) -> None:
        self.play, self._match, self._seating = play, match, seating
        self._forfeit = np.zeros(match.batch, np.uint32)  # words of the last ply
        self._games = HostGames(match.game, play.state, np.asarray(play.opening), match._rules.num_random, count)

    def choose(self, ply: np.int32) -> tuple[Any, Any]:
        match, play = self._match, self.play
        decision, self._forfeit, opening = np.asarray(match._compiled["draws"](play.keys, play.deals, ply))
        action, mover = self._games.movers(int(ply), opening, self._seating)
        self._games.choose_randomly(match._random_players, mover, decision, action)
        self.play = replace(play, state=self._games.states)
        if not match._policies:
            return action, mover
        chosen: tuple[Any, Any] = match._compiled["policies"](match._policy_agents, self.play, ply, action, mover)
        return chosen

    def move(self, ply: np.int32, action: np.ndarray) -> np.ndarray:
        del ply
        played, refused = self._games.move(action)
        if np.any(refused):
            again, _ = self._games.move(np.where(refused, self._games.forfeit(refused, self._forfeit, action), -1))
            played = np.where(refused, again, played)
        return played

    def results(self) -> _Arrays:
        games = self._games
        return *games.results(), games.forfeited, games.plies, games.legal


def _row(states: Any, index: int) -> Any:
    """Return one state of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], states)


def _padded(openings: Sequence[Sequence[int]]) -> np.ndarray:
    """Return openings as an array, padded with -1."""
    padded = np.full((len(openings), max(map(len, openings))), -1, np.int32)
    for row, actions in zip(padded, openings, strict=True):
        row[: len(actions)] = actions
    return padded
