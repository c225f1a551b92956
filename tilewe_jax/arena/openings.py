"""Balanced openings: lists of first moves that two programs value alike, and their search.

Equal players win most of their games from the seat that moves first, so games from the start hardly tell players apart. From an
opening that is worth about as much for both sides they do, and all pairs of games differ.
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
from tilewe_jax.formats.blokus import BlokusGame, blokus_game
from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.notation import cells_of
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.gtp_client import CommandError, EngineError, GtpEngine
from tilewe_jax.utils.files import read_json, replacing

FORMAT = "tilewe-jax-openings/1"
FOLDER = Path(__file__).parents[1] / "openings"
"""The lists that are part of the package, one a game, for its default options."""
_BATCH = 64
_SECONDS_TO_SEARCH = 3600.0

_Beginning = tuple[int, ...]
"""The first actions of a game."""
_Values = Callable[[Sequence[_Beginning]], Sequence[float]]
"""Values of beginnings for the player to move, between 0 and 1."""


@dataclass(frozen=True)
class Opening:
    """First actions of a game, and what they are worth."""

    actions: tuple[int, ...]
    values: dict[str, float]
    """Value for the player to move after them, between 0 and 1, by who said it."""


def find(game: Game[Any]) -> Path | None:
    """The list that comes with the package; ``None`` where there is none for this game with these options."""
    path = FOLDER / f"{game.id}.json"
    return path if path.exists() and _differences(game, read_json(path)) == "" else None


def read(game: Game[Any], path: Path) -> list[Opening]:
    """The openings of a file. Raises ``ValueError`` where it is none for this game, and ``OSError``."""
    try:
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"it is no file of openings ({FORMAT})")
        if problem := _differences(game, content):
            raise ValueError(problem)
        openings = [Opening(tuple(map(int, row["actions"])), dict(row.get("values", {}))) for row in content["openings"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: it is no file of openings ({error!r})") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not openings:
        raise ValueError(f"{path}: it has no openings")
    start = game.host(game.init(jax.random.key(0)))
    for number, opening in enumerate(openings, 1):
        position = start
        for action in opening.actions:
            if rule := position.explain(action):
                raise ValueError(f"{path}: action {action} of opening {number} is illegal: {rule}")
            position = position.after(action)
    return openings


def write(path: Path, game: Game[Any], openings: Sequence[Opening], about: dict[str, Any]) -> None:
    """Write a file of openings; ``about`` says how they were found."""
    head = {"format": FORMAT, "game": game.id, "options": game.options, **about}
    rows = [json.dumps({"actions": opening.actions, "values": opening.values}) for opening in openings]
    text = json.dumps(head, indent=1)[:-2] + ',\n "openings": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n"
    with replacing(path) as file:
        file.write(text)


def _differences(game: Game[Any], content: dict[str, Any]) -> str:
    """Why the openings of a file are not for a game; empty where they are."""
    its = (content.get("game"), content.get("options"))
    return "" if its == (game.id, game.options) else f"its openings are of {its[0]} {its[1]}, not of {game.id} {game.options}"


class Finder:
    """Finds openings that a search of ours and Pentobi both value alike; a context, which starts and ends engines.

    Each player places a random piece of five cells, in turn. Of these beginnings those are kept whose value for the player to
    move is that of an equal game, by every engine and by our search. In a game of two that is a half. With more players the
    seats are not worth the same, and no beginning makes them so: there it is the median of beginnings, and playing each from
    all seats does the rest.

    Args:
        game: a polyomino game that Pentobi has.
        engines: command lines of Pentobi's GTP engine, which say the game and the level. The first one, of a low level, looks
            at all beginnings, our search at those that it finds equal, and the others at what is left; the value of the last
            one is kept.
        agent: a search of ours with its settings.
        tolerance: greatest difference of a value from that of an equal game, where values are between 0 and 1.
        seed: seed of the random moves and of our search.
        processes: number of processes of each engine.

    Raises ``ValueError`` where the game is none of the family, the agent does not search, or an engine does not work.
    """

    def __init__(
        self, game: Game[Any], engines: Sequence[str], agent: str, tolerance: float, seed: int = 0, processes: int = 1
    ) -> None:
        self._names = blokus_game(make_host_game(game.id, **game.options))
        self._random = random.Random(seed)
        self._tolerance = tolerance
        ours = _our_values(game, agent, seed)
        self._judges: list[_Values] = []
        self._stack = ExitStack()
        with self._stack as stack:
            each = [stack.enter_context(_Engines(self._names, command, processes)) for command in engines]
            self._judges = [each[0].values, ours, *(engine.values for engine in each[1:] or each)]
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
        """The value of an equal game for our search and for the last engine."""
        return {"agent": round(self._equal[1], 4), "engine": round(self._equal[-1], 4)}

    def find(self, count: int, progress: Callable[[int, int], None] = lambda found, tried: None) -> Iterator[Opening]:
        """Yield openings, each once; ``progress`` is called with the numbers of those that were found and tried."""
        num_found = num_tried = 0
        known: set[_Beginning] = set()
        while num_found < count:
            waiting: list[_Beginning] = []
            while len(waiting) < _BATCH:
                drawn = self._draw_batch()
                num_tried += len(drawn)
                waiting += [beginning for beginning in self._equal_by(0, drawn) if beginning not in known]
                known.update(waiting)
                progress(num_found, num_tried)
            ours = self._equal_by(1, waiting[:_BATCH])
            theirs = ours
            for judge in range(2, len(self._judges)):
                theirs = self._equal_by(judge, list(theirs))
            for beginning, value in list(theirs.items())[: count - num_found]:
                num_found += 1
                yield Opening(beginning, {"agent": round(ours[beginning], 4), "engine": round(value, 4)})
                progress(num_found, num_tried)

    def _equal_by(self, judge: int, beginnings: Iterable[_Beginning]) -> dict[_Beginning, float]:
        """Map the beginnings that a judge finds equal to their values for the player to move."""
        rows = list(dict.fromkeys(beginnings))
        values = zip(rows, self._judges[judge](rows), strict=True)
        return {row: value for row, value in values if abs(value - self._equal[judge]) <= self._tolerance}

    def _draw_batch(self) -> list[_Beginning]:
        return [_draw(self._names, self._random) for _ in range(_BATCH)]


class _Engines:
    """Processes of an engine that value beginnings of games."""

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

    def values(self, beginnings: Sequence[_Beginning]) -> list[float]:
        """Values for the player to move."""
        return list(self._threads.map(self._value, beginnings))

    def _value(self, moves: _Beginning) -> float:
        engine = self._free.get()
        try:
            engine.send("clear_board", _SECONDS_TO_SEARCH)
            position: Any = self._names.start()
            for action in moves:
                color = self._names.colors[position.current_color][0]
                engine.send(f"play {color} {self._names.move_text(action)}", _SECONDS_TO_SEARCH)
                position = position.after(action)
            return pentobi_value(engine, self._names.colors[position.current_color][0])
        except (EngineError, CommandError) as error:
            raise ValueError(f"{self._command!r} does not work: {error}") from None
        finally:
            self._free.put(engine)


def pentobi_value(engine: GtpEngine, color: str) -> float:
    """What Pentobi's search gives the move that it would play for a colour: the value of the child that was visited most."""
    engine.send(f"reg_genmove {color}", _SECONDS_TO_SEARCH)
    children = [line.split() for line in engine.send("move_values", _SECONDS_TO_SEARCH).splitlines()]
    try:
        return float(max(children, key=lambda words: int(words[0]))[2])
    except (ValueError, IndexError):
        raise CommandError("move_values are not those of Pentobi") from None


