"""Games and positions on the host: the interface of the plain-Python forms of games. Imports no JAX."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import exp
from operator import index
from random import Random
from typing import Any, Protocol, runtime_checkable


class IllegalActionError(ValueError):
    """An illegal action. The message names the rule that it breaks."""


@runtime_checkable
class HostPosition(Protocol):
    """An immutable position of a game in plain Python, as returned by ``Game.host``.

    Action ids are the same as on the device, so that both forms can be played side by side.
    """

    @property
    def current_player(self) -> int:
        """The player to move, from 0."""

    @property
    def is_terminal(self) -> bool:
        """True if the game is over."""

    def scores(self) -> tuple[int, ...]:
        """Current points by seat."""

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty at the end."""

    def explain(self, action: int) -> str | None:
        """The rule that an action breaks, in words; ``None`` if the action is legal."""

    def after(self, action: int) -> "HostPosition":
        """The position after an action. Raises ``IllegalActionError``."""

    def action_name(self, action: int) -> str:
        """The name of a legal action."""

    def action_of_name(self, name: str) -> int:
        """The inverse of ``action_name``. Raises ``ValueError`` if no legal action has this name."""

    def text(self, color: bool = False, *, last_action: int | None = None, seat: int | None = None, open: bool = True) -> str:
        """The position as text.

        Args:
          color: whether to use ANSI colours.
          last_action: the previous action, which is highlighted.
          seat: the player to whom the text is shown unless ``open``; ``None`` for a spectator.
          open: whether to show hidden information, which is always shown at the end.
        """

    def svg(self, *, last_action: int | None = None) -> str:
        """The position as an SVG document; ``last_action``, the previous action, is highlighted."""

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        """The position as JSON values for drawing; ``tilewe_jax.draw`` describes the kinds of views.

        Args:
          seat: the player to whom the view is shown; ``None`` for a spectator.
          open: whether to include hidden information, which is always included at the end.

        Raises ``ValueError`` for an invalid seat.
        """

    def action_view(self, action: int) -> dict[str, Any]:
        """A legal action as JSON values: its id, name and effect, see ``tilewe_jax.draw``. Raises ``IllegalActionError``."""


def require_legal(position: HostPosition, action: int) -> int:
    """Return a legal action as a Python integer. Raises ``IllegalActionError``, which names the rule that the action breaks."""
    if rule := position.explain(action):
        raise IllegalActionError(f"action {action} is illegal: {rule}")
    return index(action)


def shared_win(scores: Sequence[float]) -> tuple[float, ...]:
    """Share one win equally among the players with the highest score, by seat."""
    is_best = [score == max(scores) for score in scores]
    return tuple(best / sum(is_best) for best in is_best)


def softmax(logits: Sequence[float]) -> list[float]:
    """Return probabilities proportional to the exponentials of logits."""
    largest = max(logits)
    weights = [exp(logit - largest) for logit in logits]
    total = sum(weights)
    return [weight / total for weight in weights]


def _shared_win(position: HostPosition) -> tuple[float, ...]:
    return shared_win(position.scores())


def _no_deal(chance: Random) -> Any:
    del chance


POSITION = "position"
"""Field of a deal that starts a game from a position: ``{"position": facts}``, see ``PositionFormat``."""


def is_position(deal: Any) -> bool:
    """Return whether a deal starts a game from a position. Raises ``ValueError`` if it has further fields."""
    if not isinstance(deal, dict) or POSITION not in deal:
        return False
    if others := sorted(set(deal) - {POSITION}):
        raise ValueError(f"a deal with a position must have only this field, got also {shown_names(others)}")
    return True


def shown_names(names: Iterable[Any]) -> str:
    """Return names for a message, cut to a readable length."""
    return ", ".join(str(name)[:40] for name in islice(names, 10))


