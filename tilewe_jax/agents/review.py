"""Move ratings of recorded games: the value that each move lost, by searches of the positions before and after it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from tilewe_jax import records
from tilewe_jax.agents.analysis import AgentAnalyzer, SearchProgram
from tilewe_jax.interop.analysis import Analysis, Candidate, GameSpec, Request, RequestError, answer_of, json_number, read_moves
from tilewe_jax.replay import recorded


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


def rated_moves(request: Request, analyses: Sequence[Analysis], is_hidden: bool) -> list[RatedMove]:
    """Rate the moves of a game.

    The value of a move is the value of the position after it. With hidden information it is the mean value of the move in the
    search before it, because the next position depends on chance and on information that the player does not have.

    Args:
        request: the game.
        analyses: the analyses of all positions, including the last one.
        is_hidden: whether the game has hidden information.
    """
    moves = []
    for turn, action in enumerate(request.actions):
        analysis, position = analyses[turn], request.positions[turn]
        player = position.current_player
        candidates = {candidate.action: candidate for candidate in analysis.candidates}
        before, after = analysis.value[player], analyses[turn + 1].value[player]
        played = candidates.get(action)
        best_value = _value(candidates.get(analysis.action), player)
        value: float | None = after
        if action == analysis.action:
            value = best_value
        elif is_hidden:
            value = _value(played, player)
        known = best_value is not None and value is not None
        moves.append(
            RatedMove(
                turn=turn,
                player=player,
                move=position.action_name(action),
                action=action,
                best_move=position.action_name(analysis.action),
                best_action=analysis.action,
                visits=played.visits if played else 0,
                prior=played.prior if played else 0.0,
                value_before=before,
                value_after=after,
                loss=max(0.0, best_value - value) if known else None,  # type: ignore[operator]
            )
        )
    return moves


def _value(candidate: Candidate | None, player: int) -> float | None:
    return candidate.value[player] if candidate and candidate.value else None


def analyzed_games(
    analyzer: AgentAnalyzer, requests: Iterable[Request], follow: Callable[[int], None] = lambda count: None
) -> Iterator[tuple[Request, list[Analysis], SearchProgram]]:
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

    def add(self, rated: RatedMove) -> None:
        """Add a move."""
        self.moves += 1
        self.best += rated.action == rated.best_action
        if rated.loss is not None:
            self.rated += 1
            self.loss += rated.loss

    def summary(self) -> dict[str, Any]:
        """Return the totals and the mean loss as JSON."""
        mean = round(self.loss / self.rated, 6) if self.rated else None
        return {"moves": self.moves, "best_moves": self.best, "rated": self.rated, "mean_loss": mean}
