"""Analysis of positions for other programs, in JSON lines: one request per line, one answer per position.

The conventions follow KataGo's analysis engine, https://github.com/lightvector/KataGo/blob/master/docs/Analysis_Engine.md,
for all games of this project. KataGo's field names are accepted for fields with the same meaning; its other fields and unknown
fields are errors. The search is an argument, an ``Analyzer``; this module does not need JAX.
"""

import contextlib
import io
import json
import math
import queue
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO, Protocol

from tilewe_jax.host import HostPosition
from tilewe_jax.interop.analysis_requests import Defaults, GameSpec, Played, Request, RequestError, is_id, renamed
from tilewe_jax.utils.files import parse_json

LINE_LIMIT = 1 << 20
"""Maximum size of a request, in bytes."""
MAX_WAITING = 4096
"""Maximum number of lines that are read during a search; further lines wait in the pipe."""
SECONDS_BETWEEN_LINES = 0.01
"""Time to wait for another line before a search starts, so that positions are searched together."""
_ACTIONS = {
    "query_version": (),
    "query_models": (),
    "clear_cache": (),
    "terminate": ("terminate_id", "turns"),
    "terminate_all": ("turns",),
}
"""Requests about the engine itself, with their fields besides ``id`` and ``action``."""


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
    """Action id."""
    visits: int
    """Number of simulations through the action."""
    prior: float
    """Prior probability."""
    value: tuple[float, ...] | None
    """Mean value over its visits, by seat; ``None`` without visits."""
    variation: tuple[int, ...]
    """Principal variation: the action and the most visited actions after it."""
    error: float | None = None
    """Standard error of the values, if it is known: in an opening book."""


@dataclass(frozen=True)
class Analysis:
    """The result of the search of a position."""

    action: int
    """The action that the agent would play; -1 if the game is over."""
    candidates: tuple[Candidate, ...]
    """Candidates in descending order of visits; among equal visits, ``action`` comes first."""
    value: tuple[float, ...]
    """Mean value of the position over all simulations, by seat."""
    score_lead: tuple[float, ...] | None
    """Expected final margin of each seat over the best other seat; ``None`` if it was not requested."""
    score_weight: float
    """Weight of the score utility in the values, against win or loss."""
    num_simulations: int
    """Number of simulations."""
    seconds: float
    """Time of the search in seconds, for all positions that were searched together."""
    batch: int
    """Number of positions that were searched together."""
    is_book: bool = False
    """True if the values come from an opening book, and the position was not searched."""


@dataclass(frozen=True)
class Solved:
    """The proven result of a position under best play by both sides."""

    action: int
    """A best action; -1 if the game is over."""
    returns: tuple[float, ...]
    """The outcome by seat."""
    margin: int
    """Final points of seat 0 minus the points of seat 1; in games without points, 1 if seat 0 wins and -1 if seat 1 wins."""


class Analyzer(Protocol):
    """The search behind an analysis engine."""

    batch: int
    """Maximum number of positions that are searched together."""

    @property
    def models(self) -> Sequence[Mapping[str, Any]]:
        """The agents and their networks, as JSON objects."""

    def prepare(self, game: GameSpec, settings: Mapping[str, Any]) -> Hashable:
        """Return the search of a game with changed agent settings; equal searches can be run together.

        The setting ``max_visits`` limits the simulations of all trees together. Raises ``ValueError`` for invalid settings.
        """
        ...

    def analyze(self, search: Any, positions: Sequence[Played]) -> list[Analysis]:
        """Analyse at most ``batch`` positions. Raises ``ValueError`` or ``MemoryError`` if that fails."""
        ...

    def solve(self, search: Any, request: "Request", max_nodes: int) -> Mapping[int, Solved]:
        """Prove the results of the last positions of a game, by the number of moves before them.

        It starts at the last position and ends at the first one, going back, that needs more than ``max_nodes`` positions.
        """
        ...