def fields_of(facts: Any, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return the facts of a position as a dictionary.

    Raises ``ValueError`` for a value that is not an object, and for missing and unknown fields.
    """
    if not isinstance(facts, dict):
        raise ValueError(f"a position must be an object with {', '.join(required)}, got {str(facts)[:80]}")
    if missing := [name for name in required if name not in facts]:
        raise ValueError(f"the position lacks {', '.join(missing)}")
    if unknown := [name for name in facts if name not in (*required, *optional)]:
        raise ValueError(
            f"unknown fields of the position: {shown_names(unknown)}; known are {', '.join((*required, *optional))}"
        )
    return facts


def integer_of(facts: Mapping[str, Any], name: str, minimum: int, maximum: int, default: int | None = None) -> int:
    """Return an integer of the facts of a position. Raises ``ValueError``."""
    value = facts.get(name, default)
    if type(value) is not int or not minimum <= value <= maximum:
        raise ValueError(f"{name} must be an integer from {minimum} to {maximum}, got {str(value)[:40]}")
    return value


def _unchanged(facts: Any, chance: Random) -> Any:
    del chance
    return facts


@dataclass(frozen=True)
class PositionFormat:
    """Describes positions by facts, JSON values from which games start; docs/reference/positions.md lists the fields.

    Any position that is reached by play is described completely, including facts of its history that the rules need.
    """

    read: Callable[[Any], HostPosition]
    """``read(facts)``: the position. Raises ``ValueError``, which names the rule that the facts break."""
    write: Callable[[Any], dict[str, Any]]
    """``write(position)``: the inverse of ``read``."""
    draw: Callable[[Any, Random], Any] = _unchanged
    """``draw(facts, chance)``: the facts with random values for everything that they leave to chance."""


Table = tuple[Mapping[str, Any], ...]
"""Score table: for each round its number, its first player, points by seat, and the reason for its end."""


@dataclass(frozen=True)
class Rounds:
    """Functions that maintain the score table of a game with several rounds, which the page shows."""

    first: Callable[[Any], Table]
    """``first(position)``: the table at the start of a game."""
    after: Callable[[Table, Any, int, Any], Table]
    """``after(table, position, action, next_position)``: the table after an action."""


@dataclass(frozen=True)
class Heuristics:
    """Heuristics of a game in plain Python, for players that decide on the host, see ``tilewe_jax.agents.plain``."""

    logits: Callable[[Any, Sequence[int]], list[float]]
    """``logits(position, actions)``: logits of legal actions, a policy without lookahead."""
    value: Callable[[Any], Sequence[float]]
    """``value(position)``: expected outcome by seat of a position that is not terminal."""
    determinize: Callable[[Any, Random], Any] | None = None
    """``determinize(position, chance)``: the position with the information that is hidden from the player to move drawn at
    random; ``None`` for a game without hidden information."""


@dataclass(frozen=True)
class HostDraws:
    """Random decisions on host positions, equal to the decisions on the device that read the same random words.

    A random word is an integer below 2**32, drawn on the device from a PRNG key. With these functions, and with
    ``Game.state_of``, matches of few games are played on the host without a compiled program of the rules.
    """

    sample_action: Callable[[Any, int], int]
    """``sample_action(position, word)``: the action of ``Game.sample_action`` for a key with ``random_words(key, 1)[0] ==
    word``; -1 at the end."""
    random: Callable[[Any, int], int]
    """``random(position, word)``: the action of the policy ``random``; -1 at the end."""
    word: Callable[[Any], Any]
    """``word(key)``: the random word that the policy ``random`` draws from a PRNG key, a function for ``jax.jit``."""


def uniform_below(word: int, bound: int) -> int:
    """Return the number below ``bound`` that ``tilewe_jax.bits.uniform_below`` draws with a random word."""
    return word * bound >> 32


Facts = Mapping[str, Any]
"""Facts of a move as JSON values: counts and names, computed from the positions before and after it."""


@dataclass(frozen=True)
class Coach:
    """Explains mistakes by facts of positions, see ``tilewe_jax.agents.review``."""

    facts: Callable[[Any, int], Facts]
    """``facts(position, action)``: the facts of a legal action, without information that is hidden from its player."""
    reasons: Callable[[Facts, Facts], list[tuple[float, str]]]
    """``reasons(played, better)``: differences between a move and a better move from the same position, as sentences with their
    weights, for example by ``utils.words.differences``."""


@dataclass(frozen=True)
class Symmetries:
    """The symmetries of a game, S in number: transformations of positions and moves that preserve the rules."""

    positions: Callable[[Any], list[Hashable]]
    """``positions(position)``: a value for the image of a position under each symmetry, ``[S]``; equal values mean the same
    position."""
    moves: Callable[[Any, int], list[Hashable]]
    """``moves(position, action)``: a value for the image of a legal action under each symmetry, ``[S]``."""


@dataclass(frozen=True)
class HostGame:
    """The host form of a game: everything needed to read, replay and serve games without a device."""

    id: str
    """The name under which ``make`` knows the game."""
    version: int
    """Version of the rules, see ``Game.version``."""
    num_players: int
    """Number of players (seats)."""
    num_actions: int
    """Number of action ids."""
    max_steps: int
    """Upper bound of the number of actions of a game."""
    init_from_deal: Callable[[Any], HostPosition]
    """The initial position of a deal, see ``Game.deal``, or of ``{"position": facts}``. Raises ``ValueError`` for an invalid
    deal."""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    """The options given to ``make_host_game``."""
    has_hidden_information: bool = False
    """True if players have hidden information, see ``Game.has_hidden_information``."""
    new_deal: Callable[[Random], Any] = field(default=_no_deal, compare=False)
    """Draws a deal for ``init_from_deal`` from a random generator."""
    returns: Callable[[Any], Sequence[float]] = field(default=_shared_win, compare=False)
    """The outcome of a final position by seat, see ``Game.returns``."""
    rounds: Rounds | None = field(default=None, compare=False)
    """The score table; ``None`` for a game of one round."""
    positions: PositionFormat | None = field(default=None, compare=False)
    """Reads and writes positions from which games start; ``None`` for a game that starts from deals only."""
    symmetries: Symmetries | None = field(default=None, compare=False)
    """The symmetries; ``None`` for a game whose positions are not compared."""
    shapes: Sequence[Mapping[str, Any]] = field(default=(), compare=False)
    """Objects to which actions refer by index, such as orientations of pieces, as JSON values. If there are any, clients
    build actions from them and receive the ids of the legal actions."""


@dataclass(frozen=True)
class Offer:
    """The presentation of a game on the page and in the terminal.

    Each folder of ``games`` declares its offers; ``tilewe_jax.host_games.offer`` adds an offer of a registered game.
    """

    title: str
    players: tuple[int, int]
    """Smallest and largest number of players."""
    tagline: str = ""
    """Short description."""
    rules: tuple[str, ...] = ()
    """The rules in a few sentences."""
    notation: str = ""
    """The notation of moves, explained by an example."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The options that a player can choose, each with its ``choices`` or its ``range``."""
    is_hidden: bool = False
    """True if players have hidden information."""
    settings: Callable[..., Any] | None = None
    """Factory of the settings from the options; for a game without a plain-Python form, factory of the game."""
    host_game: Callable[[Any], HostGame] | None = None
    """Factory of the plain-Python form from the settings; ``None`` for a game that only runs on the device."""
    positions: Callable[[Any], PositionFormat] | None = None
    """Factory of the facts of positions from the settings, for a game with a plain-Python form; ``None`` for a game that starts
    from deals only."""
    heuristics: Heuristics | None = None
    """Heuristics in plain Python; ``None`` for a game without any."""
    coach: Coach | None = None
    """Explains mistakes; ``None`` for a game without explanations."""

    @property
    def about(self) -> list[str]:
        """The title and the rules."""
        return [self.title, *self.rules]


def common_view(position: HostPosition, kind: str, seat: int | None) -> dict[str, Any]:
    """The fields common to the views of all games. Raises ``ValueError`` for an invalid seat."""
    scores = list(position.scores())
    if seat is not None and not 0 <= seat < len(scores):
        raise ValueError(f"seat must be 0 to {len(scores) - 1}, or None for a spectator, got {seat!r}")
    return {
        "kind": kind,
        "num_players": len(scores),
        "current_player": position.current_player,
        "terminal": position.is_terminal,
        "scores": scores,
    }


def require_no_deal(game_id: str, deal: Any) -> None:
    """Check that the deal of a game with a fixed start is ``None``. Raises ``ValueError``."""
    if deal is not None:
        raise ValueError(f"the deal of {game_id} must be null, got {deal!r}")
