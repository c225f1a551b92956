"""Matches of any players, a batch of games at a time: policies decide on the device, players on the host game by game."""

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax import batching
from tilewe_jax.agents import Agent, ForfeitError, HostGame, HostPlayer
from tilewe_jax.agents.host_agent import host_player
from tilewe_jax.agents.host_player import ParallelHostPlayer
from tilewe_jax.arena.ratings import Sprt
from tilewe_jax.arena.results import Batch, Results
from tilewe_jax.game import Game, SharingPolicy
from tilewe_jax.lanes import chunk_size, some_set, where_needed
from tilewe_jax.records import Record
from tilewe_jax.registry import available_games, options
from tilewe_jax.search import memory
from tilewe_jax.utils.schedule import balanced_schedule

Progress = Callable[[Results], None]
"""Follows a match by its results so far."""
Opening = int | Sequence[Sequence[int]] | None
"""How games begin: a number of random moves, or lists of actions."""


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
) -> Results:
    """Compile a ``Match`` and play ``games`` games of it, ``batch`` at a time; arguments as there and in ``Match.play``."""
    # The schedule and the results of all games are kept.
    memory.check_fits("games (--games)", games, 200 + 48 * game.num_players, memory.host_memory())
    started = time.perf_counter()
    match = Match(game, players, min(batch, games), seed, move_seconds, devices, opening)
    seconds = time.perf_counter() - started
    return replace(match.play(games, progress, keep, sprt, enough), compile_seconds=seconds)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Play:
    """A batch of games under way; seats come first, ``[seats, batch]``."""

    state: Any
    """States, ``[batch, ...]``."""
    keys: jax.Array
    """One key per game."""
    deals: jax.Array
    """One key per game for what chance decides before the players do; equal in games that are paired."""
    forfeited: jax.Array
    """Whether the player in each seat has forfeited."""
    plies: jax.Array
    """Number of actions of each seat."""
    legal: jax.Array
    """Sum over these actions of the number of legal ones."""
    opening: jax.Array
    """Actions with which each game begins, -1 where it has fewer, ``[batch, actions]``."""


Agents = dict[int, Agent]
"""Agents by the index of the player."""


@dataclass(frozen=True)
class _TreeProgram:
    """The functions of a player that keeps a tree, compiled for all that differ in their weights alone.

    The memory is what the player carries from move to move, ``[batch, ...]``.
    """

    init: Any
    """Gives the memory of new games."""
    choose: Any
    """Gives the actions of all games, with those that the player decides on, and the memory."""
    advance: Any
    """Gives the memory after actions of any player."""


