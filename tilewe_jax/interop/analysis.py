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
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any, BinaryIO, Protocol

from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.games.polyomino.config import VARIANTS
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import POSITION, Coach, HostGame, HostPosition
from tilewe_jax.host_games import OFFERS, make_host_game
from tilewe_jax.utils.files import parse_json

LINE_LIMIT = 1 << 20
"""Maximum size of a request, in bytes."""
MAX_WAITING = 4096
"""Maximum number of lines that are read during a search; further lines wait in the pipe."""
SECONDS_BETWEEN_LINES = 0.01
"""Time to wait for another line before a search starts, so that positions are searched together."""
MAX_GAMES = 64
"""Number of games that are cached for later requests."""
MAX_SOLVE_NODES = 10_000_000
"""Maximum number of positions that are visited to prove the result of one position."""
_FIELDS = (
    *("id", "game", "options", "deal", "moves", "agent", "seed", "analyze_turns", "max_candidates", "max_visits"),
    *("facts", "solve_nodes", "allow_moves", "avoid_moves", "initial_position"),
)
_ACTIONS = {
    "query_version": (),
    "query_models": (),
    "clear_cache": (),
    "terminate": ("terminate_id", "turns"),
    "terminate_all": ("turns",),
}
"""Requests about the engine itself, with their fields besides ``id`` and ``action``."""
_KATAGO = {
    "analyzeTurns": "analyze_turns",
    "maxVisits": "max_visits",
    "allowMoves": "allow_moves",
    "avoidMoves": "avoid_moves",
    "initialPosition": "initial_position",
    "terminateId": "terminate_id",
    "turnNumbers": "turns",
}
"""Fields by their names in KataGo, or in its style."""
_UNSUPPORTED: dict[str, dict[str, Any]] = {
    "a game starts from initialPosition": {"initialStones": [], "initialPlayer": None},
    "the rules are game and options": {"rules": None, "komi": 0, "whiteHandicapBonus": "0"},
    'the size is an option of the game, like {"options": {"size": 10}}': {"boardXSize": None, "boardYSize": None},
    "settings of the search are fields of agent": {
        "rootPolicyTemperature": None,
        "rootFpuReductionMax": None,
        "overrideSettings": {},
    },
    "the search does not estimate ownership": {
        "includeOwnership": False,
        "includeOwnershipStdev": False,
        "includeMovesOwnership": False,
        "includeMovesOwnershipStdev": False,
    },
    "the length of a principal variation depends on the tree": {"analysisPVLen": None},
    "the answer always contains the priors of candidates": {"includePolicy": False},
    "visits are reported for candidates only": {"includePVVisits": False},
    "every game has a result": {"includeNoResultValue": False},
    "a position has one answer, at the end of its search": {"reportDuringSearchEvery": None},
    "positions are searched in the order in which they arrive": {"priority": 0, "priorities": None},
}
"""KataGo's unsupported fields by the reason, each with the ineffective value that is accepted, or ``None``."""
_NOTATION = "a move name as in records, or an action id"
_PAIR = 'a pair of a color and a move, like ["b", "e8,e9,f9"]'


class RequestError(ValueError):
    """An invalid request. The message is the answer to the request; ``field`` names the invalid field, if there is one."""

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


@dataclass(frozen=True)
class GameSpec:
    """A game by name."""

    host: HostGame
    """The game in plain Python."""
    options: Mapping[str, Any]
    """Options of the game, as for ``make``."""


@dataclass(frozen=True)
class Played:
    """A position to search, given by its history."""

    deal: Any
    """The deal at the start, see ``Game.deal``."""
    actions: tuple[int, ...]
    """Legal actions from the start."""
    seed: int = 0
    """Seed of this search, combined with the seed of the analyzer; 0 leaves the latter unchanged."""
    allowed: tuple[int, ...] | None = None
    """The legal actions that are searched at the root; ``None`` for all."""


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


