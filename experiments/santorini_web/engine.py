"""The Santorini player of the web page cestpasphoto.github.io as an engine that speaks GTP, to play against our agents.

    git clone https://github.com/cestpasphoto/cestpasphoto.github.io web
    pip install onnxruntime
    python -m experiments.santorini_web.engine web --simulations 50

The page runs Python code, rules and search, in the browser, and asks a network in ONNX form. This program runs the same files
from a checkout, nothing of which is part of this repository: their search with their settings, one evaluation at a time.
It needs neither JAX nor a network connection. At each of its turns it checks that both programs have the same legal moves.

The page draws the cells of the workers. Here the controller says how a game begins: with ``--placement default`` the workers
stand in the middle; with ``--placement chosen`` the first four moves place them, at random where the engine itself is asked.
"""

import argparse
import asyncio
import importlib
import importlib.util
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tilewe_jax.formats.names import GtpGame
from tilewe_jax.formats.santorini import santorini_game
from tilewe_jax.games.santorini.config import TURN_162
from tilewe_jax.games.santorini.host import SantoriniBoard
from tilewe_jax.interop.gtp import GtpError, GtpSession, serve

SIMULATIONS = 50
"""Simulations for a move, beyond those of earlier moves: the level "Easy", which the page begins with. "Come on" has 3,
"Easier" 12, "Medium" 200, "Native" 800."""
NETWORK = "model_no_god.onnx"
CONSTANTS = "SantoriniConstantsNoGod.py"
FILES = ("Game.py", "MCTS.py", "SantoriniDisplay.py", "SantoriniGame.py", "SantoriniLogicNumba.py", "proxy.py")
OWNED = 64
"""The mark in the third plane of their boards of the god power that a player has."""


class WebAgent:
    """The player of the page, as a ``tilewe_jax.interop.gtp.GtpAgent``.

    Args:
        proxy: their module ``proxy``, as ``load_proxy`` gives it; its state is the game under way.
        simulations: number of simulations for a move.
        names: the game that is played, by the names of GTP.
    """

    def __init__(self, proxy: Any, simulations: int, names: GtpGame) -> None:
        if names.host.id != "santorini" or names.config.size != 5:
            raise GtpError("the web player has Santorini on 5 x 5 cells only")
        self.name = f"web player, {simulations} simulations"
        self._proxy, self._simulations, self._names = proxy, simulations, names
        self._random = random.Random()
        self.new_game()

    def new_game(self) -> None:
        """Forget the tree."""
        self._board: SantoriniBoard = self._names.start()
        self._actions: tuple[int, ...] = ()
        self._is_set_up = False

    def set_seed(self, seed: int) -> None:
        """Begin the random numbers anew, which place workers; the search has none."""
        self._random.seed(seed)

    def set_time(self, seconds: float | None) -> None:
        """Raises ``GtpError`` for any limit: the number of simulations is fixed."""
        if seconds is not None:
            raise GtpError(f"{self.name} cannot keep to a time")

    def choose(self, actions: Sequence[int]) -> int:
        """The action after these actions; the tree is kept where they continue those of the last call."""
        if self._actions != tuple(actions[: len(self._actions)]):
            self.new_game()
        for action in actions[len(self._actions) :]:
            if not self._board.placing:
                self._set_up()
                self._proxy.getNextState(TURN_162[action])
            self._board = self._board.after(action)
        self._actions = tuple(actions)
        legal = self._board.legal_actions()
        if self._board.placing:
            return self._random.choice(legal)
        self._set_up()
        self._check(legal)
        return TURN_162.index(asyncio.run(self._proxy.guessBestAction()))

    def _set_up(self) -> None:
        """Begin their game where ours has placed the workers."""
        if self._is_set_up:
            return
        self._proxy.init_game(self._simulations)
        workers, heights = self._board.to_array()
        powers = np.zeros_like(workers)
        powers.flat[:2] = OWNED  # both players have the power of number 0, which is none
        self._proxy.board = np.stack([workers, heights, powers], -1)
        self._proxy.player = 0
        self._is_set_up = True

    def _check(self, legal: Sequence[int]) -> None:
        """Raise ``GtpError`` where the two programs do not agree about a position."""
        proxy, board = self._proxy, self._board.to_array()
        if proxy.player != self._board.current_player or (np.moveaxis(proxy.board, -1, 0)[:2] != board).any():
            raise GtpError("the position of the web player is another one")
        valid = np.flatnonzero(proxy.g.getValidMoves(proxy.board, proxy.player)).tolist()
        if valid != [TURN_162[action] for action in legal]:
            raise GtpError("the web player has other legal moves")


def load_proxy(checkout: Path) -> ModuleType:
    """The module of a checkout that plays games, with its network behind it. Raises ``ValueError`` for what is missing."""
    folder = checkout / "santorini"
    for name in (CONSTANTS, *FILES, NETWORK):
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name} is missing: {checkout} is no checkout of cestpasphoto/cestpasphoto.github.io")
    try:
        import onnxruntime
    except ImportError:
        raise ValueError("onnxruntime is not installed; pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        network = onnxruntime.InferenceSession(str(folder / NETWORK), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no common base class
        raise ValueError(f"{folder / NETWORK} is no network: {' '.join(str(error).split())[:200]}") from None

    async def predict(board: Any, valid: Any) -> _Evaluation:
        board = np.asarray(board, np.float32).reshape(1, 25, 3)
        policy, value = network.run(["pi", "v"], {"board": board, "valid_actions": np.asarray(valid, bool)[None]})
        return _Evaluation(policy[0], value[0])

    # In the browser the network is a function of the page, and the file of constants has the name under which it is imported.
    browser = ModuleType("js")
    browser.predict = predict  # type: ignore[attr-defined]
    sys.modules["js"] = browser
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("SantoriniConstants", folder / CONSTANTS)
        assert spec
        assert spec.loader
        constants = importlib.util.module_from_spec(spec)
        sys.modules["SantoriniConstants"] = constants
        spec.loader.exec_module(constants)
        return importlib.import_module("proxy")
    except Exception as error:
        raise ValueError(f"the files in {folder} do not work: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(str(folder))


class _Evaluation:
    """What the network says of a position, with the method that objects of the browser have."""

    def __init__(self, policy: Any, value: Any) -> None:
        self._arrays = {"pi": policy, "v": value}

    def to_py(self) -> dict[str, Any]:
        return self._arrays


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer commands until ``quit`` or the end of input."""
    parser = argparse.ArgumentParser(description="The Santorini player of cestpasphoto.github.io as a GTP engine.")
    parser.add_argument("checkout", type=Path, help="folder of a checkout of cestpasphoto/cestpasphoto.github.io")
    parser.add_argument("--simulations", type=int, default=SIMULATIONS, help="simulations for a move (%(default)s)")
    parser.add_argument("--placement", choices=("default", "chosen"), default="default", help="how games begin (%(default)s)")
    given = parser.parse_args(arguments)
    if given.simulations < 2:
        parser.error(f"--simulations must be at least 2, as the first one only evaluates the position, not {given.simulations}")
    try:
        proxy = load_proxy(given.checkout)
    except ValueError as error:
        parser.error(str(error))
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # their code prints
    names = santorini_game(placement=given.placement)
    serve(GtpSession(names, lambda game: WebAgent(proxy, given.simulations, game)), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