class Match:
    """Games between the same players, compiled once, a batch at a time.

    Every player sits in every seat equally often. One that chooses an illegal action, or fails, forfeits: random actions are
    played for it from there on, and it is ranked behind those that did not. The games follow from the seed alone, whatever the
    batch, where players on the host draw random numbers from the seed that they get, and do not look at the clock.

    Args:
        game: the game.
        players: at least as many as the game has seats. A player that is given twice takes two seats and has one rating.
        batch: number of games played at once.
        seed: decides the games.
        move_seconds: time for a move of a player on the host.
        devices: number of devices over which policies decide, each for its part of the batch.
        opening: number of random moves at the beginning, or a list of openings, each the actions with which games begin, which
            are used in turn. Games are then paired: in as many games as there are seats the same players sit in all seats in
            turn, with the same deal and the same opening. ``None`` pairs no games.

    Raises ``ValueError`` where there are fewer players than seats, the opening is longer than a game, or the batch cannot be
    divided among the devices, and ``MemoryError`` where the games or their searches do not fit into memory.
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
    ) -> None:
        seats = game.num_players
        if len(players) < seats:
            parameters = options(game.id) if game.id in available_games() else {}
            fewer = f", or play with --players {len(players)}" if "players" in parameters and len(players) > 1 else ""
            names = [player.name for player in players]
            raise ValueError(
                f"{game.id} is played by {seats} here, and {len(names)} agent{'s' * (len(names) > 1)} cannot fill the seats:"
                f" name some twice, like {' '.join((seats * names)[:seats])}{fewer}"
            )
        if isinstance(opening, int) and not 0 <= opening <= game.max_steps:
            raise ValueError(f"the opening must have 0 to {game.max_steps} moves, the longest game, not {opening}")
        memory.check_batch(game, batch)
        self.game, self.batch, self.seed, self.move_seconds, self.devices = game, batch, seed, move_seconds, devices
        self._is_paired = opening is not None
        self._num_random = opening if isinstance(opening, int) else 0
        self._openings = _padded([[]] if opening is None or isinstance(opening, int) else opening)
        self.names = list(dict.fromkeys(player.name for player in players))
        agents = [_as_argument(next(player for player in players if player.name == name)) for name in self.names]
        self._entries = np.array([self.names.index(player.name) for player in players])
        # A player in one of n entries is to move in about one of n games.
        self._divisors = [len(players) // int((self._entries == index).sum()) for index in range(len(self.names))]
        for agent, divisor in zip(agents, self._divisors, strict=True):
            if agent.spec:
                keeps_tree = agent.keeps_tree
                agent.spec.check_memory(game, batch if keeps_tree else -(-batch // divisor), keeps_tree)
        on_host = {index: host_player(agent) for index, agent in enumerate(agents)}
        self._host_players = {index: found for index, found in on_host.items() if found}
        on_device = {index: agent for index, agent in enumerate(agents) if not on_host[index]}
        self._tree_players = {index: agent for index, agent in on_device.items() if agent.keeps_tree}
        self._policies = {index: agent for index, agent in on_device.items() if not agent.keeps_tree}
        sharing: dict[type[Any], dict[int, Any]] = {}
        for index, agent in self._policies.items():
            policy = getattr(agent.weights, "func", None)
            if isinstance(policy, SharingPolicy):
                sharing.setdefault(type(policy), {})[index] = policy
        self._together = {
            tuple(policies): kind.together(list(policies.values())) for kind, policies in sharing.items() if len(policies) > 1
        }
        """Policies that are compiled together, by the indices of the players."""
        number, ply = jnp.zeros(batch, jnp.int32), jnp.int32(0)
        seating = jnp.zeros((seats, batch), jnp.int32)
        play = jax.eval_shape(self._start, number)
        ends = jax.jit(lambda state: (jax.vmap(game.scores)(state), jax.vmap(game.returns)(state)))
        lowered = [
            jax.jit(self._start).lower(number),
            jax.jit(self._choose).lower(self._policies, play, ply, seating),
            jax.jit(self._move).lower(play, ply, number),
            ends.lower(play.state),
        ]
        programs = {self._program_key(index): index for index in self._tree_players}
        for (_, divisor), index in programs.items():
            agent = self._tree_players[index]
            tree = jax.eval_shape(_init_trees, agent, play.state)
            init, advance = (
                batching.split_over_devices(function, devices, shared=1) for function in (_init_trees, _advance_trees)
            )
            choose = jax.jit(partial(self._choose_in_tree, divisor), donate_argnums=1)
            lowered += [
                jax.jit(init).lower(agent, play.state),
                choose.lower(agent, tree, number, number, play, ply, ply),
                jax.jit(advance, donate_argnums=1).lower(agent, tree, number),
            ]
        with ThreadPoolExecutor() as pool:  # side by side, as XLA compiles a program for the most part in one thread
            compiled = list(pool.map(lambda program: program.compile(), lowered))
        self._compiled_start, self._compiled_choose, self._compiled_move, self._compiled_end, *of_trees = compiled
        self._tree_programs = {key: _TreeProgram(*of_trees[3 * number : 3 * number + 3]) for number, key in enumerate(programs)}
        memory.check_compiled(batch, self._compiled_start, self._compiled_choose, self._compiled_move, *of_trees)

    def _program_key(self, index: int) -> tuple[Any, int]:
        """What the program of a player that keeps a tree depends on: all but the values of its weights."""
        leaves, structure = jax.tree.flatten(self._tree_players[index])
        return (structure, *((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)), self._divisors[index]

    def replace(self, agent: Agent) -> None:
        """Give the player of this name another agent without a tree, which differs in its weights alone."""
        self._policies[self.names.index(agent.name)] = _as_argument(agent)

    def play(
        self,
        games: int,
        progress: Progress = lambda results: None,
        keep: bool = False,
        sprt: Sprt | None = None,
        enough: Callable[[Results], bool] = lambda results: False,
    ) -> Results:
        """Play games; Ctrl-C ends early with the batches that were finished.

        Args:
            games: number of games.
            progress: called with the results so far, at the beginning, after each batch, and after each move of the one under
                way, whose games are not among them yet.
            keep: whether a record of every game is kept.
            sprt: tests the first player against the second after each batch, and ends the match once it has decided.
            enough: asked after each batch whether the match ends with it.

        Raises ``ValueError`` for a sequential test of fewer than two players.
        """
        if sprt and len(self.names) < 2:
            raise ValueError("a sequential test (--sprt) needs two agents")
        schedule = balanced_schedule(len(self._entries), self.game.num_players, games, random.Random(f"{self.seed}/schedule"))
        seating = self._entries[np.array(schedule)]
        results = Results(self.game, self.names)
        started, cpu_started = time.perf_counter(), time.process_time()

        def follow(results: Results) -> None:
            results.clock = time.perf_counter() - started
            progress(results)

        follow(results)
        try:
            for first in range(0, games, self.batch):
                count = min(self.batch, games - first)
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

    def _start(self, number: jax.Array) -> _Play:
        """New games, each decided by its number."""
        fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
        keys = fold(jax.random.key(self.seed), number)
        deals = fold(jax.random.key(self.seed), number // self.game.num_players) if self._is_paired else keys
        openings = jnp.asarray(self._openings)[number // self.game.num_players % len(self._openings)]
        none = jnp.zeros((self.game.num_players, self.batch), jnp.int32)
        return _Play(jax.vmap(self.game.init)(deals), keys, deals, none != 0, none, none, openings)

    def _keys(self, play: _Play, ply: jax.Array) -> jax.Array:
        """Two keys per game at a ply: for the player, and for the random action where the player fails."""
        return jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, ply)))(play.keys)

    def _choose(self, policies: Agents, play: _Play, ply: jax.Array, seating: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Actions of policies; the player to move, -1 where the game is over or that player has forfeited."""
        keys = self._keys(play, ply)[:, 0]
        over = jax.vmap(self.game.is_terminal)(play.state)
        seat = jax.vmap(self.game.current_player)(play.state)
        forfeited = jnp.take_along_axis(play.forfeited, seat[None], axis=0)[0]
        chosen_before = self._opening_action(play, ply)
        waits = over | forfeited | (chosen_before >= 0)
        mover = jnp.where(waits, -1, jnp.take_along_axis(seating, seat[None], axis=0)[0])
        action = chosen_before
        for indices, together_policies in self._together.items():
            share = sum(1 / self._divisors[index] for index in indices)
            movers = mover[None] == np.array(indices, np.int32)[:, None]
            mine, which = jnp.any(movers, axis=0), jnp.argmax(movers, axis=0).astype(jnp.int32)
            together = partial(_policy_actions, max(1, int(1 / share)), together_policies)
            chosen = batching.split_over_devices(together, self.devices)(mine, play.state, keys, which)
            action = jnp.where(mine, chosen, action)
        shared = {index for indices in self._together for index in indices}
        for index, agent in policies.items():
            if index in shared:
                continue
            mine = mover == index
            decide = batching.split_over_devices(partial(_agent_actions, self._divisors[index]), self.devices, shared=1)
            action = jnp.where(mine, decide(agent, mine, play.state, keys), action)
        return action, mover

    def _choose_in_tree(
        self,
        divisor: int,
        agent: Agent,
        tree: Any,
        action: jax.Array,
        mover: jax.Array,
        play: _Play,
        ply: jax.Array,
        index: jax.Array,
    ) -> tuple[jax.Array, Any]:
        """The actions with those of one player that keeps a tree, and its memory after them."""
        mine = mover == index
        decide = batching.split_over_devices(partial(_tree_actions, divisor), self.devices, shared=1)
        chosen, tree = decide(agent, mine, play.state, self._keys(play, ply)[:, 0], tree)
        return jnp.where(mine, chosen, action), tree

    def _opening_action(self, play: _Play, ply: jax.Array) -> jax.Array:
        """The action of the opening at a ply, -1 after it."""
        action = jnp.full(self.batch, -1, jnp.int32)
        if self._num_random:
            keys = jax.vmap(jax.random.fold_in, (0, None))(play.deals, ply)
            random_action = jax.vmap(self.game.sample_action)(play.state, keys)
            action = jnp.where(ply < self._num_random, random_action, action)
        if length := play.opening.shape[1]:
            given = jnp.take(play.opening, jnp.minimum(ply, length - 1), axis=1)
            action = jnp.where(ply < length, given, action)
        return action

    def _move(self, play: _Play, ply: jax.Array, action: jax.Array) -> tuple[_Play, jax.Array]:
        """Play the actions, and random ones in place of illegal ones; also those that were played, -1 in finished games."""
        game, state = self.game, play.state
        over = jax.vmap(game.is_terminal)(state)
        legal = jax.vmap(game.is_legal)(state, action)
        action = jnp.where(legal, action, jax.vmap(game.sample_action)(state, self._keys(play, ply)[:, 1]))
        seats = jnp.arange(game.num_players, dtype=jnp.int32)[:, None]
        moving = (seats == jax.vmap(game.current_player)(state)[None]) & ~over[None]
        moved = moving.astype(jnp.int32)
        after = _Play(
            jax.vmap(game.apply)(state, action),
            play.keys,
            play.deals,
            play.forfeited | (moving & ~legal[None]),
            play.plies + moved,
            play.legal + moved * jax.vmap(game.num_legal)(state)[None],
            play.opening,
        )
        return after, action

    def _play(self, first: int, seating: np.ndarray, keep: bool, results: Results, progress: Progress) -> Batch:
        """Play the ``first``-th game and the following, one for each row of ``seating``."""
        count, seats = seating.shape
        padded = np.zeros((self.batch, seats), np.int32)
        padded[:count] = seating
        number = first + np.arange(self.batch)
        play = self._compiled_start(jnp.asarray(number, jnp.int32))
        tree_players = [
            (index, agent, self._tree_programs[self._program_key(index)]) for index, agent in self._tree_players.items()
        ]
        trees = [program.init(agent, play.state) for _, agent, program in tree_players]
        begin = play.state
        deals = [self.game.deal(_row(begin, index)) for index in range(count)] if keep else []
        host_games = {
            index: HostGame(self.game, partial(_row, begin, index))
            for index in range(count)
            if self._host_players.keys() & set(padded[index].tolist())
        }
        actions: list[np.ndarray] = []
        seats_first = jnp.asarray(padded.T)
        for ply in range(self.game.max_steps):
            cpu_started = time.process_time()
            # To the host and back, since they may lie on several devices.
            choice = self._compiled_choose(self._policies, play, np.int32(ply), seats_first)
            action, mover = (np.array(part) for part in choice)
            for place, (index, agent, program) in enumerate(tree_players):
                arguments = action, mover, play, np.int32(ply), np.int32(index)
                chosen, trees[place] = program.choose(agent, trees[place], *arguments)
                action = np.array(chosen)
            on_device = self._policies.keys() | self._tree_players.keys()
            results.count_decisions(mover[:count], on_device, time.process_time() - cpu_started)
            self._ask_host_players(action, mover[:count], host_games, number, ply, results)
            play, played = self._compiled_move(play, np.int32(ply), action)
            action = np.asarray(played)
            for place, (_, agent, program) in enumerate(tree_players):
                trees[place] = program.advance(agent, trees[place], action)
            actions.append(action[:count])
            for index, host_game in host_games.items():
                if actions[-1][index] >= 0:
                    host_game.actions.append(int(actions[-1][index]))
            if np.all(actions[-1] < 0):
                break
            results.ply = ply + 1
            progress(results)
        return self._batch(play, seating, np.stack(actions, axis=1), deals)

    def _ask_host_players(
        self,
        action: np.ndarray,
        mover: np.ndarray,
        host_games: dict[int, HostGame],
        number: np.ndarray,
        ply: int,
        results: Results,
    ) -> None:
        """Write the actions of players on the host into ``action``; one that forfeits leaves -1."""
        if not self._host_players:
            return
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
            spent = results.host_seconds.get(name, 0.0) + time.perf_counter() - started
            results.host_seconds[name] = spent
            results.player_cpu_seconds[name] = results.player_cpu_seconds.get(name, 0.0) + cpu_clock() - cpu_started

    def _choice(self, agent: HostPlayer, game: HostGame, seed: str) -> int | ForfeitError:
        """The action of a player on the host, or why it forfeits."""
        try:
            return agent.choose(game, self.move_seconds, seed)
        except ForfeitError as forfeit:
            return forfeit

    def _batch(self, play: _Play, seating: np.ndarray, actions: np.ndarray, deals: list[Any]) -> Batch:
        """The finished games; ``actions`` is ``[games, plies]``."""
        count = len(seating)
        scores, returns = (np.asarray(values)[:count] for values in self._compiled_end(play.state))
        forfeits, plies, legal = (np.asarray(counts).T[:count] for counts in (play.forfeited, play.plies, play.legal))
        records = []
        for index, deal in enumerate(deals):
            played = tuple(actions[index][actions[index] >= 0].tolist())
            names = tuple(self.names[player] for player in seating[index])
            records.append(Record(deal, played, tuple(scores[index].tolist()), tuple(returns[index].tolist()), names))
        return Batch(seating, scores, forfeits, plies, legal, records)