def _draw(names: BlokusGame, choice: random.Random) -> _Beginning:
    """First moves of all players in turn, with random pieces of the largest size."""
    moves: list[int] = []
    position = names.start()
    for _ in names.colors:
        large = [action for action in position.legal_actions() if len(cells_of(names.config, action)) == MAX_PIECE_SIZE]
        moves.append(choice.choice(large))
        position = position.after(moves[-1])
    return tuple(moves)


def _our_values(game: Game[Any], text: str, seed: int) -> _Values:
    """Values by a search of ours, on the scale of two players: half of what is won on average is a half."""
    ours = make_agent(text, game)
    ours.built()  # for errors

    @jax.jit
    def values(ours: Agent, actions: jax.Array, keys: jax.Array) -> jax.Array:
        def value(actions: jax.Array, key: jax.Array) -> jax.Array:
            state = game.init(key)
            for action in actions:
                state = game.apply(state, action)
            output = ours.search(state, key)
            best: jax.Array = output.value[game.current_player(state)]
            return best

        return jax.vmap(value)(actions, keys)

    def of_beginnings(beginnings: Sequence[_Beginning]) -> list[float]:
        if not beginnings:
            return []
        actions = np.resize(np.array(beginnings, np.int32), (_BATCH, len(beginnings[0])))  # one compiled shape
        keys = jax.random.split(jax.random.key(seed), _BATCH)
        result: list[float] = (np.asarray(values(ours, actions, keys)) * game.num_players / 2).tolist()
        return result[: len(beginnings)]

    return of_beginnings