def answer_of(request: Request, turn: int, analysis: Analysis, solved: Solved | None = None) -> dict[str, Any]:
    """Return the answer for one turn of a request, as a JSON object."""
    position = request.positions[turn]
    is_over = position.is_terminal
    with_facts = request.with_facts and request.coach is not None and not is_over
    answer: dict[str, Any] = {
        "id": request.id,
        "turn": turn,
        "current_player": position.current_player,
        "is_terminal": is_over,
        "scores": list(position.scores()),
        "value": _json_numbers(analysis.value),
        "score_lead": None if analysis.score_lead is None else _json_numbers(analysis.score_lead, 2),
        "move": None if is_over else position.action_name(analysis.action),
        "action": None if is_over else analysis.action,
        "candidates": [
            {
                "move": position.action_name(candidate.action),
                "action": candidate.action,
                "visits": candidate.visits,
                "prior": json_number(candidate.prior),
                "value": None if candidate.value is None else _json_numbers(candidate.value),
                "principal_variation": names_of(position, candidate.variation),
                "value_error": None if candidate.error is None else json_number(candidate.error),
                **({"facts": request.coach.facts(position, candidate.action)} if with_facts and request.coach else {}),
            }
            for candidate in [each for each in analysis.candidates if each.visits][: request.max_candidates]
        ],
        "num_simulations": analysis.num_simulations,
        "score_weight": json_number(analysis.score_weight),
        "seconds": json_number(analysis.seconds, 3),
        "batch": analysis.batch,
        "is_book": analysis.is_book,
    }
    if with_facts and turn < len(request.actions):
        played = request.actions[turn]
        answer["played"] = {"move": position.action_name(played), "action": played, **explained(request, turn, analysis.action)}
    if request.solve_nodes:
        answer["solution"] = solved and {
            "move": None if is_over else position.action_name(solved.action),
            "action": None if is_over else solved.action,
            "returns": list(solved.returns),
            "margin": solved.margin,
        }
    return answer


MIN_REASON = 1.0
"""Smallest weight of a difference that explains a mistake."""


def explained(request: Request, turn: int, better: int) -> dict[str, Any]:
    """Return the ``facts`` of the move that was played, and the ``reason`` why a better move is better.

    The reason is the fact with the largest weight in which the moves differ, as a sentence; ``None`` if no fact differs
    enough.
    """
    position, coach, action = request.positions[turn], request.coach, request.actions[turn]
    if coach is None:
        return {"facts": None, "reason": None}
    facts = coach.facts(position, action)
    weight, reason = max(coach.reasons(facts, coach.facts(position, better)), key=lambda item: item[0])
    return {"facts": facts, "reason": reason if weight >= MIN_REASON else None}


def names_of(position: HostPosition, actions: Sequence[int]) -> list[str]:
    """Return the names of consecutive actions."""
    names = []
    for number, action in enumerate(actions, 1):
        names.append(position.action_name(action))
        if number < len(actions):
            position = position.after(action)
    return names


def json_number(value: float, digits: int = 6) -> float | None:
    """Round a number for JSON; ``None`` for infinities and NaN."""
    return round(float(value), digits) if math.isfinite(value) else None


