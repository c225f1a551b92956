"""Analysis of positions for other programs, in JSON lines: one request a line, one answer a line for each position.

The conventions are those of KataGo's analysis engine, https://github.com/lightvector/KataGo/blob/master/docs/Analysis_Engine.md,
with the words of this project and for all its games. The search is a value, an ``Analyzer``; nothing here needs JAX.
"""

import contextlib
import io
import json
import math
import queue
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from tilewe_jax.files import parse_json
from tilewe_jax.games.polyomino.config import VARIANTS
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.blokus import blokus_game

LINE_LIMIT = 1 << 20
"""Maximum size of a request, in bytes."""
MAX_WAITING = 4096
"""Number of lines that are read while others are worked on; further ones wait in the pipe."""
SECONDS_BETWEEN_LINES = 0.01
"""Lines that follow within this time are waited for before positions are searched."""
MAX_GAMES = 64
"""Number of games with their options that are kept for the next request."""
_FIELDS = ("id", "game", "options", "deal", "moves", "agent", "seed", "analyze_turns", "max_candidates")
_NOTATION = "a name as records are shown with, or an action id"


class RequestError(ValueError):
    """A request that cannot be answered; the message is the answer, and ``field`` the field that is wrong, where it is one."""

    def __init__(self, message: str, field: str | None = None, request_id: Any = None) -> None:
        super().__init__(" ".join(message.split()))
        self.field = field
        self.request_id = request_id


def block_size(num_positions: int) -> int:
    """Return the batch size of the compiled search for this number of positions: 1, 4, 16, ..."""
    size = 1
    while size < num_positions:
        size *= 4
    return size


@dataclass(frozen=True)
class Candidate:
    """An action that a search considered at the root."""

    action: int
    """The action id."""
    visits: int
    """Simulations that went through it."""
    prior: float
    """Its probability before the search."""
    value: tuple[float, ...] | None
    """Mean value over its visits, by seat; ``None`` without visits."""
    variation: tuple[int, ...]
    """The action and the most visited actions after it."""


@dataclass(frozen=True)
class Analysis:
    """What a search says of a position."""

    action: int
    """The action that the agent would play; -1 where the game is over."""
    candidates: tuple[Candidate, ...]
    """The candidates by falling visits; among those of equally many, the action comes first."""
    value: tuple[float, ...]
    """Mean value of the position over all simulations, by seat."""
    score_lead: tuple[float, ...] | None
    """Expected final margin of each seat over the best other one; ``None`` where it was not asked for."""
    score_weight: float
    """Weight of the score utility in the values, against win or loss."""
    num_simulations: int
    """Simulations run."""
    seconds: float
    """Seconds that the search took, of all positions that were searched together."""
    batch: int
    """Number of these positions."""


@dataclass(frozen=True)
class GameSpec:
    """A game by name."""

    host: HostGame
    """The game in plain Python."""
    options: Mapping[str, Any]
    """Its options, as ``make`` takes them."""


@dataclass(frozen=True)
class Played:
    """A position to be searched, by what led to it."""

    deal: Any
    """What chance decided at the start, see ``Game.deal``."""
    actions: tuple[int, ...]
    """The legal actions since."""
    seed: int = 0
    """Seed of the random numbers of this search, besides that of the analyzer; with 0 they are those of the analyzer."""


class Analyzer(Protocol):
    """What searches for an analysis."""

    batch: int
    """Number of positions that are searched together, at most."""

    def prepare(self, game: GameSpec, settings: Mapping[str, Any]) -> Hashable:
        """The search of a game with some settings of its agent changed; equal ones can be searched together.

        Raises ``ValueError`` where there is none.
        """
        ...

    def analyze(self, search: Any, positions: Sequence[Played]) -> list[Analysis]:
        """The analyses of at most ``batch`` positions. Raises ``ValueError`` or ``MemoryError`` where that cannot be done."""
        ...


