"""Move ratings of recorded games: the value that each move lost, by searches of the positions before and after it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from math import exp
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewe_jax import records
from tilewe_jax.host import HostPosition
from tilewe_jax.interop.analysis import Analysis, Candidate, Solved, answer_of, explained, json_number
from tilewe_jax.interop.analysis_requests import GameSpec, Request, RequestError, read_moves
from tilewe_jax.replay import recorded

if TYPE_CHECKING:  # reviews need no JAX
    from tilewe_jax.agents.analysis import AgentAnalyzer, SearchProgram


@dataclass(frozen=True)
class RecordedGame:
    """A finished or unfinished game in a file."""

    number: int
    """Number of the game in the file, from 1."""
    spec: GameSpec
    deal: Any
    actions: tuple[int, ...]
    players: tuple[str, ...]
    """Names of the players by seat; empty if unknown."""

    def request(self) -> Request:
        """Return the request to analyze all positions. Raises ``RequestError`` for an illegal move."""
        actions, positions = read_moves(self.spec.host, self.deal, list(self.actions))
        turns = tuple(range(len(actions) + 1))
        return Request(self.number, self.spec, self.deal, actions, positions, turns, {}, None)

    def name(self, player: int) -> str | None:
        """Return the printable name of a player; ``None`` if unknown."""
        if not self.players:
            return None
        return "".join(letter if letter.isprintable() else "?" for letter in self.players[player])


def games_of(path: Path, games: Sequence[recorded.RecordedGame]) -> list[RecordedGame]:
    """Return the games of a file. Raises ``RecordError`` for an empty file or an illegal move."""
    numbered = [
        RecordedGame(number, GameSpec(each.game, each.game.options), each.deal, each.actions, each.names)
        for number, each in enumerate(games, 1)
    ]
    if not numbered:
        raise records.RecordError(f"{path}: it has no games")
    for game in numbered:
        try:
            game.request()
        except RequestError as error:
            raise records.RecordError(f"{path}: game {game.number}: {error}") from None
    return numbered


@dataclass(frozen=True)
class RatedMove:
    """A rated move of a recorded game; all values are for its player."""

    turn: int
    """Number of moves before this move."""
    player: int
    """Seat of the player, from 0."""
    move: str
    action: int
    best_move: str
    """The move of the agent."""
    best_action: int
    visits: int
    """Visit count of the move; 0 if it was not a candidate."""
    prior: float
    """Prior probability of the move."""
    value_before: float
    """Value of the position before the move."""
    value_after: float
    """Value of the position after the move, by a search of that position."""
    loss: float | None
    """Value of the best move minus value of the move, at least 0; ``None`` if unknown."""
    points: float | None
    """Expected final lead in points that the move lost against the best move, at least 0; ``None`` if unknown."""
    is_forced: bool
    """True if the move was the only legal one."""
    is_proven: bool
    """True if loss and points are proven instead of estimated."""

    @property
    def accuracy(self) -> float | None:
        """Accuracy in percent, see ``accuracy_of``; ``None`` for a forced move or an unknown loss."""
        return None if self.is_forced or self.loss is None else accuracy_of(self.loss)


def accuracy_of(loss: float) -> float:
    """Return the accuracy in percent, from 0 to 100, of a move that lost ``loss`` of the win probability, in [0, 1].

    The formula of lichess: https://lichess.org/page/accuracy.

    >>> round(accuracy_of(0.0)), round(accuracy_of(0.1)), round(accuracy_of(0.5))
    (100, 64, 9)
    """
    return min(100.0, max(0.0, 103.1668 * exp(-4.354 * loss) - 3.1669))


def rated_moves(
    request: Request, analyses: Sequence[Analysis], is_hidden: bool, solved: Mapping[int, Solved] | None = None
) -> list[RatedMove]:
    """Rate the moves of a game.

    The value of a move is the value of the position after it. With hidden information it is the mean value of the move in the
    search before it, because the next position depends on chance and on information that the player does not have. Points are
    differences of score leads. Between positions with proven results, both losses are exact.

    Args:
        request: the game.
        analyses: the analyses of all positions, including the last one.
        is_hidden: whether the game has hidden information.
        solved: proven results of positions.
    """
    solved = solved or {}
    moves = []
    for turn, action in enumerate(request.actions):
        analysis, following, position = analyses[turn], analyses[turn + 1], request.positions[turn]
        player = position.current_player
        candidates = {candidate.action: candidate for candidate in analysis.candidates}
        played, best_action = candidates.get(action), analysis.action
        best_value, value = _value(candidates.get(best_action), player), following.value[player]
        points: float | None = None
        if analysis.score_lead and following.score_lead and not is_hidden:
            points = analysis.score_lead[player] - following.score_lead[player]
        proven = {turn, turn + 1} <= solved.keys()
        if proven:
            before, after = solved[turn], solved[turn + 1]
            sign = 1 if player == 0 else -1
            points = float(sign * (before.margin - after.margin))
            best_value, value = before.returns[player], after.returns[player]
            best_action = before.action if points or best_value != value else action
        elif action == best_action:
            value, points = best_value, 0.0  # type: ignore[assignment]
        elif is_hidden:
            value = _value(played, player) if played and played.visits >= MIN_VISITS else None  # type: ignore[assignment]
        known = best_value is not None and value is not None
        moves.append(
            RatedMove(
                turn=turn,
                player=player,
                move=position.action_name(action),
                action=action,
                best_move=position.action_name(best_action),
                best_action=best_action,
                visits=played.visits if played else 0,
                prior=played.prior if played else 0.0,
                value_before=analysis.value[player],
                value_after=following.value[player],
                loss=max(0.0, best_value - value) if known else None,  # type: ignore[operator]
                points=None if points is None else max(0.0, points),
                is_forced=len(position.legal_actions()) == 1,
                is_proven=proven,
            )
        )
    return moves


def _value(candidate: Candidate | None, player: int) -> float | None:
    return candidate.value[player] if candidate and candidate.value else None


MIN_VISITS = 4
"""Smallest visit count of a move whose value is known from the search before it, with hidden information."""
MIN_LOSS = 0.02
"""Smallest loss of win probability that makes a move a mistake."""
MIN_POINTS = 1.0
"""Smallest proven loss of points that makes a move a mistake, even if the winner stays the same."""
MAX_MISTAKES = 12
"""Maximum number of mistakes in a review."""
LINE_LENGTH = 3
"""Number of moves that a review shows after a better move."""


def review_of(request: Request, answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the review of a game as JSON: the accuracy of the players and their mistakes.

    Args:
        request: the game.
        answers: answers of ``tilewe-jax analyze`` for the positions, by number of moves. The position at the end of a finished
            game needs none.

    Returns:
        ``values``, the expected outcome by seat for each position, and ``leads``, the expected leads or ``None``;
        ``accuracy`` by seat, ``None`` without a rated move; ``proven``, the first of the last positions with proven results
        (``move``, ``returns``, ``margin``), or ``None``; and ``mistakes``, the largest first. A mistake has ``move``,
        ``player``, ``played`` and ``better`` as action views, ``loss``, ``points`` or ``None``, ``is_proven``, ``reason`` or
        ``None``, ``facts`` of both moves, and ``line``, action views of the expected moves after the better move with their
        ``player``.
    """
    host = request.game.host
    analyses = [_analysis_of(request, turn, answers) for turn in range(len(request.positions))]
    solved = {
        turn: Solved(-1 if solution["action"] is None else solution["action"], tuple(solution["returns"]), solution["margin"])
        for turn, answer in enumerate(answers)
        if (solution := answer.get("solution"))
    }
    moves = rated_moves(request, analyses, host.has_hidden_information, solved)
    accuracies: list[list[float]] = [[] for _ in range(host.num_players)]
    for rated in moves:
        if rated.accuracy is not None:
            accuracies[rated.player].append(rated.accuracy)
    found = [rated for rated in moves if _is_mistake(rated)]
    found.sort(key=lambda rated: (rated.loss or 0.0, rated.points or 0.0), reverse=True)
    values = [list(solved[turn].returns if turn in solved else analysis.value) for turn, analysis in enumerate(analyses)]
    first = min(solved, default=len(analyses))
    is_known = first < len(analyses) - 1  # a finished position needs no proof
    return {
        "values": [[json_number(value) for value in by_seat] for by_seat in values],
        "leads": [None if each.score_lead is None else [json_number(lead, 2) for lead in each.score_lead] for each in analyses],
        "accuracy": [round(sum(each) / len(each), 1) if each else None for each in accuracies],
        "proven": {"move": first, "returns": list(solved[first].returns), "margin": solved[first].margin} if is_known else None,
        "mistakes": [_mistake(request, rated, analyses[rated.turn]) for rated in found[:MAX_MISTAKES]],
    }


