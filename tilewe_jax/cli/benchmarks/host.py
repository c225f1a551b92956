"""Speed of the forms of games in plain Python, in CPU microseconds."""

import random
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 6
"""Number of moves of each player after which positions of the board are measured."""


def measure(game: str, options: dict[str, Any], seconds: float, seed: int) -> dict[str, Any]:
    """Measure CPU microseconds a move of random play on host positions, in this process; returns JSON.

    Games are played until the time is over, after a first game that fills tables. A move takes the list of legal actions, a
    draw from it, and the position after it.
    """
    from tilewe_jax.host_games import make_host_game

    host = make_host_game(game, **options)
    rng = random.Random(seed)

    def play() -> int:
        position, moves = host.init_from_deal(host.new_deal(rng)), 0
        while not position.is_terminal:
            position = position.after(rng.choice(position.legal_actions()))
            moves += 1
        return moves

    return {"game": game, "players": host.num_players, "form": "board", "play_us": _median(play, seconds)}


def measure_board(players: int, seconds: float, seed: int) -> dict[str, Any]:
    """Measure CPU microseconds of ``tilewe_jax.tilewe.Board``, in this process; returns JSON.

    ``board_play_us`` is a move of random play; the other operations are measured in random middle-game positions.
    """
    from tilewe_jax.tilewe import Board

    rng = random.Random(seed)

    def play(rounds: int | None = None) -> Board:
        board = Board(players)
        while not board.finished and (rounds is None or board.ply < rounds * players):
            board.push(rng.choice(board.generate_legal_moves()))
        return board

    boards: list[Board] = []
    while len(boards) < 40:
        board = play(ROUNDS)
        if not board.finished:
            boards.append(board)
    moves = [rng.choice(board.generate_legal_moves()) for board in boards]

    def push_and_pop() -> int:
        for board, move in zip(boards, moves, strict=True):
            board.push(move)
            board.pop()
        return len(boards)

    def every(operation: Callable[[Board], object]) -> Callable[[], int]:
        def run() -> int:
            for board in boards:
                operation(board)
            return len(boards)

        return run

    operations = {
        "board_play": lambda: play().ply,
        "generate": every(Board.generate_legal_moves),
        "count": every(Board.n_legal_moves),
        "push_and_pop": push_and_pop,
        "create": every(lambda _: Board(players)),
        "copy": every(Board.copy),
    }
    figures: dict[str, Any] = {"positions": len(boards)}
    figures["legal_moves"] = round(sum(board.n_legal_moves() for board in boards) / len(boards), 1)
    for name, run in operations.items():
        figures[f"{name}_us"] = _median(run, seconds / len(operations))
    return figures


def _median(run: Callable[[], int], seconds: float) -> float:
    """Return the median of the CPU microseconds of an operation; ``run`` returns how many of them it did."""
    run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        started = time.process_time()
        count = run()
        times.append((time.process_time() - started) / count)
    return round(1e6 * sorted(times)[len(times) // 2], 2)
