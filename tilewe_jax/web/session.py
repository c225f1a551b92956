"""The authoritative game: the rules of a table over those of a game - seats, turns, clocks, undo, resignation, rounds.

Pure Python without input and output. A session checks everything that is asked of it and raises ``RefusedError`` for what it
does not allow. It is a value: what changes it gives a new one, so that a change that could not be saved never happened.
"""

import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from tilewe_jax.host import HostGame, HostPosition, Table, shared_win
from tilewe_jax.replay.frames import ended

Kind = Literal["human", "engine", "open"]


class RefusedError(Exception):
    """What is not done, and why, in one sentence; ``field`` is the field to blame, ``status`` that of an HTTP response."""

    def __init__(self, message: str, field: str | None = None, status: int = 400) -> None:
        super().__init__(" ".join(message.split()))
        self.field, self.status = field, status


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def hash_of(token: str) -> str:
    """What is kept of a token. A token has 192 random bits, so that one round of a hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Seat:
    """A seat of a game."""

    kind: Kind
    name: str
    agent: str | None = None
    """The agent of an engine."""
    token_hash: str | None = None
    """Hash of the token of a person or a bot, see ``hash_of``."""

    @property
    def json(self) -> dict[str, Any]:
        """The seat as it is kept in a file."""
        return {"kind": self.kind, "name": self.name, "agent": self.agent, "token_hash": self.token_hash}


@dataclass(frozen=True)
class ClockSettings:
    """Seconds for all moves of a seat, and seconds that are added after each of its moves."""

    seconds: float
    increment: float


@dataclass(frozen=True)
class Clock:
    """The clocks of people. An engine has no clock: its agent has a budget of time for each move.

    A clock runs from the first move of the game on. While the server is down no clock runs.
    """

    settings: ClockSettings
    remaining: tuple[float, ...]
    """Seconds by seat, when the last move was made."""
    running_since: float | None = None
    """Monotonic time since which the clock of the seat to move runs; ``None`` before the first move and after the last."""

    def left(self, seat: int, is_running: bool, now: float) -> float:
        """Seconds that a seat has now."""
        gone = now - self.running_since if is_running and self.running_since is not None else 0.0
        return max(0.0, self.remaining[seat] - gone)


@dataclass(frozen=True)
class PlayedMove:
    """A move that was made."""

    player: int
    action: int
    view: Mapping[str, Any]
    """See ``HostPosition.action_view``; shows nothing that is hidden."""
    analysis: Mapping[str, Any] | None = None
    """What the engine that made it thought of the position before it."""
    note: str | None = None
    """What people are told about it."""

    @property
    def stored(self) -> dict[str, Any] | None:
        """What is kept of it besides the action."""
        values = {"analysis": self.analysis, "note": self.note}
        return {name: value for name, value in values.items() if value is not None} or None

    @property
    def json(self) -> dict[str, Any]:
        """The move as clients are told of it."""
        note = {} if self.note is None else {"note": self.note}
        return {"player": self.player, **self.view, **note}


@dataclass(frozen=True)
class Setup:
    """What never changes in a game."""

    host: HostGame
    deal: Any
    clock: ClockSettings | None
    is_casual: bool
    """Whether moves may be taken back, and hints and analyses be asked for, before the end."""
    is_public: bool
    """Whether the game is listed."""

    @property
    def is_hidden(self) -> bool:
        """Whether players have what others may not see."""
        return self.host.has_hidden_information

    @cached_property
    def start(self) -> HostPosition:
        """The initial position."""
        return self.host.init_from_deal(self.deal)


@dataclass(frozen=True)
class Session:
    """A game under way, or over."""

    setup: Setup
    seats: tuple[Seat, ...]
    moves: tuple[PlayedMove, ...]
    position: HostPosition
    clock: Clock | None
    undo: int | None = None
    """The seat that asks to take moves back."""
    undos: int = 0
    """Number of times that moves were taken back."""
    undone: tuple[PlayedMove, ...] = ()
    """The moves that were taken back last, until another one is made."""
    over: Mapping[str, Any] | None = None
    """How the game has ended: scores, returns, reason."""
    rounds: Table = ()
    """The table of rounds, the current one last; empty for games without rounds."""
    rematch: str | None = None
    """Id of the game that follows."""

    # ---- Questions

    @property
    def mover(self) -> int | None:
        """The seat to move; ``None`` at the end."""
        return None if self.over else self.position.current_player

    @property
    def engine_to_move(self) -> Seat | None:
        """The engine to move, where it is one."""
        seat = None if self.mover is None else self.seats[self.mover]
        return seat if seat and seat.kind == "engine" else None

    @property
    def actions(self) -> list[int]:
        """The actions since the start."""
        return [move.action for move in self.moves]

    def seat_of(self, token: str) -> int | None:
        """The seat of a token. Takes as long for a wrong one as for a right one."""
        given = hash_of(token)
        matches = [index for index, seat in enumerate(self.seats) if hmac.compare_digest(seat.token_hash or "-", given)]
        return matches[0] if matches else None

    def positions(self) -> Iterator[HostPosition]:
        """All positions, from the start."""
        position = self.setup.start
        yield position
        for move in self.moves:
            position = position.after(move.action)
            yield position

    def position_at(self, number: int) -> HostPosition:
        """The position after so many moves."""
        if number == len(self.moves):
            return self.position
        position = self.setup.start
        for move in self.moves[:number]:
            position = position.after(move.action)
        return position

    def view(self, number: int, position: HostPosition, seat: int | None = None) -> dict[str, Any]:
        """Return a position of the game as a seat may see it; ``number`` is the number of moves before it."""
        view = position.view(seat=seat, open=self.over is not None)
        return ended(view, self.over["returns"]) if self.over and number == len(self.moves) else view

    def explain(self, seat: int | None, action: int) -> str | None:
        """The rule that an action breaks; ``None`` where it is legal. What is hidden is explained to the seat to move only."""
        if self.setup.is_hidden and (self.over or seat != self.mover):
            return "the game is over" if self.over else "it is not your turn"
        return "the game is over" if self.over else self.position.explain(action)

    def clock_runs(self) -> bool:
        """Whether the clock of the seat to move runs."""
        return self.clock is not None and bool(self.moves) and self.mover is not None and self.engine_to_move is None

    def seconds_left(self, now: float | None = None) -> list[float] | None:
        """Seconds on the clocks, by seat."""
        if self.clock is None:
            return None
        now = time.monotonic() if now is None else now
        return [self.clock.left(seat, self.clock_runs() and seat == self.mover, now) for seat in range(len(self.seats))]

    # ---- Changes: each gives a new session, or raises ``RefusedError``

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
        """The session after a move.

        Args:
          seat: who moves.
          action: the action.
          known_moves: number of moves that the mover knows of.
          analysis: what an engine thought.
          note: what people are told about the move.
          now: monotonic time.
        """
        self._require_seat(seat)
        self._require_running()
        if known_moves is not None and known_moves != len(self.moves):
            raise RefusedError(
                f"the game has {len(self.moves)} moves, not {known_moves}: the position has changed", "move", 409
            )
        if seat != self.mover:
            raise RefusedError("it is not your turn", None, 409)
        if not 0 <= action < self.setup.host.num_actions:
            raise RefusedError(f"action must be an integer from 0 to {self.setup.host.num_actions - 1}", "action")
        if rule := self.position.explain(action):
            raise RefusedError(rule, "action")
        now = time.monotonic() if now is None else now
        if self.clock_runs() and not self._left(seat, now):
            raise RefusedError("your time is over", None, 409)
        position = self.position.after(action)
        move = PlayedMove(self.position.current_player, action, self.position.action_view(action), analysis, note)
        after = replace(
            self,
            moves=(*self.moves, move),
            position=position,
            clock=self._clock_after(seat, now),
            undo=None,
            undone=(),
            rounds=_rounds_after(self.setup, self.rounds, self.position, action, position),
        )
        if position.is_terminal:
            return after._ended(self.setup.host.returns(position), "finished")
        return after

    def resigned(self, seat: int | None) -> "Session":
        """The session after a seat has resigned; the win goes to the others, to those with the most points among them."""
        seat = self._require_seat(seat)
        self._require_running()
        return self._ended(self._returns_without(seat), "resignation", seat)

    def flagged(self, now: float | None = None) -> "Session":
        """The session after the time of the seat to move is over; itself, where it is not."""
        now = time.monotonic() if now is None else now
        seat = self.mover
        if seat is None or not self.clock_runs() or self._left(seat, now):
            return self
        return self._ended(self._returns_without(seat), "time", seat)

    def undo_asked(self, seat: int | None) -> "Session":
        """The session after a seat has asked to take back its last move and those since; engines agree at once."""
        seat = self._require_seat(seat)
        self._require_running()
        if not self.setup.is_casual:
            raise RefusedError("moves are taken back in casual games only", None, 409)
        if self.setup.is_hidden:
            raise RefusedError("what was drawn cannot be forgotten, so no move is taken back in this game", None, 409)
        if self._undo_target(seat) is None:
            raise RefusedError("you have not moved yet", None, 409)
        if self.undo is not None:
            raise RefusedError("somebody has asked already", None, 409)
        asked = replace(self, undo=seat)
        return asked if asked.people_but(seat) else asked._taken_back()

    def undo_answered(self, seat: int | None, accepts: bool) -> "Session":
        """The session after another seat has agreed to take moves back, or has declined."""
        seat = self._require_seat(seat)
        self._require_running()
        if self.undo is None:
            raise RefusedError("nobody asks to take a move back", None, 409)
        if seat == self.undo and accepts:
            raise RefusedError("somebody else must agree", None, 409)
        return self._taken_back() if accepts else replace(self, undo=None)

    def redone(self, seat: int | None) -> "Session":
        """The session after the moves that were taken back last are made again; where no other people play."""
        seat = self._require_seat(seat)
        self._require_running()
        if not self.undone:
            raise RefusedError("there is nothing to make again", None, 409)
        if self.people_but(seat):
            raise RefusedError("moves are made again where no other people play", None, 409)
        session = self
        for move in self.undone:
            session = session.played(session.mover, move.action, analysis=move.analysis, note=move.note)
        return session

    def seated(self, seat: int, name: str | None, token_hash: str | None = None) -> "Session":
        """The session after somebody has taken an open seat; with ``token_hash``, by another token than the invited one."""
        old = self.seats[seat]
        taken = replace(old, kind="human", name=name or old.name, token_hash=token_hash or old.token_hash)
        return replace(self, seats=(*self.seats[:seat], taken, *self.seats[seat + 1 :]))

    def renamed(self, seat: int | None, name: str) -> "Session":
        """Return the session after a player has told a name."""
        seat = self._require_seat(seat)
        self._require_running()
        return self.seated(seat, name)

    def followed_by(self, game_id: str) -> "Session":
        """The session after a rematch has begun."""
        return replace(self, rematch=game_id)

    def with_clock_started(self, now: float | None = None) -> "Session":
        """The session as it goes on after it was read from a file."""
        if self.clock is None or not self.clock_runs():
            return self
        return replace(self, clock=replace(self.clock, running_since=time.monotonic() if now is None else now))

    def people_but(self, seat: int) -> list[int]:
        """The seats of other people."""
        return [index for index, each in enumerate(self.seats) if each.kind != "engine" and index != seat]

    # ---- Form in a file

    @property
    def stored_setup(self) -> dict[str, Any]:
        """What never changes, as JSON values."""
        setup = self.setup
        clock = None if setup.clock is None else {"seconds": setup.clock.seconds, "increment": setup.clock.increment}
        return {
            "game": setup.host.id,
            "version": setup.host.version,
            "options": dict(setup.host.options),
            "deal": setup.deal,
            "clock": clock,
            "casual": setup.is_casual,
            "public": setup.is_public,
        }

    @property
    def stored_state(self) -> dict[str, Any]:
        """What changes besides the moves, as JSON values."""
        return {
            "seats": [seat.json for seat in self.seats],
            "remaining": None if self.clock is None else [round(seconds, 3) for seconds in self.clock.remaining],
            "undo": self.undo,
            "undos": self.undos,
            "undone": [move.action for move in self.undone],
            "over": self.over,
            "rematch": self.rematch,
        }

    # ---- Helpers

    def _left(self, seat: int | None, now: float) -> float:
        assert self.clock is not None
        assert seat is not None
        return self.clock.left(seat, True, now)

    def _require_seat(self, seat: int | None) -> int:
        if seat is None:
            raise RefusedError("spectators only watch; join with the token of a seat", None, 403)
        return seat

    def _require_running(self) -> None:
        if self.over:
            raise RefusedError("the game is over", None, 409)

    def _clock_after(self, seat: int | None, now: float) -> Clock | None:
        """The clocks after a move of ``seat``."""
        if self.clock is None:
            return None
        remaining = list(self.clock.remaining)
        if self.clock_runs():
            assert seat is not None
            remaining[seat] = self._left(seat, now) + self.clock.settings.increment
        return replace(self.clock, remaining=tuple(remaining), running_since=now)

    def _ended(self, returns: Sequence[float], reason: str, seat: int | None = None) -> "Session":
        """The session at its end; ``seat`` is who has lost by resignation or time."""
        over = {"scores": list(self.position.scores()), "returns": list(returns), "reason": reason}
        remaining = self.seconds_left()
        return replace(
            self,
            over=over if seat is None else {**over, "seat": seat},
            undo=None,
            clock=None if self.clock is None else replace(self.clock, remaining=tuple(remaining or ()), running_since=None),
        )

    def _returns_without(self, loser: int) -> list[float]:
        """The returns where a seat has given up: those with the most points among the others share the win."""
        scores = self.position.scores()
        if len(scores) == 1:
            return [0.0]
        return [*shared_win([-math.inf if seat == loser else score for seat, score in enumerate(scores)])]

    def _undo_target(self, seat: int) -> int | None:
        """Number of moves before the last one of a seat; ``None`` where it has made none."""
        return next((number for number in reversed(range(len(self.moves))) if self.moves[number].player == seat), None)

    def _taken_back(self) -> "Session":
        assert self.undo is not None
        number = self._undo_target(self.undo)
        clock = None if self.clock is None else replace(self.clock, running_since=time.monotonic())
        return replace(
            self,
            moves=self.moves[:number],
            position=self.position_at(number or 0),
            clock=clock,
            undo=None,
            undos=self.undos + 1,
            undone=self.moves[number:],
        )


def restored(setup: Setup, state: Mapping[str, Any], moves: Sequence[tuple[int, Mapping[str, Any]]]) -> Session:
    """A session of its form in a file. Raises ``ValueError`` and other errors if it is damaged or contradicts the rules."""
    _check_form(setup, state, moves)
    seats = tuple(Seat(**seat) for seat in state["seats"])
    clock = None
    if setup.clock is not None:
        clock = Clock(setup.clock, tuple(state["remaining"]))
    position = setup.start
    rounds = _first_rounds(setup)
    played = []
    for action, extra in moves:
        after = position.after(action)
        view = position.action_view(action)
        played.append(PlayedMove(position.current_player, action, view, extra.get("analysis"), extra.get("note")))
        rounds = _rounds_after(setup, rounds, position, action, after)
        position = after
    undone = []
    ahead = position
    for action in state["undone"]:
        undone.append(PlayedMove(ahead.current_player, action, ahead.action_view(action)))
        ahead = ahead.after(action)
    return Session(
        setup,
        seats,
        tuple(played),
        position,
        clock,
        undone=tuple(undone),
        undo=state["undo"],
        undos=state["undos"],
        over=state["over"],
        rounds=rounds,
        rematch=state.get("rematch"),
    )


def _check_form(setup: Setup, state: Mapping[str, Any], moves: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
    """Raise ``ValueError`` if a value has the wrong type, which would otherwise fail only when clients ask for it."""
    count = setup.host.num_players

    def is_seat(value: Any) -> bool:
        return value is None or (type(value) is int and 0 <= value < count)

    def are_numbers(values: Any) -> bool:
        return isinstance(values, list) and len(values) == count and all(type(value) in (int, float) for value in values)

    over = state["over"]
    correct = {
        "seats": isinstance(state["seats"], list)
        and len(state["seats"]) == count
        and all(
            seat["kind"] in ("human", "open", "engine")
            and isinstance(seat["name"], str)
            and isinstance(seat["agent"], str if seat["kind"] == "engine" else str | None)
            and isinstance(seat["token_hash"], str | None)
            for seat in state["seats"]
        ),
        "remaining": setup.clock is None or are_numbers(state["remaining"]),
        "undo": is_seat(state["undo"]),
        "undos": type(state["undos"]) is int and state["undos"] >= 0,
        "undone": isinstance(state["undone"], list) and all(type(action) is int for action in state["undone"]),
        "over": over is None
        or (
            isinstance(over["scores"], list)
            and all(type(score) is int for score in over["scores"])
            and are_numbers(over["returns"])
            and isinstance(over["reason"], str)
            and is_seat(over.get("seat"))
        ),
        "rematch": isinstance(state.get("rematch"), str | None),
        "moves": all(
            isinstance(extra.get("analysis"), dict | None) and isinstance(extra.get("note"), str | None) for _, extra in moves
        ),
        "clock": setup.clock is None
        or all(type(value) in (int, float) and value >= 0 for value in (setup.clock.seconds, setup.clock.increment)),
        "casual": isinstance(setup.is_casual, bool),
        "public": isinstance(setup.is_public, bool),
    }
    wrong = [name for name, is_correct in correct.items() if not is_correct]
    if wrong:
        raise ValueError(f"{wrong[0]} has a value of the wrong type")


def started(setup: Setup, seats: Sequence[Seat]) -> Session:
    """A new session."""
    clock = None if setup.clock is None else Clock(setup.clock, (setup.clock.seconds,) * len(seats))
    session = Session(setup, tuple(seats), (), setup.start, clock, rounds=_first_rounds(setup))
    return session._ended(setup.host.returns(setup.start), "finished") if setup.start.is_terminal else session


def _first_rounds(setup: Setup) -> Table:
    return setup.host.rounds.first(setup.start) if setup.host.rounds else ()


def _rounds_after(setup: Setup, rounds: Table, before: HostPosition, action: int, after: HostPosition) -> Table:
    return setup.host.rounds.after(rounds, before, action, after) if setup.host.rounds else ()