def _is_mistake(rated: RatedMove) -> bool:
    if rated.action == rated.best_action:
        return False
    return (rated.loss or 0.0) >= MIN_LOSS or (rated.is_proven and (rated.points or 0.0) >= MIN_POINTS)


def _mistake(request: Request, rated: RatedMove, analysis: Analysis) -> dict[str, Any]:
    position = request.positions[rated.turn]
    variation = next((each.variation for each in analysis.candidates if each.action == rated.best_action), ())
    line, after = [], position
    for action in (variation or (rated.best_action,))[: LINE_LENGTH + 1]:
        line.append({"player": after.current_player, **after.action_view(action)})
        after = after.after(action)
    why = explained(request, rated.turn, rated.best_action)
    better = request.coach.facts(position, rated.best_action) if request.coach else None
    return {
        "move": rated.turn,
        "player": rated.player,
        "played": position.action_view(rated.action),
        "better": position.action_view(rated.best_action),
        "loss": json_number(rated.loss or 0.0),
        "points": None if rated.points is None else json_number(rated.points, 1),
        "is_proven": rated.is_proven,
        "reason": why["reason"],
        "facts": None if better is None else {"played": why["facts"], "better": better},
        "line": line[1:],
    }


def _analysis_of(request: Request, turn: int, answers: Sequence[Mapping[str, Any]]) -> Analysis:
    """Return the analysis in an answer, or the result of a position at the end of the game."""
    position = request.positions[turn]
    if position.is_terminal:
        scores, returns = position.scores(), tuple(request.game.host.returns(position))
        leads = tuple(float(score - max(scores[:seat] + scores[seat + 1 :], default=0)) for seat, score in enumerate(scores))
        return Analysis(-1, (), returns, leads if len(scores) > 1 else None, 0.0, 0, 0.0, 1)
    answer = answers[turn]
    lead = answer["score_lead"]
    return Analysis(
        action=answer["action"],
        candidates=tuple(
            Candidate(
                action=each["action"],
                visits=each["visits"],
                prior=each["prior"],
                value=None if each["value"] is None else tuple(each["value"]),
                variation=_actions(position, each["principal_variation"]),
            )
            for each in answer["candidates"]
        ),
        value=tuple(answer["value"]),
        score_lead=None if lead is None else tuple(lead),
        score_weight=0.0,
        num_simulations=answer["num_simulations"],
        seconds=0.0,
        batch=1,
    )