@dataclass(frozen=True)
class Request:
    """A request to analyse positions of a game."""

    id: str | int
    """What the sender calls it."""
    game: GameSpec
    deal: Any
    actions: tuple[int, ...]
    """Actions of the game, all legal."""
    positions: tuple[HostPosition, ...]
    """The positions before and after each of them."""
    turns: tuple[int, ...]
    """The positions to analyse, by the number of actions before them."""
    settings: Mapping[str, Any]
    """Settings of the agent that are to be changed; ``agent`` names another one."""
    max_candidates: int | None
    """At most this many candidates are named; ``None`` names all that were visited."""
    unknown: tuple[str, ...]
    """Fields that mean nothing here."""
    seed: int = 0
    """See ``Played``."""

    def played(self, turn: int) -> Played:
        """The position of a turn, to be searched."""
        return Played(self.deal, self.actions[:turn], self.seed)


@dataclass
class Defaults:
    """What a request that does not name its game is about."""

    game: str
    options: Mapping[str, Any] = field(default_factory=dict)
    _games: dict[str, HostGame] = field(default_factory=dict)

    def read(self, values: Mapping[str, Any]) -> Request:
        """The request of a JSON object. Raises ``RequestError``."""
        request_id = values.get("id")
        try:
            return self._read(request_id, values)
        except RequestError as error:
            error.request_id = request_id if is_id(request_id) else None
            raise

    def _read(self, request_id: Any, values: Mapping[str, Any]) -> Request:
        if not is_id(request_id):
            raise RequestError("id must be a text or an integer, which the answers repeat", "id")
        game = self._game(values)
        actions, positions = read_moves(game.host, values.get("deal"), values.get("moves", []))
        turns = values.get("analyze_turns", [len(actions)])
        if not isinstance(turns, list) or not all(type(turn) is int and 0 <= turn <= len(actions) for turn in turns):
            raise RequestError(f"analyze_turns must be a list of numbers from 0 to {len(actions)}, the moves", "analyze_turns")
        settings = values.get("agent", {})
        if isinstance(settings, str):
            settings = {"agent": settings}
        if not isinstance(settings, dict):
            raise RequestError(
                'agent must be a text, like "level:2", or an object of settings, like {"num_simulations": 200}', "agent"
            )
        seed = values.get("seed", 0)
        if type(seed) is not int or not 0 <= seed < 1 << 31:
            raise RequestError("seed must be an integer from 0 to 2,147,483,647", "seed")
        max_candidates = values.get("max_candidates")
        if max_candidates is not None and (type(max_candidates) is not int or max_candidates < 1):
            raise RequestError("max_candidates must be a positive integer", "max_candidates")
        return Request(
            id=request_id,
            game=game,
            deal=values.get("deal"),
            actions=actions,
            positions=positions,
            turns=tuple(dict.fromkeys(turns)),
            settings=settings,
            max_candidates=max_candidates,
            unknown=tuple(name for name in values if name not in _FIELDS),
            seed=seed,
        )

    def _game(self, values: Mapping[str, Any]) -> GameSpec:
        name, is_default = values.get("game", self.game), "game" not in values
        if not isinstance(name, str):
            raise RequestError(f"game must be the id of a game, like {self.game!r}", "game")
        options = values.get("options", self.options if is_default else {})
        if not isinstance(options, dict):
            raise RequestError('options must be an object, like {"size": 10}', "options")
        key = json.dumps([name, options], sort_keys=True)
        if key not in self._games:
            try:
                host = make_host_game(name, **options)
            except (TypeError, ValueError) as error:
                raise RequestError(str(error), "game") from None
            while len(self._games) >= MAX_GAMES:
                del self._games[next(iter(self._games))]
            self._games[key] = host
        return GameSpec(self._games[key], options)


def is_id(value: Any) -> bool:
    """Whether a value may be the id of a request."""
    return type(value) is int or (isinstance(value, str) and len(value) <= 1000)


def read_moves(host: HostGame, deal: Any, moves: Any) -> tuple[tuple[int, ...], tuple[HostPosition, ...]]:
    """The actions of moves from the start of a game, and the positions before and after each. Raises ``RequestError``."""
    if not isinstance(moves, list):
        raise RequestError(f"moves must be a list; a move is {_NOTATION}", "moves")
    if len(moves) > host.max_steps:
        raise RequestError(f"a game has at most {host.max_steps} moves, not {len(moves)}", "moves")
    try:
        positions = [host.init_from_deal(deal)]
    except ValueError as error:
        raise RequestError(str(error), "deal") from None
    actions: list[int] = []
    for number, move in enumerate(moves, 1):
        try:
            actions.append(action_of_move(host, positions[-1], move))
            positions.append(positions[-1].after(actions[-1]))
        except ValueError as error:
            raise RequestError(f"move {number}: {error}", "moves") from None
    return tuple(actions), tuple(positions)


