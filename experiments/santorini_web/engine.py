"""The Santorini player of the web page cestpasphoto.github.io as a GTP engine.

    git clone https://github.com/cestpasphoto/cestpasphoto.github.io web
    pip install onnxruntime
    python -m experiments.santorini_web.engine web --simulations 50

The page runs Python code (rules and search) and an ONNX network in the browser. This program runs the same files from a
checkout, which is not part of this repository, with the search and settings of the page. It needs neither JAX nor a network
connection. On each of its turns it compares the legal moves of both programs.

The page places the workers at random. Here, with ``--placement default`` they start on the default cells, and with
``--placement chosen`` the first four moves place them; the engine chooses random cells for its own workers.
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
"""Simulations per move in addition to the reused tree: the default level of the page, "Easy". Its other levels are "Come on"
(3), "Easier" (12), "Medium" (200) and "Native" (800)."""
NETWORK = "model_no_god.onnx"
CONSTANTS = "SantoriniConstantsNoGod.py"
FILES = ("Game.py", "MCTS.py", "SantoriniDisplay.py", "SantoriniGame.py", "SantoriniLogicNumba.py", "proxy.py")
OWNED = 64
"""Marks the god power of a player in the third plane of a board of the page."""


class WebAgent:
    """The player of the page, as a ``tilewe_jax.interop.gtp.GtpAgent``.

    Args:
        proxy: the result of ``load_proxy``; the module holds the state of the current game.
        simulations: number of simulations per move.
        names: the game with its names in GTP.
    """

    def __init__(self, proxy: Any, simulations: int, names: GtpGame) -> None:
        if names.host.id != "santorini" or names.config.size != 5:
            raise GtpError("the web player supports only Santorini on 5 x 5 cells")
        self.name = f"web player, {simulations} simulations"
        self._proxy, self._simulations, self._names = proxy, simulations, names
        self._random = random.Random()
        self.new_game()

    def new_game(self, deal: Any = None) -> None:
        """Discard the tree. Raise ``GtpError`` for a game from a position."""
        if deal is not None:
            raise GtpError(f"{self.name} does not start from positions")
        self._board: SantoriniBoard = self._names.start()
        self._actions: tuple[int, ...] = ()
        self._is_set_up = False

    def set_seed(self, seed: int) -> None:
        """Seed the placement of workers; the search is deterministic."""
        self._random.seed(seed)

    def set_time(self, seconds: float | None) -> None:
        """Raise ``GtpError`` for any limit, because the number of simulations is fixed."""
        if seconds is not None:
            raise GtpError(f"{self.name} does not support a time limit")

    def choose(self, actions: Sequence[int]) -> int:
        """Return the action after the given actions; reuses the tree if they continue the actions of the last call."""
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
        """Start the game of the page with the placed workers."""
        if self._is_set_up:
            return
        self._proxy.init_game(self._simulations)
        workers, heights = self._board.to_array()
        powers = np.zeros_like(workers)
        powers.flat[:2] = OWNED  # both players have power 0, which means none
        self._proxy.board = np.stack([workers, heights, powers], -1)
        self._proxy.player = 0
        self._is_set_up = True

    def _check(self, legal: Sequence[int]) -> None:
        """Raise ``GtpError`` if the programs disagree about the position or its legal moves."""
        proxy, board = self._proxy, self._board.to_array()
        if proxy.player != self._board.current_player or (np.moveaxis(proxy.board, -1, 0)[:2] != board).any():
            raise GtpError("the web player has a different position")
        valid = np.flatnonzero(proxy.g.getValidMoves(proxy.board, proxy.player)).tolist()
        if valid != [TURN_162[action] for action in legal]:
            raise GtpError("the web player has different legal moves")


def load_proxy(checkout: Path) -> ModuleType:
    """Import the module ``proxy`` of a checkout, with its network. Raises ``ValueError`` for missing or broken files."""
    folder = checkout / "santorini"
    for name in (CONSTANTS, *FILES, NETWORK):
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name} is missing; CHECKOUT must be a clone of cestpasphoto/cestpasphoto.github.io")
    try:
        import onnxruntime
    except ImportError:
        raise ValueError("onnxruntime is not installed; pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        network = onnxruntime.InferenceSession(str(folder / NETWORK), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions lack a common base class
        raise ValueError(f"cannot load {folder / NETWORK}: {' '.join(str(error).split())[:200]}") from None

    async def predict(board: Any, valid: Any) -> _Evaluation:
        board = np.asarray(board, np.float32).reshape(1, 25, 3)
        policy, value = network.run(["pi", "v"], {"board": board, "valid_actions": np.asarray(valid, bool)[None]})
        return _Evaluation(policy[0], value[0])

    # The page provides the network as a function of the module js, and the constants under a shorter name.
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
        raise ValueError(f"cannot import the files in {folder}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(str(folder))


class _Evaluation:
    """An evaluation of the network, with the interface of JavaScript objects in the browser."""

    def __init__(self, policy: Any, value: Any) -> None:
        self._arrays = {"pi": policy, "v": value}

    def to_py(self) -> dict[str, Any]:
        return self._arrays


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer commands until ``quit`` or the end of input."""
    parser = argparse.ArgumentParser(description="The Santorini player of cestpasphoto.github.io as a GTP engine.")
    parser.add_argument("checkout", type=Path, help="folder of a checkout of cestpasphoto/cestpasphoto.github.io")
    parser.add_argument("--simulations", type=int, default=SIMULATIONS, help="simulations per move (%(default)s)")
    parser.add_argument(
        "--placement", choices=("default", "chosen"), default="default", help="placement of the workers (%(default)s)"
    )
    given = parser.parse_args(arguments)
    if given.simulations < 2:
        parser.error(f"--simulations must be at least 2, got {given.simulations}")
    try:
        proxy = load_proxy(given.checkout)
    except ValueError as error:
        parser.error(str(error))
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # the files of the page print
    names = santorini_game(placement=given.placement)
    serve(GtpSession(names, lambda game: WebAgent(proxy, given.simulations, game)), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