def _actions(position: HostPosition, names: Sequence[str]) -> tuple[int, ...]:
    """Return the actions of the first names of a variation."""
    actions = []
    for name in names[: LINE_LENGTH + 1]:
        actions.append(position.action_of_name(name))
        position = position.after(actions[-1])
    return tuple(actions)


def analyzed_games(
    analyzer: "AgentAnalyzer", requests: Iterable[Request], follow: Callable[[int], None] = lambda count: None
) -> Iterator[tuple[Request, list[Analysis], "SearchProgram"]]:
    """Analyze all positions of games in batches across games; yield the games in their order.

    Args:
        analyzer: the agent.
        requests: the games.
        follow: called with the number of positions analyzed so far.
    """
    prepared = ((analyzer.prepare(request.game, request.settings), request) for request in requests)
    count = 0
    for search, group in groupby(prepared, key=itemgetter(0)):
        positions = ((request, turn) for _, request in group for turn in request.turns)
        analyses: list[Analysis] = []
        while batch := list(islice(positions, analyzer.batch)):
            for (request, turn), analysis in zip(
                batch, analyzer.analyze(search, [request.played(turn) for request, turn in batch]), strict=True
            ):
                analyses.append(analysis)
                if turn == request.turns[-1]:
                    yield request, analyses, search
                    analyses = []
            count += len(batch)
            follow(count)


def rated_answer(request: Request, analysis: Analysis, rated: RatedMove, name: str | None = None) -> dict[str, Any]:
    """Return a rated move as JSON: the answer of ``analyze`` for the position before it, and the move under ``played``."""
    return {
        **answer_of(request, rated.turn, analysis),
        "played": {
            "player": rated.player,
            "name": name,
            "move": rated.move,
            "action": rated.action,
            "visits": rated.visits,
            "prior": json_number(rated.prior),
            "value_before": json_number(rated.value_before),
            "value_after": json_number(rated.value_after),
            "loss": None if rated.loss is None else json_number(rated.loss),
            "points": None if rated.points is None else json_number(rated.points, 2),
            "accuracy": None if rated.accuracy is None else json_number(rated.accuracy, 1),
            **explained(request, rated.turn, rated.best_action),
        },
    }


@dataclass
class Tally:
    """Totals over the moves of one player."""

    moves: int = 0
    best: int = 0
    """Number of moves that equal the agent's move."""
    rated: int = 0
    """Number of moves with a known loss."""
    loss: float = 0.0
    """Sum of the losses."""
    choices: int = 0
    """Number of moves with an accuracy."""
    accuracy: float = 0.0
    """Sum of the accuracies."""

    def add(self, rated: RatedMove) -> None:
        """Add a move."""
        self.moves += 1
        self.best += rated.action == rated.best_action
        if rated.loss is not None:
            self.rated += 1
            self.loss += rated.loss
        if rated.accuracy is not None:
            self.choices += 1
            self.accuracy += rated.accuracy

    def summary(self) -> dict[str, Any]:
        """Return the totals, the mean loss and the mean accuracy as JSON."""
        mean = round(self.loss / self.rated, 6) if self.rated else None
        accuracy = round(self.accuracy / self.choices, 1) if self.choices else None
        totals = {"moves": self.moves, "best_moves": self.best, "rated": self.rated}
        return {**totals, "mean_loss": mean, "accuracy": accuracy}
