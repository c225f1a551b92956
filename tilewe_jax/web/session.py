"""Authoritative state of a game on the server: seats, turns, clocks, undo, resignation and rounds.

A ``Session`` is immutable and does no input or output. Each change checks its request, raises ``RefusedError`` if it is not
allowed, and returns a new session, so that a change that cannot be saved has no effect.
"""

import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from tilewe_jax.host import HostGame, HostPosition, Table, is_position, shared_win
from tilewe_jax.replay.frames import ended
from tilewe_jax.web.forms import NUMBER, fits

Kind = Literal["human", "engine", "open"]

_SEAT = {"name": str, "token_hash": (str, None)}
_SEATS = [({**_SEAT, "kind": "engine", "agent": str}, {**_SEAT, "kind": ("human", "open"), "agent": None})]
_OVER = {"scores": [int], "returns": [NUMBER], "reason": str}
_STATE = {"seats": _SEATS, "undo": (int, None), "undos": int, "undone": [int], "over": (_OVER, None), "rematch": (str, None)}


class RefusedError(Exception):
    """A request that is not allowed.

    Args:
      message: the reason, in one sentence.
      field: the field of the request that is wrong, if it is one field.
      status: status of an HTTP response.
    """

    def __init__(self, message: str, field: str | None = None, status: int = 400) -> None:
        super().__init__(" ".join(message.split()))
        self.field, self.status = field, status


def new_token() -> str:
    """Return a random token of 192 bits."""
    return secrets.token_urlsafe(24)