@dataclass(frozen=True)
class Request:
    """A request to analyse positions of a game."""

    id: str | int
    """Id chosen by the sender."""
    game: GameSpec
    deal: Any
    actions: tuple[int, ...]
    """Legal actions of the game."""
    positions: tuple[HostPosition, ...]
    """The initial position and the position after each action."""
    turns: tuple[int, ...]
    """Positions to analyse, by the number of actions before them."""
    settings: Mapping[str, Any]
    """Changed settings of the agent; ``agent`` selects another agent."""
    max_candidates: int | None
    """Maximum number of candidates in an answer; ``None`` for all visited candidates."""
    seed: int = 0
    """See ``Played``."""
    with_facts: bool = False
    """True if answers contain the facts of moves."""
    solve_nodes: int | None = None
    """Maximum number of positions visited to prove the result of a position; ``None`` if no result is to be proven."""

    allowed: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The legal actions that are searched, by turn; all actions in other turns."""

    @cached_property
    def coach(self) -> Coach | None:
        """Explains the moves of the game; ``None`` for a game without facts."""
        return OFFERS[self.game.host.id].coach if self.game.host.id in OFFERS else None

    def played(self, turn: int) -> Played:
        """Return the position of a turn."""
        return Played(self.deal, self.actions[:turn], self.seed, self.allowed.get(turn))


@dataclass
class Defaults:
    """The default game of requests, and the parser of requests."""

    game: str
    options: Mapping[str, Any] = field(default_factory=dict)
    _games: dict[str, HostGame] = field(default_factory=dict)

    def read(self, values: Mapping[str, Any]) -> Request:
        """Parse a request. Raises ``RequestError``."""
        request_id = values.get("id")
        try:
            return self._read(request_id, renamed(values, _FIELDS))
        except RequestError as error:
            error.request_id = request_id if is_id(request_id) else None
            raise

    def _read(self, request_id: Any, values: Mapping[str, Any]) -> Request:
        if not is_id(request_id):
            raise RequestError("id must be a string of at most 1000 characters or an integer", "id")
        game = self._game(values)
        deal, source = _deal_of(values)
        actions, positions = read_moves(game.host, deal, values.get("moves", []), source)
        turns = values.get("analyze_turns", [len(actions)])
        if not isinstance(turns, list) or not all(type(turn) is int and 0 <= turn <= len(actions) for turn in turns):
            raise RequestError(f"analyze_turns must be a list of integers from 0 to {len(actions)}", "analyze_turns")
        settings = values.get("agent", {})
        if isinstance(settings, str):
            settings = {"agent": settings}
        if not isinstance(settings, dict):
            raise RequestError(
                'agent must be a string, like "level:2", or an object of settings, like {"num_simulations": 200}', "agent"
            )
        seed = values.get("seed", 0)
        if type(seed) is not int or not 0 <= seed < 1 << 31:
            raise RequestError("seed must be an integer from 0 to 2,147,483,647", "seed")
        numbers = {name: values.get(name) for name in ("max_candidates", "max_visits", "solve_nodes")}
        for name, value in numbers.items():
            if value is not None and (type(value) is not int or value < 1):
                raise RequestError(f"{name} must be a positive integer", name)
        if (numbers["solve_nodes"] or 0) > MAX_SOLVE_NODES:
            raise RequestError(f"solve_nodes must be at most {MAX_SOLVE_NODES:,}", "solve_nodes")
        if not isinstance(values.get("facts", False), bool):
            raise RequestError("facts must be true or false", "facts")
        if numbers["max_visits"] is not None:
            if "num_simulations" in settings:
                raise RequestError("max_visits and num_simulations of agent have the same meaning; give one", "max_visits")
            settings = {**settings, "max_visits": numbers["max_visits"]}
        return Request(
            id=request_id,
            game=game,
            deal=deal,
            actions=actions,
            positions=positions,
            turns=tuple(dict.fromkeys(turns)),
            settings=settings,
            max_candidates=numbers["max_candidates"],
            seed=seed,
            with_facts=values.get("facts", False),
            allowed=_allowed_actions(game.host, positions, turns, values),
            solve_nodes=numbers["solve_nodes"],
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
    """Replace KataGo's field names by the known ones. Raises ``RequestError`` for unsupported, unknown and repeated fields."""
    fields: dict[str, Any] = {}
    unsupported = {name: reason for reason, names in _UNSUPPORTED.items() for name in names}
    for given, value in values.items():
        name = _KATAGO.get(given, given)
        if given in unsupported and "action" not in known:
            reason = unsupported[given]
            neutral = _UNSUPPORTED[reason][given]
            if neutral is None or type(value) is not type(neutral) or value != neutral:
                raise RequestError(f"{given} is not supported: {reason}", given)
        elif name not in known:
            names = {item.lower(): item for item in (*(katago for katago in _KATAGO if _KATAGO[katago] in known), *known)}
            similar = get_close_matches(given.lower(), names, 1)
            hint = f"did you mean {names[similar[0]]!r}?" if similar else f"the fields are {', '.join(known)}"
            raise RequestError(f"unknown field {given[:80]!r}; {hint}", given[:1000])
        elif name in fields:
            raise RequestError(f"{name} is given twice, also as {given}", given)
        else:
            fields[name] = value
    return fields


def is_id(value: Any) -> bool:
    """Return whether a value is a valid id of a request."""
    return type(value) is int or (isinstance(value, str) and len(value) <= 1000)