def action_of_move(host: HostGame, position: HostPosition, move: Any) -> int:
    """The action of a move, which is a name, an action id, or in polyomino games a list of cells, ``"e8,e9,f9"``.

    Raises ``ValueError`` for what is no move, or an illegal one.
    """
    if type(move) is int:
        return move
    if not isinstance(move, str):
        raise ValueError(f"a move is {_NOTATION}, not {json.dumps(move)[:80]}")
    if position.is_terminal:
        raise ValueError(f"{move[:80]!r} comes after the end of the game")
    if host.id in VARIANTS and "-" not in move:
        return blokus_game(host).action(move)
    try:
        return position.action_of_name(move)
    except ValueError as error:
        raise ValueError(str(error).replace(move, f"{move[:80]} ...") if len(move) > 80 else str(error)) from None


def answer_of(request: Request, turn: int, analysis: Analysis) -> dict[str, Any]:
    """The answer to a request for one of its turns, as a JSON object."""
    position = request.positions[turn]
    listed = [candidate for candidate in analysis.candidates if candidate.visits][: request.max_candidates]
    is_over = position.is_terminal
    return {
        "id": request.id,
        "turn": turn,
        "current_player": position.current_player,
        "is_terminal": is_over,
        "scores": list(position.scores()),
        "value": _numbers(analysis.value),
        "score_lead": None if analysis.score_lead is None else _numbers(analysis.score_lead, 2),
        "move": None if is_over else position.action_name(analysis.action),
        "action": None if is_over else analysis.action,
        "candidates": [
            {
                "move": position.action_name(candidate.action),
                "action": candidate.action,
                "visits": candidate.visits,
                "prior": json_number(candidate.prior),
                "value": None if candidate.value is None else _numbers(candidate.value),
                "principal_variation": names_of(position, candidate.variation),
            }
            for candidate in listed
        ],
        "num_simulations": analysis.num_simulations,
        "score_weight": json_number(analysis.score_weight),
        "seconds": json_number(analysis.seconds, 3),
        "batch": analysis.batch,
    }


def names_of(position: HostPosition, actions: Sequence[int]) -> list[str]:
    """The names of actions that are played one after the other."""
    names = []
    for number, action in enumerate(actions, 1):
        names.append(position.action_name(action))
        if number < len(actions):
            position = position.after(action)
    return names


def json_number(value: float, digits: int = 6) -> float | None:
    """A number for JSON, which has none that are not finite."""
    return round(float(value), digits) if math.isfinite(value) else None


