"""Balanced openings: lists of first moves that two programs value alike, and their search.

Equal players win most of their games from the seat that moves first, so games from the start hardly tell players apart. From an
opening that is worth about as much for both sides they do, and all pairs of games differ.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.networks import weights
from search import AgentSpec, build_search
from search.exported import as_tree
from tilewe_jax.files import replacing
from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.notation import cells_of
from tilewe_jax.games.polyomino.pieces import MAX_PIECE_SIZE
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.blokus import BlokusGame, blokus_game
from tilewe_jax.interop.gtp_client import CommandError, EngineError, GtpEngine

FORMAT = "tilewe-jax-openings/1"
FOLDER = Path(__file__).parents[1] / "openings"
"""The lists that are part of the package, one a game, for its default options."""
_BATCH = 64
_SECONDS_TO_SEARCH = 3600.0

_Beginning = tuple[int, ...]
"""The first actions of a game."""


@dataclass(frozen=True)
class Opening:
    """First actions of a game, and what they are worth."""

    actions: tuple[int, ...]
    values: dict[str, float]
    """Value for the player to move after them, between 0 and 1, by who said it."""


def find(game: Game[Any]) -> Path | None:
    """The list that comes with the package; ``None`` where there is none for this game with these options."""
    path = FOLDER / f"{game.id}.json"
    return path if path.exists() and _differences(game, json.loads(path.read_text(encoding="utf-8"))) == "" else None


def read(game: Game[Any], path: Path) -> list[Opening]:
    """The openings of a file. Raises ``ValueError`` where it is none for this game, and ``OSError``."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"it is no file of openings ({FORMAT})")
        if problem := _differences(game, content):
            raise ValueError(problem)
        openings = [Opening(tuple(map(int, row["actions"])), dict(row.get("values", {}))) for row in content["openings"]]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
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


def find_balanced(
    game: Game[Any],
    engines: Sequence[str],
    agent: str,
    count: int,
    tolerance: float,
    seed: int,
    processes: int = 1,
    progress: Callable[[int, int], None] = lambda found, tried: None,
) -> Iterator[Opening]:
    """Find openings that a search of ours and Pentobi both value at about a half.

    Each player places a random piece of five cells, in turn. Of these beginnings those are kept whose value for the player to
    move is within ``tolerance`` of that of an equal game by every engine and by our search.

    Args:
        game: a polyomino game that Pentobi has.
        engines: command lines of Pentobi's GTP engine, which say the game and the level. The first one, of a low level, looks
            at all beginnings, our search at those that it finds equal, and the others at what is left; the value of the last
            one is kept.
        agent: a search of ours with its settings.
        count: number of openings.
        tolerance: greatest difference of a value from an equal one, where values are between 0 and 1.
        seed: seed of the random moves and of our search.
        processes: number of engines that search at a time.
        progress: called with the numbers of openings that were found and tried.

    Yields:
        The openings, each once.

    Raises ``ValueError`` where the game is none of the family, the agent does not search, or an engine does not work.
    """
    names = blokus_game(make_host_game(game.id, **game.options))
    our_values = _our_values(game, agent)
    moves = random.Random(seed)
    found = tried = 0
    known: set[tuple[int, ...]] = set()
    with ExitStack() as stack:
        judges = [stack.enter_context(_Engines(names, command, processes)) for command in engines]

        def are_equal(beginnings: list[_Beginning], values: Sequence[float]) -> list[_Beginning]:
            return [moves for moves, value in zip(beginnings, values, strict=True) if abs(value - 0.5) <= tolerance]

        while found < count:
            waiting: list[_Beginning] = []
            while len(waiting) < _BATCH:
                drawn = [_draw(names, moves) for _ in range(_BATCH)]
                tried += len(drawn)
                waiting += [moves for moves in are_equal(drawn, judges[0].values(drawn)) if moves not in known]
                known.update(waiting)
                progress(found, tried)
            # The value of an equal game is 1 / players; on the scale of two players it is 0.5.
            ours = dict(zip(waiting[:_BATCH], our_values(waiting[:_BATCH], tried) * game.num_players / 2, strict=True))
            left = are_equal(list(ours), list(ours.values()))
            for judge in judges[1:] or judges:
                theirs = dict(zip(left, judge.values(left), strict=True))
                left = are_equal(left, list(theirs.values()))
            for beginning in left[: count - found]:
                found += 1
                yield Opening(beginning, {"agent": round(float(ours[beginning]), 4), "engine": round(theirs[beginning], 4)})
                progress(found, tried)


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
                color = self._names.colors[position.current_player][0]
                engine.send(f"play {color} {self._names.move_text(action)}", _SECONDS_TO_SEARCH)
                position = position.after(action)
            return pentobi_value(engine, self._names.colors[position.current_player][0])
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


def _our_values(game: Game[Any], text: str) -> Callable[[Sequence[Sequence[int]], int], np.ndarray]:
    """A function of openings and a seed that gives the value of each for the player to move."""
    spec = AgentSpec.parse(text)
    network = as_tree(weights.load(game, spec.evaluator.network)) if spec.evaluator.network else None

    @jax.jit
    def values(network: Any, actions: jax.Array, keys: jax.Array) -> jax.Array:
        def value(actions: jax.Array, key: jax.Array) -> jax.Array:
            state = game.init(key)
            for action in actions:
                state = game.apply(state, action)
            output: Any = build_search(spec, game, network)(state, key)
            best: jax.Array = output.value[game.current_player(state)]
            return best

        return jax.vmap(value)(actions, keys)

    def of_openings(openings: Sequence[Sequence[int]], seed: int) -> np.ndarray:
        keys = jax.random.split(jax.random.key(seed), len(openings))
        return np.asarray(values(network, jnp.asarray(openings, jnp.int32), keys))

    return of_openings
