"""Recorded games, rated move by move: what each move lost, by searches of the positions before and after it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewe_jax import records
from tilewe_jax.agents.analysis import AgentAnalyzer, SearchProgram
from tilewe_jax.interop.analysis import Analysis, Candidate, GameSpec, Request, RequestError, answer_of, json_number, read_moves
from tilewe_jax.replay import recorded


@dataclass(frozen=True)
class RecordedGame:
    """A game of a file, finished or not."""

    number: int
    """Its number in the file, from 1."""
    spec: GameSpec
    deal: Any
    actions: tuple[int, ...]
    players: tuple[str, ...]
    """Names of the players by seat; empty where unknown."""

    def request(self) -> Request:
        """The request to analyse all its positions. Raises ``RequestError`` where a move is illegal."""
        actions, positions = read_moves(self.spec.host, self.deal, list(self.actions))
        turns = tuple(range(len(actions) + 1))
        return Request(self.number, self.spec, self.deal, actions, positions, turns, {}, None)

    def name(self, player: int) -> str | None:
        """The name of a player, without what would command a terminal; ``None`` where the file has none."""
        if not self.players:
            return None
        return "".join(letter if letter.isprintable() else "?" for letter in self.players[player])


def games_of(path: Path, games: Sequence[recorded.RecordedGame]) -> list[RecordedGame]:
    """The games of a file, to be rated. Raises ``RecordError`` for an empty file or an illegal move."""
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
    """A move of a recorded game, as its player might see it; all values are those of that player."""

    turn: int
    """Number of moves before it."""
    player: int
    """The player, from 0."""
    move: str
    action: int
    best_move: str
    """The move that the agent would have played."""
    best_action: int
    visits: int
    """Simulations that went through the move; 0 where it was no candidate."""
    prior: float
    """Its probability before the search."""
    value_before: float
    """Value of the position before it."""
    value_after: float
    """Value of the position after it, by a search of that position."""
    loss: float | None
    """Value of the best move less that of the move, at least 0; ``None`` where the search says nothing of the move."""


def rated_moves(request: Request, analyses: Sequence[Analysis], is_hidden: bool) -> list[RatedMove]:
    """The moves of a game, rated.

    The value of a move is that of the position after it. Where information is hidden that position is known to others than the
    player, and in part decided by chance; there it is the mean value of the simulations that went through the move.

    Args:
        request: the game.
        analyses: the analyses of all its positions, the last one included.
        is_hidden: whether information is hidden.
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
    """The analyses of all positions of games, searched in full batches across games; games come in their order.

    Args:
        analyzer: the agent.
        requests: the games, whose turns are all positions.
        follow: called with the number of positions that have been analysed.
    """
    open_games: deque[tuple[Request, SearchProgram, list[Analysis]]] = deque()
    tasks: deque[tuple[int, Request, SearchProgram]] = deque()
    done: dict[int, list[Analysis]] = {}
    count = 0

    def work() -> None:
        nonlocal count
        search = tasks[0][2]
        chosen: list[tuple[int, Request, SearchProgram]] = []
        while tasks and tasks[0][2] is search and len(chosen) < analyzer.batch:
            chosen.append(tasks.popleft())
        analyses = analyzer.analyze(search, [request.played(turn) for turn, request, _ in chosen])
        for (_, request, _search), analysis in zip(chosen, analyses, strict=True):
            done[id(request)].append(analysis)
        count += len(chosen)
        follow(count)

    def finished() -> Iterator[tuple[Request, list[Analysis], SearchProgram]]:
        while open_games and len(open_games[0][2]) == len(open_games[0][0].turns):
            request, search, analyses = open_games.popleft()
            del done[id(request)]
            yield request, analyses, search

    for request in requests:
        search = analyzer.prepare(request.game, request.settings)
        done[id(request)] = []
        open_games.append((request, search, done[id(request)]))
        tasks.extend((turn, request, search) for turn in request.turns)
        while len(tasks) >= analyzer.batch:
            work()
        yield from finished()
    while tasks:
        work()
    yield from finished()


def rated_answer(request: Request, analysis: Analysis, rated: RatedMove, name: str | None = None) -> dict[str, Any]:
    """A rated move as a JSON object: the answer of ``analyze`` to the position before it, and under ``played`` the move."""
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
    """What one player lost in all its moves."""

    moves: int = 0
    best: int = 0
    """Moves that the agent would have played too."""
    rated: int = 0
    """Moves whose loss is known."""
    loss: float = 0.0
    """Sum of the losses."""

    def add(self, rated: RatedMove) -> None:
        """Count a move."""
        self.moves += 1
        self.best += rated.action == rated.best_action
        if rated.loss is not None:
            self.rated += 1
            self.loss += rated.loss

    def summary(self) -> dict[str, Any]:
        """The means, as a JSON object."""
        mean = round(self.loss / self.rated, 6) if self.rated else None
        return {"moves": self.moves, "best_moves": self.best, "rated": self.rated, "mean_loss": mean}
