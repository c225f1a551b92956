"""Analysis of positions for other programs, in JSON lines: one request a line, one answer a line for each position.

The conventions are those of KataGo's analysis engine, https://github.com/lightvector/KataGo/blob/master/docs/Analysis_Engine.md,
with the words of this project and for all its games. KataGo's names of fields are accepted for the same things; its other
fields, and unknown ones, are refused. The search is a value, an ``Analyzer``; nothing here needs JAX.
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
from difflib import get_close_matches
from typing import Any, BinaryIO, Protocol

from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.games.polyomino.config import VARIANTS
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.host_games import make_host_game
from tilewe_jax.utils.files import parse_json

LINE_LIMIT = 1 << 20
"""Maximum size of a request, in bytes."""
MAX_WAITING = 4096
"""Number of lines that are read while others are worked on; further ones wait in the pipe."""
SECONDS_BETWEEN_LINES = 0.01
"""Lines that follow within this time are waited for before positions are searched."""
MAX_GAMES = 64
"""Number of games with their options that are kept for the next request."""
_FIELDS = ("id", "game", "options", "deal", "moves", "agent", "seed", "analyze_turns", "max_candidates", "max_visits")
_ACTIONS = {
    "query_version": (),
    "query_models": (),
    "clear_cache": (),
    "terminate": ("terminate_id", "turns"),
    "terminate_all": ("turns",),
}
"""Requests about the engine itself, with their fields besides ``id`` and ``action``."""
_KATAGO = {"analyzeTurns": "analyze_turns", "maxVisits": "max_visits", "terminateId": "terminate_id", "turnNumbers": "turns"}
"""KataGo's names of fields."""
_START = "a game starts from its initial position, and moves lead to all others"
_SIZE = 'the size is an option of the game, like {"options": {"size": 10}}'
_RULES = "the game and its options say the rules"
_SETTING = "settings of the search are fields of agent"
_OWNERSHIP = "the search does not estimate who will own a cell"
_ORDER = "positions are searched in the order in which they arrive"
_REFUSED: dict[str, tuple[Any, str]] = {
    "initialStones": ([], _START),
    "initialPlayer": (None, _START),
    "rules": (None, _RULES),
    "komi": (0, _RULES),
    "whiteHandicapBonus": ("0", _RULES),
    "boardXSize": (None, _SIZE),
    "boardYSize": (None, _SIZE),
    "rootPolicyTemperature": (None, _SETTING),
    "rootFpuReductionMax": (None, _SETTING),
    "overrideSettings": ({}, _SETTING),
    "analysisPVLen": (None, "a principal variation is as long as the tree has it"),
    "includeOwnership": (False, _OWNERSHIP),
    "includeOwnershipStdev": (False, _OWNERSHIP),
    "includeMovesOwnership": (False, _OWNERSHIP),
    "includeMovesOwnershipStdev": (False, _OWNERSHIP),
    "includePolicy": (False, "the priors of candidates are in the answer anyway"),
    "includePVVisits": (False, "visits are counted for candidates only"),
    "includeNoResultValue": (False, "all games have a result"),
    "allowMoves": ([], "a search cannot be limited to some moves"),
    "avoidMoves": ([], "a search cannot be limited to some moves"),
    "reportDuringSearchEvery": (None, "a position has one answer, at the end of its search"),
    "priority": (0, _ORDER),
    "priorities": (None, _ORDER),
}
"""KataGo's fields that are refused: the value that asks for nothing and is accepted, or ``None``; and why."""
_NOTATION = "a name as records are shown with, or an action id"
_PAIR = 'a pair of its color and this, like ["b", "e8,e9,f9"]'


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

    @property
    def models(self) -> Sequence[Mapping[str, Any]]:
        """The agents with their networks, as JSON objects."""

    def prepare(self, game: GameSpec, settings: Mapping[str, Any]) -> Hashable:
        """The search of a game with some settings of its agent changed; equal ones can be searched together.

        The setting ``max_visits`` limits the simulations in all trees together.

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
            return self._read(request_id, renamed(values, _FIELDS))
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
        numbers = {name: values.get(name) for name in ("max_candidates", "max_visits")}
        for name, value in numbers.items():
            if value is not None and (type(value) is not int or value < 1):
                raise RequestError(f"{name} must be a positive integer", name)
        if numbers["max_visits"] is not None:
            if "num_simulations" in settings:
                raise RequestError("max_visits and num_simulations of agent are the same; give one of them", "max_visits")
            settings = {**settings, "max_visits": numbers["max_visits"]}
        return Request(
            id=request_id,
            game=game,
            deal=values.get("deal"),
            actions=actions,
            positions=positions,
            turns=tuple(dict.fromkeys(turns)),
            settings=settings,
            max_candidates=numbers["max_candidates"],
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


def renamed(values: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The fields of a request with KataGo's names replaced. Raises ``RequestError`` for a field that means nothing here."""
    fields: dict[str, Any] = {}
    for given, value in values.items():
        name = _KATAGO.get(given, given)
        if given in _REFUSED and "action" not in known:
            neutral, reason = _REFUSED[given]
            if neutral is None or type(value) is not type(neutral) or value != neutral:
                raise RequestError(f"{given} is not supported: {reason}", given)
        elif name not in known:
            names = {known_name: known_name for known_name in known} | {
                katago: katago for katago in _KATAGO if _KATAGO[katago] in known
            }
            similar = get_close_matches(given.lower(), {item.lower(): item for item in names}, 1)
            nearest = next((item for item in names if similar and item.lower() == similar[0]), None)
            hint = f"did you mean {nearest!r}?" if nearest else f"the fields are {', '.join(known)}"
            raise RequestError(f"unknown field {given[:80]!r}; {hint}", given[:1000])
        elif name in fields:
            raise RequestError(f"{name} is given twice, as {given} too", given)
        else:
            fields[name] = value
    return fields


