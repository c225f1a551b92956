"""Lists of balanced openings, and the search for them by two programs or in an opening book.

Between strong players, the first player usually wins from the initial position, so the results say little about their strength.
Balanced openings give both sides equal chances and make games different.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import jax
import numpy as np

from tilewe_jax.agents import Agent
from tilewe_jax.agents import agent as make_agent
from tilewe_jax.agents.book import load as load_book
from tilewe_jax.formats.blokus import BlokusGame, blokus_game
from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.notation import cells_of
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.gtp_client import CommandError, EngineError, GtpEngine, search_move
from tilewe_jax.utils.files import read_json, replacing

FORMAT = "tilewe-jax-openings/1"
FOLDER = Path(__file__).parents[1] / "openings"
"""Folder of the shipped lists, one per game with default options."""
_BATCH = 64
_SECONDS_TO_SEARCH = 3600.0

_Actions = tuple[int, ...]
"""The first actions of a game."""
_Judge = Callable[[Sequence[_Actions]], Sequence[float]]
"""Returns the values of positions for the player to move, in [0, 1]."""


@dataclass(frozen=True)
class Opening:
    """The first actions of a game with their value."""

    actions: _Actions
    values: dict[str, float]
    """Value of the position after the opening for the player to move, in [0, 1], by the engine that estimated it."""


def find(game: Game[Any]) -> Path | None:
    """Return the path of the shipped list; ``None`` if it does not exist for the game with these options."""
    path = FOLDER / f"{game.id}.json"
    return path if path.exists() and _differences(game, read_json(path)) == "" else None


def read(game: Game[Any], path: Path) -> list[Opening]:
    """Read a file of openings. Raises ``ValueError`` for an invalid file or another game, or ``OSError``."""
    try:
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"not a file of openings ({FORMAT})")
        if problem := _differences(game, content):
            raise ValueError(problem)
        openings = [Opening(tuple(map(int, row["actions"])), dict(row.get("values", {}))) for row in content["openings"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of openings ({error!r})") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not openings:
        raise ValueError(f"{path}: contains no openings")
    start = game.host(game.init(jax.random.key(0)))
    for number, opening in enumerate(openings, 1):
        position = start
        for action in opening.actions:
            if rule := position.explain(action):
                raise ValueError(f"{path}: action {action} of opening {number} is illegal: {rule}")
            position = position.after(action)
    return openings


def write(path: Path, game: Game[Any], openings: Sequence[Opening], about: dict[str, Any]) -> None:
    """Write a file of openings; ``about`` is metadata about the search for them."""
    head = {"format": FORMAT, "game": game.id, "options": game.options, **about}
    rows = [json.dumps({"actions": opening.actions, "values": opening.values}) for opening in openings]
    text = json.dumps(head, indent=1)[:-2] + ',\n "openings": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n"
    with replacing(path) as file:
        file.write(text)


def from_book(game: Game[Any], path: Path, count: int, tolerance: float) -> list[Opening]:
    """Return balanced openings of an opening book, one move per player, the most balanced first.

    Args:
        game: the game.
        path: the book.
        count: maximum number of openings.
        tolerance: maximum difference of the value for the player to move, scaled to two players, from 0.5.

    Raises ``ValueError`` for an invalid book, or if it contains no balanced openings.
    """
    book = load_book(game, str(path))
    evaluated = book.evaluated()
    openings = [
        Opening(position.actions, {"agent": round(evaluated[key][0].value[position.player] * game.num_players / 2, 4)})
        for key, position in book.positions.items()
        if len(position.actions) == game.num_players
    ]
    openings = [opening for opening in openings if abs(opening.values["agent"] - 0.5) <= tolerance]
    if not openings:
        raise ValueError(f"{path}: no position after {game.num_players} moves has a value within {tolerance} of 0.5")
    return sorted(openings, key=lambda opening: (abs(opening.values["agent"] - 0.5), opening.actions))[:count]


def _differences(game: Game[Any], content: dict[str, Any]) -> str:
    """Return the difference between the game of a file and a game; empty if they are equal."""
    name, options = content.get("game"), content.get("options")
    if (name, options) == (game.id, game.options):
        return ""
    return f"its openings are for {name} {options}, not for {game.id} {game.options}"


class Finder:
    """Context manager that finds openings with an equal value for an agent and for Pentobi.

    An opening is one random piece of five cells per player. It is kept if all engines and the agent value it as an equal game.
    With two players an equal game has the value 0.5. With more players the seats differ in value, so it is the median over
    random openings.

    Args:
        game: a polyomino game that Pentobi supports.
        engines: command lines of Pentobi's GTP engine with game and level. The first one, of a low level, values all openings,
            the agent values the openings that pass, and the other engines the rest. The value of the last engine is kept.
        agent: text of a search.
        tolerance: maximum difference from the value of an equal game.
        seed: seed of the random moves and of the agent.
        processes: number of processes of each engine.

    Raises ``ValueError`` if the game is not a polyomino game, the agent does not search, or an engine fails.
    """

    def __init__(
        self, game: Game[Any], engines: Sequence[str], agent: str, tolerance: float, seed: int = 0, processes: int = 1
    ) -> None:
        self._names = blokus_game(make_host_game(game.id, **game.options))
        self._random = random.Random(seed)
        self._tolerance = tolerance
        by_agent = _agent_values(game, agent, seed)
        self._judges: list[_Judge] = []
        self._stack = ExitStack()
        with self._stack as stack:
            each = [stack.enter_context(_Engines(self._names, command, processes)) for command in engines]
            self._judges = [each[0].values, by_agent, *(engine.values for engine in each[1:] or each)]
            self._equal = [0.5] * len(self._judges)
            if game.num_players > 2:
                drawn = self._draw_batch()
                self._equal = [float(np.median(judge(drawn))) for judge in self._judges]
            self._stack = stack.pop_all()

    def __enter__(self) -> "Finder":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def equal(self) -> dict[str, float]:
        """The value of an equal game for the agent and for the last engine."""
        return {"agent": round(self._equal[1], 4), "engine": round(self._equal[-1], 4)}

    def find(self, count: int, progress: Callable[[int, int], None] = lambda num_found, num_tried: None) -> Iterator[Opening]:
        """Yield distinct openings; ``progress`` is called with the numbers of found and tried openings."""
        num_found = num_tried = 0
        known: set[_Actions] = set()
        while num_found < count:
            waiting: list[_Actions] = []
            while len(waiting) < _BATCH:
                drawn = self._draw_batch()
                num_tried += len(drawn)
                waiting += [actions for actions in self._equal_by(0, drawn) if actions not in known]
                known.update(waiting)
                progress(num_found, num_tried)
            by_agent = self._equal_by(1, waiting[:_BATCH])
            by_engine = by_agent
            for judge in range(2, len(self._judges)):
                by_engine = self._equal_by(judge, list(by_engine))
            for actions, value in list(by_engine.items())[: count - num_found]:
                num_found += 1
                yield Opening(actions, {"agent": round(by_agent[actions], 4), "engine": round(value, 4)})
                progress(num_found, num_tried)

    def _equal_by(self, judge: int, openings: Iterable[_Actions]) -> dict[_Actions, float]:
        """Map the openings that a judge values as equal games to their values."""
        rows = list(dict.fromkeys(openings))
        values = zip(rows, self._judges[judge](rows), strict=True)
        return {row: value for row, value in values if abs(value - self._equal[judge]) <= self._tolerance}

    def _draw_batch(self) -> list[_Actions]:
        return [_draw(self._names, self._random) for _ in range(_BATCH)]


class _Engines:
    """Processes of an engine that value openings."""

    def __init__(self, names: BlokusGame, command: str, processes: int) -> None:
        self._names, self._command = names, command
        self._free: SimpleQueue[GtpEngine] = SimpleQueue()
        self._threads = ThreadPoolExecutor(processes)
        try:
            self._engines = [GtpEngine(command) for _ in range(processes)]
        except EngineError as error:
            raise ValueError(str(error)) from None
        for engine in self._engines:
            self._free.put(engine)

    def __enter__(self) -> "_Engines":
        return self

    def __exit__(self, *error: object) -> None:
        for engine in self._engines:
            engine.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def values(self, openings: Sequence[_Actions]) -> list[float]:
        """Return the values of openings for the player to move."""
        return list(self._threads.map(self._value, openings))

    def _value(self, moves: _Actions) -> float:
        engine = self._free.get()
        try:
            engine.send("clear_board", _SECONDS_TO_SEARCH)
            position: Any = self._names.start()
            for action in moves:
                color = self._names.colors[position.current_color][0]
                engine.send(f"play {color} {self._names.move_text(action)}", _SECONDS_TO_SEARCH)
                position = position.after(action)
            return search_move(engine, self._names.colors[position.current_color][0], _SECONDS_TO_SEARCH)[1]
        except (EngineError, CommandError) as error:
            raise ValueError(f"{self._command!r} does not work: {error}") from None
        finally:
            self._free.put(engine)


def _draw(names: BlokusGame, choice: random.Random) -> _Actions:
    """Draw a random move with a piece of the largest size for each player in turn."""
    moves: list[int] = []
    position = names.start()
    for _ in names.colors:
        large = [action for action in position.legal_actions() if len(cells_of(names.config, action)) == MAX_PIECE_SIZE]
        moves.append(choice.choice(large))
        position = position.after(moves[-1])
    return tuple(moves)


def _agent_values(game: Game[Any], text: str, seed: int) -> _Judge:
    """Return a judge by an agent, with values scaled to two players: the mean outcome becomes 0.5."""
    agent = make_agent(text, game)
    agent.built()  # for errors

    @jax.jit
    def values(agent: Agent, actions: jax.Array, keys: jax.Array) -> jax.Array:
        def value(actions: jax.Array, key: jax.Array) -> jax.Array:
            state = game.init(key)
            for action in actions:
                state = game.apply(state, action)
            mover_value: jax.Array = agent.search(state, key).value[game.current_player(state)]
            return mover_value

        return jax.vmap(value)(actions, keys)

    def judge(openings: Sequence[_Actions]) -> list[float]:
        if not openings:
            return []
        actions = np.resize(np.array(openings, np.int32), (_BATCH, len(openings[0])))  # one compiled shape
        keys = jax.random.split(jax.random.key(seed), _BATCH)
        result: list[float] = (np.asarray(values(agent, actions, keys)) * game.num_players / 2).tolist()
        return result[: len(openings)]

    return judge
