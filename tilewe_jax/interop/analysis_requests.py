"""Requests of the analysis of positions, see ``tilewe_jax.interop.analysis``: their fields, games and moves."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.games.polyomino.config import VARIANTS
from tilewe_jax.games.polyomino.position import PolyominoPosition
from tilewe_jax.host import POSITION, Coach, HostGame, HostPosition
from tilewe_jax.host_games import OFFERS, make_host_game

MAX_GAMES = 64
"""Number of games that are cached for later requests."""
MAX_SOLVE_NODES = 10_000_000
"""Maximum number of positions that are visited to prove the result of one position."""
_FIELDS = (
    *("id", "game", "options", "deal", "moves", "agent", "seed", "analyze_turns", "max_candidates", "max_visits"),
    *("facts", "solve_nodes", "allow_moves", "avoid_moves", "initial_position"),
)
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