def _json_numbers(values: Sequence[float], digits: int = 6) -> list[float | None]:
    return [json_number(value, digits) for value in values]


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A position that waits for its search."""

    request: Request
    turn: int
    search: Hashable
    solved: Callable[[], Mapping[int, Solved]]
    """Returns the proven results of the request, which are computed once."""


class AnalysisSession:
    """An analysis engine: a queue of positions, and the answers to requests.

    Args:
        defaults: the default game of requests.
        analyzer: the search.
        version: the answer to ``query_version``.
    """

    def __init__(self, defaults: Defaults, analyzer: Analyzer, version: str = "") -> None:
        self._defaults, self._analyzer, self._version = defaults, analyzer, version
        self._waiting: list[_Waiting] = []

    @property
    def is_waiting(self) -> bool:
        """True if positions wait for their search."""
        return bool(self._waiting)

    def receive(self, line: str | bytes) -> list[dict[str, Any]]:
        """Queue the positions of a request for ``work``, and return immediate answers. Never raises an exception."""
        if not line.strip():
            return []
        request_id = None
        try:
            try:
                values = parse_json(line)
            except ValueError:
                values = None
            if not isinstance(values, dict):
                raise RequestError("a request must be a JSON object on one line")
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
        except Exception as error:  # one request must not end the engine
            return [_error(request_id, error)]
        nodes = request.solve_nodes
        solved = cache(lambda: self._analyzer.solve(search, request, nodes) if nodes else {})
        self._waiting += [_Waiting(request, turn, search, solved) for turn in request.turns]
        return []

    def work(self) -> list[dict[str, Any]]:
        """Search the position at the head of the queue with others that have the same search, and return their answers."""
        if not self._waiting:
            return []
        search = self._waiting[0].search
        chosen = [item for item in self._waiting if item.search == search][: self._analyzer.batch]
        self._remove(chosen)
        try:
            positions = [item.request.played(item.turn) for item in chosen]
            # The blocks of a request have one size, so that the last one compiles nothing.
            size = min(self._analyzer.batch, max(block_size(len(item.request.turns)) for item in chosen))
            analyses = self._analyzer.analyze(search, positions + positions[-1:] * (size - len(positions)))
            return [
                answer_of(item.request, item.turn, analysis, item.solved().get(item.turn))
                for item, analysis in zip(chosen, analyses, strict=False)
            ]
        except Exception as error:  # one search must not end the engine
            return [{**_error(item.request.id, error), "turn": item.turn} for item in chosen]

    def _remove(self, items: Sequence[_Waiting]) -> None:
        removed = set(items)
        self._waiting = [item for item in self._waiting if item not in removed]

    def _control(self, request_id: Any, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Answer a request about the engine itself. Raises ``RequestError``."""
        action = values["action"]
        if not isinstance(action, str) or action not in _ACTIONS:
            raise RequestError(f"action must be {', '.join(_ACTIONS)}, or absent; got {json.dumps(action)[:80]}", "action")
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
        return [answer]  # results are not cached, so clear_cache does nothing

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
        self._remove(ended)
        return ended


def _error(request_id: Any, error: Exception, field: str | None = None) -> dict[str, Any]:
    text = " ".join(str(error).split())
    message = text if isinstance(error, (ValueError, MemoryError)) else f"{type(error).__name__}: {text}"
    return {"id": request_id, "error": message[:5000] or type(error).__name__, "field": field}


def serve(session: AnalysisSession, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the end of input, including the requests that wait then.

    A thread reads lines during a search, so that the next search covers all positions that arrived meanwhile.
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
                write([_error(None, RequestError(f"a request must have at most {LINE_LIMIT:,} bytes"))])
            else:
                write(session.receive(line))
        write(session.work())


def serve_standard_streams(session: AnalysisSession) -> None:
    """Answer the requests on standard input on standard output."""
    # The interpreter closes sys.stdin.buffer when it ends, and would deadlock with a thread that still reads from it.
    requests = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    serve(session, requests, sys.stdout.buffer)


def _read(requests: BinaryIO, put: Callable[[bytes | None], None]) -> None:
    """Pass on lines as they arrive, and ``None`` at the end; lines over the limit are cut to one byte more than the limit."""
    with contextlib.suppress(OSError, ValueError):  # the input is closed
        while line := requests.readline(LINE_LIMIT + 1):
            put(line)
            while line and len(line) > LINE_LIMIT and not line.endswith(b"\n"):
                line = requests.readline(LINE_LIMIT + 1)
    put(None)


def _available(lines: "queue.Queue[bytes | None]", wait: bool) -> Iterator[bytes | None]:
    """Yield the lines that were read or arrive in quick succession; at least one line with ``wait``."""
    with contextlib.suppress(queue.Empty):
        for number in range(MAX_WAITING):
            yield lines.get(timeout=None if wait and not number else SECONDS_BETWEEN_LINES)
