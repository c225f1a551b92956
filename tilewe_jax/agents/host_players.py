"""Adapters for players of other libraries."""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

from tilewe_jax.agents.host_player import ForfeitError, HostPlayer, OngoingGame
from tilewe_jax.game import Game
from tilewe_jax.tilewe import tournament
from tilewe_jax.tilewe.board import Board
from tilewe_jax.tilewe.convert import action_of_move, moves_of_action
from tilewe_jax.tilewe.engine import Engine


class EnginePlayer:
    """An engine of ``tilewe_jax.tilewe`` as a player on the host. Raises ``ValueError`` for games other than ``tilewe``."""

    def __init__(self, game: Game[Any], engine: Engine) -> None:
        if game.id != "tilewe" or game.options.keys() - {"players", "movegen"}:
            options = ", ".join(f"{name}={value}" for name, value in game.options.items())
            raise ValueError(f"is an engine of tilewe, and cannot play {game.id}" + (f" ({options})" if options else ""))
        self.engine, self.name = engine, engine.name

    def choose(self, game: OngoingGame, seconds: float, seed: str) -> int:
        """Return the engine's action."""
        board = game.view("tilewe.Board", lambda: Board(game.game.num_players), _push)
        with _seeded(seed):
            try:
                return action_of_move(tournament.search(self.engine, board, seconds))
            except tournament.ForfeitError as forfeit:
                raise ForfeitError(str(forfeit)) from None


def _push(board: Board, action: int) -> Board:
    board.push(moves_of_action(action, board)[0])
    return board


@contextlib.contextmanager
def _seeded(seed: str) -> Iterator[None]:
    """Seed Python's global random numbers, which engines use, and restore their state afterwards."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


ADAPTERS: dict[type[Any], Callable[[Game[Any], Any], HostPlayer]] = {Engine: EnginePlayer}
"""Adapters by class: functions of the game and a value that return a player; errors continue after the player's name."""
