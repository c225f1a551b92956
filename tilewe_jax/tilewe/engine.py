"""The base class of engines, and sample engines, which draw from Python's global ``random``."""

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.constants import N_PIECE_CONTACTS, N_PIECE_CORNERS, N_PIECE_TILES, PIECES, SIZE, TILES, Color
from tilewe_jax.tilewe.move import Move


class Engine:
    """Base class of programs that choose moves: override ``on_search``.

    ``estimated_elo`` is a guess of the engine's strength: 0 (or ``None``) is average, and 200 beats the average in three games
    of four.
    """

    def __init__(self, name: str, estimated_elo: float | None = None) -> None:
        self.name = name
        self.estimated_elo = estimated_elo
        self.seconds: float = 0
        self.end_at = time.time()

    def out_of_time(self) -> bool:
        """Return whether the time for the current move is over."""
        return time.time() >= self.end_at

    def search(self, board: Board, seconds: float = 1.0) -> Move:
        """Return a legal move for the player to move, within ``seconds``."""
        self.end_at = time.time() + seconds
        self.seconds = seconds
        return self.on_search(board, seconds)

    def on_search(self, board: Board, seconds: float) -> Move:
        """Return a legal move within ``seconds``; the board is a copy that the engine may change."""
        raise NotImplementedError


class MoveExecutor:
    """Context manager that makes a move, and takes it back at the end."""

    def __init__(self, board: Board, move: Move) -> None:
        self.board = board
        self.move = move

    def __enter__(self) -> None:
        self.board.push(self.move)

    def __exit__(self, *_: object) -> None:
        self.board.pop()


class RandomEngine(Engine):
    """Plays a random legal move."""

    def __init__(self, name: str = "Random", estimated_elo: float | None = None) -> None:
        super().__init__(name, -100.0 if estimated_elo is None else estimated_elo)

    def on_search(self, board: Board, seconds: float) -> Move:
        """Return a move drawn uniformly from the list."""
        return board.random_legal_move()


class _Scored(Engine):
    """Plays the move with the highest score, or with style "min" the lowest; ties are broken at random."""

    _styles: tuple[tuple[str, float], tuple[str, float]]
    """Name and Elo of style "max" and of style "min"."""

    def __init__(self, name: str | None = None, style: str = "max", estimated_elo: float | None = None) -> None:
        if style not in {"max", "min"}:
            raise ValueError(f"style must be 'max' or 'min', got {style!r}")
        default_name, default_elo = self._styles[style == "min"]
        super().__init__(name or default_name, default_elo if estimated_elo is None else estimated_elo)
        self.style = style

    def score(self, board: Board, move: Move) -> float:
        """Evaluate a move for the player to move."""
        raise NotImplementedError

    def on_search(self, board: Board, seconds: float) -> Move:
        """Return the best move by ``score``."""
        moves = board.generate_legal_moves()
        random.shuffle(moves)
        choose = max if self.style == "max" else min
        return choose(moves, key=lambda move: self.score(board, move))


class OpenCornersEngine(_Scored):
    """Plays the move after which the player has the most (or fewest) playable corners."""

    _styles = (("MostOpenCorners", 15.0), ("LeastOpenCorners", -250.0))

    def score(self, board: Board, move: Move) -> float:
        """Count the playable corners after the move."""
        player = board.current_player
        with MoveExecutor(board, move):
            return board.n_player_corners(player)


class PieceSizeEngine(_Scored):
    """Plays the piece with the most (or fewest) tiles; ties are broken by the number of its corners, then of its contacts."""

    _styles = (("LargestPiece", 30.0), ("SmallestPiece", -150.0))
    _piece_scores: ClassVar = [N_PIECE_TILES[p] * 100 + N_PIECE_CORNERS[p] * 10 + N_PIECE_CONTACTS[p] for p in PIECES]

    def score(self, board: Board, move: Move) -> float:
        """Count 100 per tile, 10 per corner and 1 per contact."""
        return self._piece_scores[move.piece]


class MoveDifferenceEngine(_Scored):
    """Plays the move that maximizes (or minimizes) the player's number of legal moves minus the opponents' total."""

    _styles = (("MaxMoveDiff", 50.0), ("MinMoveDiff", -200.0))

    def score(self, board: Board, move: Move) -> float:
        """Count own legal moves after the move, minus the legal moves of the opponents."""
        player = board.current_player
        with MoveExecutor(board, move):
            counts = [board.n_legal_moves(for_player=color) for color in range(board.n_players)]
        return 2 * counts[player] - sum(counts)