def _deal_of(values: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the deal of a request, and the field from which it comes. Raises ``RequestError``."""
    if "initial_position" not in values:
        return values.get("deal"), "deal"
    if values.get("deal") is not None:
        raise RequestError("initial_position replaces deal; give one of them", "initial_position")
    return {POSITION: values["initial_position"]}, "initial_position"


def read_moves(host: HostGame, deal: Any, moves: Any, source: str = "deal") -> tuple[tuple[int, ...], tuple[HostPosition, ...]]:
    """Play moves from the start of a game.

    Returns the actions, and the initial position with the position after each action. Raises ``RequestError``.
    """
    if not isinstance(moves, list):
        raise RequestError(f"moves must be a list; each is {_NOTATION}, or {_PAIR}", "moves")
    if len(moves) > host.max_steps:
        raise RequestError(f"a game has at most {host.max_steps} moves, got {len(moves)}", "moves")
    try:
        positions = [host.init_from_deal(deal)]
    except ValueError as error:
        raise RequestError(str(error), source) from None
    actions: list[int] = []
    for number, move in enumerate(moves, 1):
        try:
            actions.append(action_of_move(host, positions[-1], move))
            positions.append(positions[-1].after(actions[-1]))
        except ValueError as error:
            raise RequestError(f"move {number}: {error}", "moves") from None
    return tuple(actions), tuple(positions)


def _allowed_actions(
    host: HostGame, positions: Sequence[HostPosition], turns: Sequence[int], values: Mapping[str, Any]
) -> dict[int, tuple[int, ...]]:
    """Return the legal actions that ``allow_moves`` and ``avoid_moves`` leave, by turn. Raises ``RequestError``."""
    allowed: dict[int, tuple[int, ...]] = {}
    for name in ("allow_moves", "avoid_moves"):
        entries = values.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            example = '[{"player": "b", "moves": ["e8,e9,f9"], "untilDepth": 1}]'
            raise RequestError(f"{name} must be a list of objects, like {example}", name)
        if name == "allow_moves" and len(entries) > 1:
            raise RequestError(f"allow_moves must have at most one entry, got {len(entries)}", name)
        if entries and host.has_hidden_information:
            raise RequestError(f"{name} is not supported in games with hidden information", name)
        for entry in entries:
            given = _entry_actions(host, positions, turns, entry, name)
            for turn, actions in given.items():
                legal = allowed.get(turn) or positions[turn].legal_actions()
                kept = tuple(action for action in legal if (action in actions) == (name == "allow_moves"))
                if not kept:
                    raise RequestError(f"{name} leaves no legal move after {turn} moves", name)
                allowed[turn] = kept
    return allowed


def _entry_actions(
    host: HostGame, positions: Sequence[HostPosition], turns: Sequence[int], entry: Mapping[str, Any], name: str
) -> dict[int, set[int]]:
    """Return the legal actions of an entry of ``allow_moves`` or ``avoid_moves``, by the turns of its player."""
    unknown = [field for field in entry if field not in ("player", "moves", "untilDepth", "until_depth")]
    moves, depth = entry.get("moves"), entry.get("untilDepth", entry.get("until_depth", 1))
    if unknown or not isinstance(entry.get("player"), str) or not isinstance(moves, list) or not moves:
        raise RequestError(f"an entry of {name} must have player, moves and untilDepth, got {json.dumps(entry)[:200]}", name)
    if type(depth) is not int or depth != 1:
        raise RequestError(f"untilDepth must be 1, got {json.dumps(depth)[:20]}: moves are restricted at the root only", name)
    actions: dict[int, set[int]] = {}
    found: set[int] = set()
    errors = [""] * len(moves)
    for turn in turns:
        position = positions[turn]
        if position.is_terminal or not _is_turn_of(host, position, entry["player"], name):
            continue
        actions[turn] = set()
        for index, move in enumerate(moves):
            try:
                action = action_of_move(host, position, move)
                if rule := position.explain(action):
                    raise ValueError(f"{json.dumps(move)[:80]} is illegal: {rule}")
                actions[turn].add(action)
                found.add(index)
            except ValueError as error:
                errors[index] = str(error)
    for index, reason in enumerate(errors):
        if actions and index not in found:
            raise RequestError(f"{name}, move {index + 1}: {reason}", name)
    return actions


def _is_turn_of(host: HostGame, position: HostPosition, player: str, field: str) -> bool:
    """Return whether a player or colour is to move. Raises ``RequestError`` for an unknown player."""
    try:
        move_of_pair(host, position, [player, ""])
    except ValueError as error:
        if str(error).startswith("invalid color"):
            raise RequestError(str(error), field) from None
        return False
    return True


def move_of_pair(host: HostGame, position: HostPosition, pair: list[Any]) -> Any:
    """Return the move of a pair ``[color, move]``, as in KataGo. Raises ``ValueError`` if another color is to move.

    Colors of polyomino games are named as in GTP. Players of other games, and players with several colors, are ``b`` and
    ``w`` if there are two, and 1, 2, ... by seat.
    """
    if len(pair) != 2 or not isinstance(pair[0], (str, int)) or isinstance(pair[0], bool):
        raise ValueError(f"a move must be {_NOTATION}, or {_PAIR}, got {json.dumps(pair)[:80]}")
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
    """Return the action of a move: a name, an action id, a list of cells in polyomino games, ``"e8,e9,f9"``, or a pair.

    Raises ``ValueError`` for an invalid move.
    """
    if isinstance(move, list):
        move = move_of_pair(host, position, move)
    if type(move) is not int and not isinstance(move, str):
        raise ValueError(f"a move must be {_NOTATION}, got {json.dumps(move)[:80]}")
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