def is_id(value: Any) -> bool:
    """Whether a value may be the id of a request."""
    return type(value) is int or (isinstance(value, str) and len(value) <= 1000)


def read_moves(host: HostGame, deal: Any, moves: Any) -> tuple[tuple[int, ...], tuple[HostPosition, ...]]:
    """The actions of moves from the start of a game, and the positions before and after each. Raises ``RequestError``."""
    if not isinstance(moves, list):
        raise RequestError(f"moves must be a list; a move is {_NOTATION}, or {_PAIR}", "moves")
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


def move_of_pair(host: HostGame, position: HostPosition, pair: list[Any]) -> Any:
    """The move of a pair ``[color, move]``, as in KataGo. Raises ``ValueError`` if it is not the turn of that color.

    Polyomino games have the names of their colors in GTP. Players of other games, and players with several colors, are ``b``
    and ``w`` if there are two, and 1, 2, ... by seat.
    """
    if len(pair) != 2 or not isinstance(pair[0], (str, int)) or isinstance(pair[0], bool):
        raise ValueError(f"a move is {_NOTATION}, or {_PAIR}, not {json.dumps(pair)[:80]}")
    given, move = str(pair[0]).lower(), pair[1]
    if position.is_terminal:
        raise ValueError(f"{json.dumps(move)[:80]} comes after the end of the game")
    players: Sequence[Sequence[str]] = [(str(seat + 1),) for seat in range(host.num_players)]
    if host.num_players == 2:
        players = (("b", "black", "1"), ("w", "white", "2"))
    turns = [(players, position.current_player)]
    if host.id in VARIANTS:
        game = blokus_game(host)
        assert isinstance(position, PolyominoPosition)
        turns = [(game.colors, position.current_color), *(turns if game.config.colors_per_player > 1 else ())]
    for names, current in turns:
        if given in names[current]:
            return move
        if any(given in accepted for accepted in names):
            raise ValueError(f"it is the turn of {names[current][0]}, not of {given}")
    raise ValueError(f"invalid color {given[:20]!r}; colors are {' '.join(accepted[0] for accepted in turns[0][0])}")


def action_of_move(host: HostGame, position: HostPosition, move: Any) -> int:
    """The action of a move, which is a name, an action id, or in polyomino games a list of cells, ``"e8,e9,f9"``; or a pair.

    Raises ``ValueError`` for what is no move, or an illegal one.
    """
    if isinstance(move, list):
        move = move_of_pair(host, position, move)
    if type(move) is not int and not isinstance(move, str):
        raise ValueError(f"a move is {_NOTATION}, not {json.dumps(move)[:80]}")
    if position.is_terminal:
        raise ValueError(f"{json.dumps(move)[:80]} comes after the end of the game")
    if not isinstance(move, str):
        return move
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
                return self._control(request_id, values)
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
        return []

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

    def _control(self, request_id: Any, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The answers to a request that is about the engine itself. Raises ``RequestError``."""
        action = values["action"]
        if not isinstance(action, str) or action not in _ACTIONS:
            known = f"action must be {', '.join(_ACTIONS)}; a request for an analysis has none"
            raise RequestError(f"{known}, and this is {json.dumps(action)[:80]}", "action")
        fields = renamed(values, ("id", "action", *_ACTIONS[action]))
        answer: dict[str, Any] = {**fields, "id": request_id}
        if action == "query_version":
            answer["version"] = self._version
        elif action == "query_models":
            answer["models"] = [dict(model) for model in self._analyzer.models]
        elif action.startswith("terminate"):
            ended = self._terminate(fields)
            answer["terminated"] = len(ended)
            return [answer, *({"id": item.request.id, "turn": item.turn, "no_results": True} for item in ended)]
        return [answer]  # results of searches are not kept, so that clear_cache is done

    def _terminate(self, fields: Mapping[str, Any]) -> list[_Waiting]:
        """Remove and return waiting positions, filtered by ``terminate_id`` and ``turns`` if given."""
        turns = fields.get("turns")
        if "turns" in fields and (not isinstance(turns, list) or not all(type(turn) is int for turn in turns)):
            raise RequestError("turns must be a list of integers", "turns")
        if fields["action"] == "terminate" and not is_id(fields.get("terminate_id")):
            raise RequestError("terminate_id must be the id of a request", "terminate_id")
        ended = [
            item
            for item in self._waiting
            if ("terminate_id" not in fields or item.request.id == fields["terminate_id"])
            and (turns is None or item.turn in turns)
        ]
        self._waiting = [item for item in self._waiting if item not in set(ended)]
        return ended


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