def hash_of(token: str) -> str:
    """Return the hash that is stored for a token. One round is enough, because a token has 192 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Seat:
    """A seat of a game."""

    kind: Kind
    name: str
    agent: str | None = None
    """Agent of an engine."""
    token_hash: str | None = None
    """Hash of the token of a person or a bot, see ``hash_of``."""


@dataclass(frozen=True)
class ClockSettings:
    """Time of a seat for all of its moves, and the increment after each move, in seconds."""

    seconds: float
    increment: float


@dataclass(frozen=True)
class Clock:
    """Clocks of the people in a game. They start with the first move and stop while the server is down.

    Engines do not have a clock; their agents have a time limit per move.
    """

    settings: ClockSettings
    remaining: tuple[float, ...]
    """Seconds by seat at the last move."""
    running_since: float | None = None
    """Monotonic time at which the clock of the seat to move started; ``None`` if it does not run."""


@dataclass(frozen=True)
class PlayedMove:
    """A move of a game."""

    player: int
    action: int
    view: Mapping[str, Any]
    """The move as all players may see it, see ``HostPosition.action_view``."""
    analysis: Mapping[str, Any] | None = None
    """Analysis of the position before the move by the engine that made it."""
    note: str | None = None
    """Note for the players, such as the failure of an engine."""

    @property
    def stored(self) -> dict[str, Any] | None:
        """The stored values besides the action; ``None`` if all are empty."""
        values = {"analysis": self.analysis, "note": self.note}
        return {name: value for name, value in values.items() if value is not None} or None

    @property
    def json(self) -> dict[str, Any]:
        """The move as clients receive it."""
        return {"player": self.player, **self.view, **({} if self.note is None else {"note": self.note})}


@dataclass(frozen=True)
class Setup:
    """The constant part of a game."""

    host: HostGame
    deal: Any
    clock: ClockSettings | None
    is_casual: bool
    """Whether undo, hints and analyses are allowed during the game."""
    is_public: bool
    """Whether the lobby lists the game."""

    @property
    def is_hidden(self) -> bool:
        """Whether players have information that is hidden from others."""
        return self.host.has_hidden_information

    @property
    def is_set_up(self) -> bool:
        """Whether the game starts from a position."""
        return is_position(self.deal)

    @cached_property
    def start(self) -> HostPosition:
        """The initial position."""
        return self.host.init_from_deal(self.deal)


@dataclass(frozen=True)
class Session:
    """A game in progress or finished."""

    setup: Setup
    seats: tuple[Seat, ...]
    moves: tuple[PlayedMove, ...]
    position: HostPosition
    clock: Clock | None
    undo: int | None = None
    """Seat that asks to take moves back."""
    undos: int = 0
    """Number of times that moves were taken back."""
    undone: tuple[PlayedMove, ...] = ()
    """Moves of the last undo, until another move is made."""
    over: Mapping[str, Any] | None = None
    """Scores, returns and reason of the end."""
    rounds: Table = ()
    """Table of rounds, the current one last; empty for games without rounds."""
    rematch: str | None = None
    """Id of the rematch."""

    # ---- Queries

    @property
    def mover(self) -> int | None:
        """Seat to move; ``None`` if the game is over."""
        return None if self.over else self.position.current_player

    @property
    def engine_to_move(self) -> Seat | None:
        """The engine to move, if an engine is to move."""
        seat = None if self.mover is None else self.seats[self.mover]
        return seat if seat and seat.kind == "engine" else None

    @property
    def actions(self) -> list[int]:
        """Actions since the start."""
        return [move.action for move in self.moves]

    def seat_of(self, token: str) -> int | None:
        """Return the seat of a token, in constant time."""
        given = hash_of(token)
        matches = [index for index, seat in enumerate(self.seats) if hmac.compare_digest(seat.token_hash or "-", given)]
        return matches[0] if matches else None

    def positions(self) -> Iterator[HostPosition]:
        """Yield all positions, from the start."""
        position = self.setup.start
        yield position
        for move in self.moves:
            position = position.after(move.action)
            yield position

    def position_at(self, number: int) -> HostPosition:
        """Return the position after ``number`` moves."""
        return self.position if number == len(self.moves) else next(islice(self.positions(), number, None))

    def view(self, number: int, position: HostPosition, seat: int | None = None) -> dict[str, Any]:
        """Return a position of the game as a seat may see it; ``number`` is the number of moves before it."""
        view = position.view(seat=seat, open=self.over is not None)
        return ended(view, self.over["returns"]) if self.over and number == len(self.moves) else view

    def explain(self, seat: int | None, action: int) -> str | None:
        """Return the rule that an action breaks, or ``None`` if it is legal.

        In games with hidden information only the seat to move gets an explanation of a rule.
        """
        if self.over:
            return "the game is over"
        if self.setup.is_hidden and seat != self.mover:
            return "it is not your turn"
        return self.position.explain(action)

    def clock_runs(self) -> bool:
        """Return whether the clock of the seat to move runs."""
        return self.clock is not None and bool(self.moves) and self.mover is not None and self.engine_to_move is None

    def seconds_left(self, now: float | None = None) -> list[float] | None:
        """Return the seconds on the clocks by seat, at a monotonic time (by default the current one)."""
        if self.clock is None:
            return None
        seconds = list(self.clock.remaining)
        if self.mover is not None and self.clock_runs() and self.clock.running_since is not None:
            now = time.monotonic() if now is None else now
            seconds[self.mover] = max(0.0, seconds[self.mover] - (now - self.clock.running_since))
        return seconds

    def other_people(self, seat: int) -> list[int]:
        """Return the seats of other people."""
        return [index for index, each in enumerate(self.seats) if each.kind != "engine" and index != seat]

    # ---- Changes: each returns a new session or raises ``RefusedError``

    def played(
        self,
        seat: int | None,
        action: int,
        known_moves: int | None = None,
        *,
        analysis: Mapping[str, Any] | None = None,
        note: str | None = None,
        now: float | None = None,
    ) -> "Session":
        """Make a move.

        Args:
          seat: seat that moves.
          action: the action.
          known_moves: number of moves that the client knows, if it must be up to date.
          analysis: analysis of the position by the engine that moves.
          note: note for the players.
          now: monotonic time, by default the current one.
        """
        self._check_running(seat)
        if known_moves is not None and known_moves != len(self.moves):
            raise RefusedError(f"the position has changed: it is after move {len(self.moves)}, not {known_moves}", "move", 409)
        if seat != self.mover:
            raise RefusedError("it is not your turn", status=409)
        if not 0 <= action < self.setup.host.num_actions:
            raise RefusedError(f"action must be an integer from 0 to {self.setup.host.num_actions - 1}", "action")
        if rule := self.position.explain(action):
            raise RefusedError(rule, "action")
        now = time.monotonic() if now is None else now
        if self._is_out_of_time(now):
            raise RefusedError("your time is up", status=409)
        position = self.position.after(action)
        move = PlayedMove(self.position.current_player, action, self.position.action_view(action), analysis, note)
        after = replace(
            self,
            moves=(*self.moves, move),
            position=position,
            clock=self._clock_after_move(now),
            undo=None,
            undone=(),
            rounds=_rounds_after(self.setup, self.rounds, self.position, action, position),
        )
        return after._ended(self.setup.host.returns(position), "finished") if position.is_terminal else after

    def resigned(self, seat: int | None) -> "Session":
        """Resign; the others with the most points share the win."""
        seat = self._check_running(seat)
        return self._ended(self._returns_without(seat), "resignation", seat)

    def flagged(self, now: float | None = None) -> "Session":
        """End the game if the seat to move has run out of time; otherwise return this session."""
        if self.mover is None or not self._is_out_of_time(time.monotonic() if now is None else now):
            return self
        return self._ended(self._returns_without(self.mover), "time", self.mover)

    def undo_asked(self, seat: int | None) -> "Session":
        """Ask to take back the last move of a seat and all later moves. Without other people it happens immediately."""
        seat = self._check_running(seat)
        if not self.setup.is_casual:
            raise RefusedError("undo is available in casual games only", status=409)
        if self.setup.is_hidden:
            raise RefusedError("undo is not available in games with hidden information", status=409)
        if self._undo_target(seat) is None:
            raise RefusedError("you have not moved yet", status=409)
        if self.undo is not None:
            raise RefusedError("another request to take back a move is still open", status=409)
        asked = replace(self, undo=seat)
        return asked if asked.other_people(seat) else asked._taken_back()

    def undo_answered(self, seat: int | None, accepts: bool) -> "Session":
        """Accept or decline the request to take back moves."""
        seat = self._check_running(seat)
        if self.undo is None:
            raise RefusedError("nobody asks to take back a move", status=409)
        if seat == self.undo and accepts:
            raise RefusedError("another player must agree", status=409)
        return self._taken_back() if accepts else replace(self, undo=None)

    def redone(self, seat: int | None) -> "Session":
        """Repeat the moves of the last undo; only without other people."""
        seat = self._check_running(seat)
        if not self.undone:
            raise RefusedError("the last undo was already repeated, or a move was made since", status=409)
        if self.other_people(seat):
            raise RefusedError("redo is available only if no other people play", status=409)
        session = self
        for move in self.undone:
            session = session.played(session.mover, move.action, analysis=move.analysis, note=move.note)
        return session

    def seated(self, seat: int, name: str | None, token_hash: str | None = None) -> "Session":
        """Seat a person, with a new name and a new token if they are given."""
        old = self.seats[seat]
        taken = replace(old, kind="human", name=name or old.name, token_hash=token_hash or old.token_hash)
        return replace(self, seats=(*self.seats[:seat], taken, *self.seats[seat + 1 :]))

    def renamed(self, seat: int | None, name: str) -> "Session":
        """Change the name of a player."""
        return self.seated(self._check_running(seat), name)

    def followed_by(self, game_id: str) -> "Session":
        """Set the id of the rematch."""
        return replace(self, rematch=game_id)

    def with_clock_started(self, now: float | None = None) -> "Session":
        """Start the clock of the seat to move, after the session was read from the database."""
        if self.clock is None or not self.clock_runs():
            return self
        return replace(self, clock=replace(self.clock, running_since=time.monotonic() if now is None else now))

    # ---- Storage

    @property
    def stored_setup(self) -> dict[str, Any]:
        """The setup as JSON values."""
        setup = self.setup
        return {
            "game": setup.host.id,
            "version": setup.host.version,
            "options": dict(setup.host.options),
            "deal": setup.deal,
            "clock": setup.clock and asdict(setup.clock),
            "casual": setup.is_casual,
            "public": setup.is_public,
        }

    @property
    def stored_state(self) -> dict[str, Any]:
        """The variable part of the session without its moves, as JSON values."""
        return {
            "seats": [asdict(seat) for seat in self.seats],
            "remaining": self.clock and [round(seconds, 3) for seconds in self.clock.remaining],
            "undo": self.undo,
            "undos": self.undos,
            "undone": [move.action for move in self.undone],
            "over": self.over,
            "rematch": self.rematch,
            "mover": self.mover,
        }

    # ---- Helpers

    def _check_running(self, seat: int | None) -> int:
        """Return the seat. Raises ``RefusedError`` for spectators and after the end."""
        if seat is None:
            raise RefusedError("spectators cannot play; join with the token of a seat", status=403)
        if self.over:
            raise RefusedError("the game is over", status=409)
        return seat

    def _is_out_of_time(self, now: float) -> bool:
        seconds = self.seconds_left(now)
        return seconds is not None and self.mover is not None and self.clock_runs() and not seconds[self.mover]

    def _clock_after_move(self, now: float) -> Clock | None:
        if self.clock is None:
            return None
        remaining = self.seconds_left(now) or []
        if self.mover is not None and self.clock_runs():
            remaining[self.mover] += self.clock.settings.increment
        return replace(self.clock, remaining=tuple(remaining), running_since=now)

    def _ended(self, returns: Sequence[float], reason: str, seat: int | None = None) -> "Session":
        """End the game; ``seat`` is the seat that lost by resignation or on time."""
        over = {"scores": list(self.position.scores()), "returns": list(returns), "reason": reason}
        remaining = tuple(self.seconds_left() or ())
        return replace(
            self,
            over=over if seat is None else {**over, "seat": seat},
            undo=None,
            clock=self.clock and replace(self.clock, remaining=remaining, running_since=None),
        )

    def _returns_without(self, loser: int) -> list[float]:
        """Returns if a seat gives up: the others with the most points share the win."""
        scores = self.position.scores()
        if len(scores) == 1:
            return [0.0]
        return [*shared_win([-math.inf if seat == loser else score for seat, score in enumerate(scores)])]

    def _undo_target(self, seat: int) -> int | None:
        """Number of moves before the last move of a seat; ``None`` if it has not moved."""
        return next((number for number in reversed(range(len(self.moves))) if self.moves[number].player == seat), None)

    def _taken_back(self) -> "Session":
        assert self.undo is not None
        number = self._undo_target(self.undo)
        return replace(
            self,
            moves=self.moves[:number],
            position=self.position_at(number or 0),
            clock=self.clock and replace(self.clock, running_since=time.monotonic()),
            undo=None,
            undos=self.undos + 1,
            undone=self.moves[number:],
        )


def started(setup: Setup, seats: Sequence[Seat]) -> Session:
    """Return a new session."""
    clock = None if setup.clock is None else Clock(setup.clock, (setup.clock.seconds,) * len(seats))
    session = Session(setup, tuple(seats), (), setup.start, clock, rounds=_first_rounds(setup))
    return session._ended(setup.host.returns(setup.start), "finished") if setup.start.is_terminal else session


def restored(setup: Setup, state: Mapping[str, Any], moves: Sequence[tuple[int, Mapping[str, Any]]]) -> Session:
    """Return a session from its stored form. Raises ``ValueError`` and other errors if it is damaged or breaks the rules."""
    _check_stored(setup, state, moves)
    position, rounds = setup.start, _first_rounds(setup)
    played, undone = [], []
    for action, extra in moves:
        after = position.after(action)
        view = position.action_view(action)
        played.append(PlayedMove(position.current_player, action, view, extra.get("analysis"), extra.get("note")))
        rounds = _rounds_after(setup, rounds, position, action, after)
        position = after
    later = position
    for action in state["undone"]:
        undone.append(PlayedMove(later.current_player, action, later.action_view(action)))
        later = later.after(action)
    return Session(
        setup,
        tuple(Seat(**seat) for seat in state["seats"]),
        tuple(played),
        position,
        None if setup.clock is None else Clock(setup.clock, tuple(state["remaining"])),
        undone=tuple(undone),
        undo=state["undo"],
        undos=state["undos"],
        over=state["over"],
        rounds=rounds,
        rematch=state["rematch"],
    )


def _check_stored(setup: Setup, state: Mapping[str, Any], moves: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
    """Raise ``ValueError`` if a value has a wrong type or length, which would otherwise fail when a client asks for it."""
    count = setup.host.num_players
    wrong = [name for name, form in _STATE.items() if not fits(state.get(name, ...), form)]
    if wrong:
        raise ValueError(f"{wrong[0]} has a value of the wrong type")
    over = state["over"] or {"returns": state["seats"]}
    if {len(state["seats"]), len(over["returns"])} != {count}:
        raise ValueError(f"the numbers of seats and returns must be {count}")
    if not all(seat is None or (type(seat) is int and 0 <= seat < count) for seat in (state["undo"], over.get("seat"))):
        raise ValueError(f"undo and the seat that lost must be from 0 to {count - 1}")
    if state["undos"] < 0 or (setup.clock and (not fits(state["remaining"], [NUMBER]) or len(state["remaining"]) != count)):
        raise ValueError("undos or remaining has a wrong value")
    if not fits([setup.is_casual, setup.is_public], [bool]):
        raise ValueError("casual and public must be true or false")
    if setup.clock and not all(fits(value, NUMBER) and value >= 0 for value in asdict(setup.clock).values()):
        raise ValueError("the clock has a value of the wrong type")
    for _, extra in moves:
        if not fits(extra.get("note"), (str, None)) or not isinstance(extra.get("analysis"), dict | None):
            raise ValueError("the note or the analysis of a move has the wrong type")


def _first_rounds(setup: Setup) -> Table:
    return setup.host.rounds.first(setup.start) if setup.host.rounds else ()


def _rounds_after(setup: Setup, rounds: Table, before: HostPosition, action: int, after: HostPosition) -> Table:
    return setup.host.rounds.after(rounds, before, action, after) if setup.host.rounds else ()


def legal_of(host: HostGame, position: HostPosition) -> list[Any]:
    """Return the legal actions for a client: ids if clients know the shapes of the game, otherwise views of actions."""
    legal = position.legal_actions()
    return legal if host.shapes else [position.action_view(action) for action in legal]