def _as_argument(agent: Agent) -> Agent:
    """The agent as an argument of compiled functions, which do not depend on its name, nor on where its network is from."""
    spec = agent.spec
    if spec and agent.is_search and agent.weights is not None:
        spec = replace(spec, evaluator=replace(spec.evaluator, network="loaded"))
    return replace(agent, name="", spec=spec)


def _init_trees(agent: Agent, state: Any) -> Any:
    return jax.vmap(agent.init)(state)


def _advance_trees(agent: Agent, tree: Any, action: jax.Array) -> Any:
    return jax.vmap(agent.advance)(tree, action)


def _agent_actions(divisor: int, agent: Agent, mine: jax.Array, state: Any, keys: jax.Array) -> jax.Array:
    return _policy_actions(divisor, agent.act, mine, state, keys)


def _policy_actions(
    divisor: int, policy: Callable[..., Any], mine: jax.Array, state: Any, keys: jax.Array, *which: jax.Array
) -> jax.Array:
    """Actions of a policy in the games where it is to move, -1 elsewhere.

    It is asked about those games alone, one in ``divisor`` at a time. An ``IndexedPolicy`` also takes ``which``.
    """
    impl, none = jax.random.key_impl(keys), jnp.full(mine.shape, -1, jnp.int32)

    def decide(state: Any, words: jax.Array, *which: jax.Array) -> jax.Array:
        keys = jax.random.wrap_key_data(words.T, impl=impl)
        actions: jax.Array = jax.vmap(policy, in_axes=(*(0 for _ in which), -1, 0))(*which, state, keys)
        return actions

    batch_last = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), (state, jax.random.key_data(keys), *which))
    return where_needed(mine, decide, batch_last, none, divisor)


