"""Speed of the host board of Tilewe, in CPU microseconds."""

import random
import time
from typing import Any

ROUNDS = 6
"""Number of moves of each player after which positions are measured."""


def measure(players: int, seconds: float, seed: int) -> dict[str, Any]:
    """Measure CPU microseconds of the host board in random middle-game positions, in this process; returns JSON."""
    from tilewe_jax.tilewe import Board

    rng = random.Random(seed)
    boards: list[Board] = []
    while len(boards) < 40:
        board = Board(players)
        while not board.finished and board.ply < ROUNDS * players:
            board.push(rng.choice(board.generate_legal_moves()))
        if not board.finished:
            boards.append(board)
    moves = [rng.choice(board.generate_legal_moves()) for board in boards]

    def push_and_pop() -> None:
        for board, move in zip(boards, moves, strict=True):
            board.push(move)
            board.pop()

    def generate() -> None:
        for board in boards:
            board.generate_legal_moves()

    def count() -> None:
        for board in boards:
            board.n_legal_moves()

    def create() -> None:
        for _ in boards:
            Board(players)

    figures: dict[str, Any] = {"game": "tilewe", "players": players, "form": "board", "positions": len(boards)}
    figures["legal_moves"] = round(sum(board.n_legal_moves() for board in boards) / len(boards), 1)
    for function in (generate, count, push_and_pop, create):
        times: list[float] = []
        end = time.perf_counter() + seconds / 4
        while not times or time.perf_counter() < end:
            started = time.process_time()
            function()
            times.append((time.process_time() - started) / len(boards))
        figures[f"{function.__name__}_us"] = round(1e6 * sorted(times)[len(times) // 2], 2)
    return figures