def _numbers(values: Sequence[float], digits: int = 6) -> list[float | None]:
    return [json_number(value, digits) for value in values]


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A position that waits for its search."""

    request: Request
    turn: int
    search: Hashable


class AnalysisSession:
    """An analysis engine: the positions that wait, and the answers to lines.

    Args:
        defaults: the game of requests that do not name one.
        analyzer: what searches.
        version: the version in the answer to ``query_version``.
    """

    def __init__(self, defaults: Defaults, analyzer: Analyzer, version: str = "") -> None:
        self._defaults, self._analyzer, self._version = defaults, analyzer, version
        self._waiting: list[_Waiting] = []

    @property
    def is_waiting(self) -> bool:
        """Whether positions wait for their search."""
        return bool(self._waiting)

    def receive(self, line: str | bytes) -> list[dict[str, Any]]:
        """The answers that a line gets at once; its positions wait for ``work``. No line raises an exception."""
        if not line.strip():
            return []
        request_id = None
        try:
            try:
                values = parse_json(line)
            except ValueError:
                values = None
            if not isinstance(values, dict):
                raise RequestError("this is not a JSON object in one line")
            request_id = values["id"] if is_id(values.get("id")) else None
            if "action" in values:
                return [self._control(request_id, values)]
            request = self._defaults.read(values)
            try:
                search = self._analyzer.prepare(request.game, request.settings)
            except (MemoryError, ValueError) as error:
                raise RequestError(str(error), "agent") from None
        except RequestError as error:
            return [_error(request_id, error, error.field)]
        except Exception as error:  # an engine must not die of one request
            return [_error(request_id, error)]
        self._waiting += [_Waiting(request, turn, search) for turn in request.turns]
        return [{"id": request_id, "warning": f"there is no field {name[:80]!r}", "field": name} for name in request.unknown]

    def work(self) -> list[dict[str, Any]]:
        """Search the positions that have waited longest and can be searched together; their answers."""
        if not self._waiting:
            return []
        search = self._waiting[0].search
        chosen = [item for item in self._waiting if item.search == search][: self._analyzer.batch]
        self._waiting = [item for item in self._waiting if item not in set(chosen)]
        try:
            analyses = self._analyzer.analyze(search, [item.request.played(item.turn) for item in chosen])
            return [answer_of(item.request, item.turn, analysis) for item, analysis in zip(chosen, analyses, strict=True)]
        except Exception as error:  # the same
            return [{**_error(item.request.id, error), "turn": item.turn} for item in chosen]

    def _control(self, request_id: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request that is about the engine itself."""
        action = values["action"]
        if action == "query_version":
            return {"id": request_id, "action": action, "version": self._version}
        if action == "terminate":
            if not is_id(values.get("terminate_id")):
                raise RequestError("terminate_id must be the id of a request", "terminate_id")
            kept = [item for item in self._waiting if item.request.id != values["terminate_id"]]
            count, self._waiting = len(self._waiting) - len(kept), kept
            return {"id": request_id, "action": action, "terminate_id": values["terminate_id"], "terminated": count}
        raise RequestError("action must be query_version or terminate; a request for an analysis has none", "action")


def _error(request_id: Any, error: Exception, field: str | None = None) -> dict[str, Any]:
    text = " ".join(str(error).split())
    message = text if isinstance(error, (ValueError, MemoryError)) else f"{type(error).__name__}: {text}"
    return {"id": request_id, "error": message[:5000] or type(error).__name__, "field": field}


def serve(session: AnalysisSession, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the end of input, and then those that wait.

    Lines are read by a thread while positions are searched, so that all that wait can be searched together.
    """
    lines: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING)
    threading.Thread(target=_read, args=(requests, lines.put), daemon=True).start()

    def write(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            answers.write(json.dumps(row, allow_nan=False).encode() + b"\n")
        answers.flush()

    is_open = True
    while is_open or session.is_waiting:
        for line in _available(lines, wait=not session.is_waiting) if is_open else ():
            if line is None:
                is_open = False
            elif len(line) > LINE_LIMIT:
                write([_error(None, RequestError(f"a request has at most {LINE_LIMIT:,} bytes"))])
            else:
                write(session.receive(line))
        write(session.work())


def serve_standard_streams(session: AnalysisSession) -> None:
    """Answer the requests on standard input on standard output."""
    # Another object than sys.stdin.buffer, which the interpreter closes when it ends, and one that is never closed: a thread
    # may still read from it, and both would wait for its next line.
    requests = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    serve(session, requests, sys.stdout.buffer)


def _read(requests: BinaryIO, put: Callable[[bytes | None], None]) -> None:
    """Hand over lines as they come, and ``None`` at the end; of a line over the limit only so much that this shows."""
    with contextlib.suppress(OSError, ValueError):  # the input is closed
        while line := requests.readline(LINE_LIMIT + 1):
            put(line)
            while line and len(line) > LINE_LIMIT and not line.endswith(b"\n"):
                line = requests.readline(LINE_LIMIT + 1)
    put(None)


def _available(lines: "queue.Queue[bytes | None]", wait: bool) -> Iterator[bytes | None]:
    """The lines that have been read, or follow each other closely; where ``wait``, at least one."""
    with contextlib.suppress(queue.Empty):
        for number in range(MAX_WAITING):
            yield lines.get(timeout=None if wait and not number else SECONDS_BETWEEN_LINES)