def _tree_actions(
    divisor: int, agent: Agent, mine: jax.Array, state: Any, keys: jax.Array, memory: Any
) -> tuple[jax.Array, Any]:
    """Actions of a player that keeps its tree, as ``_policy_actions`` gives them, and its memory after them."""
    impl, none = jax.random.key_impl(keys), jnp.full(mine.shape, -1, jnp.int32)
    words = jax.random.key_data(keys)
    chunk = chunk_size(mine.shape[0], divisor)

    # Batch-first throughout: trees are too large to be transposed.
    def ask(carry: tuple[jax.Array, jax.Array, Any]) -> tuple[jax.Array, jax.Array, Any]:
        left, action, memory = carry
        index = some_set(left, chunk)
        part = jax.tree.map(lambda leaf: jnp.take(leaf, index, axis=0, mode="clip"), (memory, state, words))
        some_memory, some_state, some_words = part
        chosen, after = jax.vmap(agent.play)(some_memory, some_state, jax.random.wrap_key_data(some_words, impl=impl))
        memory = jax.tree.map(lambda leaf, new: leaf.at[index].set(new, mode="drop"), memory, after)
        return left.at[index].set(False, mode="drop"), action.at[index].set(chosen, mode="drop"), memory

    _, action, memory = jax.lax.while_loop(lambda carry: jnp.any(carry[0]), ask, (mine, none, memory))
    return action, memory


def _padded(openings: Sequence[Sequence[int]]) -> np.ndarray:
    """Openings as an array, with -1 behind the shorter ones."""
    padded = np.full((len(openings), max(map(len, openings))), -1, np.int32)
    for row, actions in zip(padded, openings, strict=True):
        row[: len(actions)] = actions
    return padded


def _row(states: Any, index: int) -> Any:
    """One state of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], states)