def _by_distance(weights: Sequence[float], far: Callable[[int, int], int]) -> list[float]:
    """Return a weight for each tile by its distances from the nearest edges along both axes, combined by ``far``."""
    last = SIZE - 1
    return [weights[far(min(x, last - x), min(y, last - y))] for y in range(SIZE) for x in range(SIZE)]


class TileWeightEngine(Engine):
    """Plays the move that covers the highest total weight of tiles; the first piece at the lowest open corner.

    Style "wall_crawl" prefers the edges, "turtle" its corner. ``custom_weights`` are the weights of the 400 tiles in the order
    of their numbers (``x + 20 * y``). ``weight_map`` is the name of ``style`` in version 0.0.1.
    """

    WALL_CRAWL_WEIGHTS = _by_distance([100, 90, 75, 60, 50, 40, 30, 25, 10, 0], min)
    TURTLE_WEIGHTS = _by_distance([512, 256, 128, 64, 32, 16, 8, 4, 2, 1], max)

    weight_maps: ClassVar = {"wall_crawl": WALL_CRAWL_WEIGHTS, "turtle": TURTLE_WEIGHTS}
    weight_elos: ClassVar = {"wall_crawl": -10.0, "turtle": -40.0}
    names: ClassVar = {"wall_crawl": "WallCrawler", "turtle": "Turtle"}

    def __init__(
        self,
        name: str | None = None,
        style: str = "wall_crawl",
        custom_weights: Sequence[float] | None = None,
        estimated_elo: float | None = None,
        *,
        weight_map: str | None = None,
    ) -> None:
        style = weight_map or style
        if custom_weights is not None:
            if len(custom_weights) != len(TILES):
                raise ValueError(f"custom_weights must have 400 values, got {len(custom_weights)}")
            self.weights, default_name, default_elo = list(custom_weights), "CustomTileWeights", 0.0
        elif style in self.weight_maps:
            self.weights, default_name, default_elo = self.weight_maps[style], self.names[style], self.weight_elos[style]
        else:
            raise ValueError(f"style must be one of {', '.join(self.weight_maps)}, got {style!r}")
        super().__init__(name or default_name, default_elo if estimated_elo is None else estimated_elo)

    def on_search(self, board: Board, seconds: float) -> Move:
        """Return the move that covers the highest weight; ties are broken at random."""
        moves = board.generate_legal_moves()
        random.shuffle(moves)
        if board.ply < board.n_players:
            corner = board.player_corners()[0]
            moves = [move for move in moves if move.to_tile == corner]

        weights = self.weights
        return max(moves, key=lambda move: sum([weights[tile] for tile in move.covered_tiles()]))


class SimpleSearchEngine(Engine):
    """Plays the move that leads to the best board by ``eval_board(board, player)``, by default ``default_eval``.

    Ties are broken by the order of moves. When the time is over, it plays the best move so far.
    """

    def __init__(
        self,
        name: str | None = None,
        eval_board: Callable[[Board, Color], float] | None = None,
        estimated_elo: float | None = None,
    ) -> None:
        default_elo = 75.0 if eval_board is None else 0.0
        super().__init__(name or "SimpleSearch", default_elo if estimated_elo is None else estimated_elo)
        self.eval_function = eval_board or self.default_eval

    def default_eval(self, board: Board, player: Color) -> float:
        """Count 0.5 per tile and 0.2 per playable corner, minus a fifth of that for each opponent; a win counts 1000."""
        value = 0.0
        for color, score in enumerate(board.scores):
            corners = board.n_player_corners(color)
            stuck = corners == 0 and not board.finished
            if color == player:
                value += score * 0.5 + corners * 0.2 - 1000 * stuck
                value += 1000 * (board.finished and color in board.winners)
            else:
                value += 3 * stuck - score * 0.1 - corners * 0.04
        return value

    def on_search(self, board: Board, seconds: float) -> Move:
        """Return the best move after one ply."""
        moves = board.generate_legal_moves()
        player = board.current_player
        best, best_move = -math.inf, random.choice(moves)
        for number, move in enumerate(moves, 1):
            if number % 100 == 0 and self.out_of_time():
                break
            with MoveExecutor(board, move):
                value = self.eval_function(board, player)
            if value > best:
                best, best_move = value, move
        return best_move


# Names of version 0.0.1.
MostOpenCornersEngine = OpenCornersEngine
LargestPieceEngine = PieceSizeEngine
MaximizeMoveDifferenceEngine = MoveDifferenceEngine
