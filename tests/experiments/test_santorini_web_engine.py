"""The engine of the web player of Santorini, with stand-ins of its files and with a checkout."""

import importlib.util
import io
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.santorini_web import engine
from experiments.santorini_web.engine import CONSTANTS, FILES, NETWORK, WebAgent, load_proxy
from tilewe_jax.formats.names import gtp_game
from tilewe_jax.formats.santorini import santorini_game
from tilewe_jax.games.santorini.config import TURN_162
from tilewe_jax.interop.gtp import GtpError

CHECKOUT = os.environ.get("TILEWE_SANTORINI_WEB")
MODULES = ("js", "proxy", "SantoriniConstants", "Game", "MCTS", "SantoriniDisplay", "SantoriniGame", "SantoriniLogicNumba")
PROXY = """
import js
import numpy as np
from SantoriniConstants import NB_GODS
from tilewe_jax.games.santorini.config import TURN_162
from tilewe_jax.games.santorini.host import SantoriniBoard

class Game:
    def getValidMoves(self, board, player):
        valid = np.zeros(162, bool)
        valid[[TURN_162[action] for action in position().legal_actions()]] = True
        return valid

g, board, player, simulations = Game(), None, 1, 0

def position():
    return SantoriniBoard.from_array(np.moveaxis(board, -1, 0)[:2], 1 - 2 * player)

def init_game(number):
    global simulations
    simulations = number

def getNextState(action):
    global board, player
    after = position().after(TURN_162.index(action)).to_array()
    board, player = np.stack([*after, board[:, :, 2]], -1), 1 - player

async def guessBestAction():
    print("thinking")
    result = (await js.predict(board.flat[:], g.getValidMoves(board, player))).to_py()
    return int(np.argmax(result["pi"]))
"""
"""A stand-in for the module of the page, with our rules and the policy of the network instead of a search."""


class Network:
    """A stand-in for the network, which prefers the valid action with the highest number."""

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        if Path(path).read_text() != "network":
            raise RuntimeError("[ONNXRuntimeError]\n bad protobuf")

    def run(self, names: list[str], inputs: dict[str, Any]) -> list[Any]:
        assert names == ["pi", "v"]
        board, valid = inputs["board"], inputs["valid_actions"]
        assert (board.shape, board.dtype, valid.shape, valid.dtype) == ((1, 25, 3), np.float32, (1, 162), bool)
        assert sorted(set(board[0, :, 0])) == [-2, -1, 0, 1, 2]
        assert board[0, :, 2].tolist() == [64, 64, *[0] * 23]
        return [np.where(valid, np.arange(162), -np.inf), np.zeros((1, 2), np.float32)]


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the modules of a checkout, which have common names, after each test."""
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    runtime = ModuleType("onnxruntime")
    runtime.SessionOptions, runtime.InferenceSession = SimpleNamespace, Network  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    folder = tmp_path / "santorini"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text("")
    (folder / "proxy.py").write_text(PROXY)
    (folder / CONSTANTS).write_text("NB_GODS = 1\n")
    (folder / NETWORK).write_text("network")
    return tmp_path


@pytest.mark.parametrize("placement", ["default", "chosen"])
def test_the_engine_plays_whole_games(checkout: Path, placement: str) -> None:
    agent = WebAgent(load_proxy(checkout), 7, santorini_game(placement=placement))
    rng = random.Random(0)
    for _ in range(2):
        position, actions = santorini_game(placement=placement).start(), []
        while not position.is_terminal:
            if rng.random() < 0.5:
                actions.append(rng.choice(position.legal_actions()))
            else:
                actions.append(agent.choose(actions))
                if not position.placing:
                    assert actions[-1] == position.legal_actions()[-1]
            position = position.after(actions[-1])
        agent.new_game()
    assert sys.modules["proxy"].simulations == 7
    agent.set_seed(3)
    first = agent.choose(())
    agent.set_seed(3)
    assert agent.choose(()) == first


def test_disagreements_of_the_programs_are_errors(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy: Any = load_proxy(checkout)
    agent = WebAgent(proxy, 7, santorini_game())
    first = agent.choose(())
    monkeypatch.setattr(proxy.g, "getValidMoves", lambda board, player: np.zeros(162, bool))
    with pytest.raises(GtpError, match="legal moves"):
        agent.choose(())
    proxy.board[0, 0, 1] += 1
    with pytest.raises(GtpError, match="different position"):
        agent.choose((first,))
    with pytest.raises(GtpError, match="time"):
        agent.set_time(1)
    agent.set_time(None)
    for names in (gtp_game("duo_official"), santorini_game(size=4)):
        with pytest.raises(GtpError, match="5 x 5"):
            WebAgent(proxy, 7, names)


def test_output_of_the_page_is_not_an_answer(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"set_game santorini\ngenmove b\n")))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
    engine.main([str(checkout)])
    assert out.getvalue() == b"= \n\n= c2-d1*e1\n\n"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", "model_no_god.onnx"),
        ("bad network", "model_no_god.onnx: [ONNXRuntimeError] bad protobuf"),
        ("broken", "SyntaxError"),
        ("missing runtime", "pip install onnxruntime"),
        ("one simulation", "--simulations"),
    ],
)
def test_missing_and_broken_files_are_named(
    checkout: Path, damage: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkout / "santorini"
    if damage == "missing":
        (folder / NETWORK).unlink()
    elif damage == "bad network":
        (folder / NETWORK).write_text("git lfs")
    elif damage == "broken":
        (folder / "proxy.py").write_text("def")
    elif damage == "missing runtime":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SystemExit) as end:
        engine.main([str(checkout), "--simulations", "1" if damage == "one simulation" else "50"])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.slow
@pytest.mark.skipif(
    not CHECKOUT or not importlib.util.find_spec("onnxruntime"),
    reason="needs TILEWE_SANTORINI_WEB and onnxruntime",
)
def test_random_games_against_the_checkout() -> None:
    """Both programs have the same boards, turns, legal moves and winners in 100 games."""
    proxy: Any = load_proxy(Path(str(CHECKOUT)))
    rng = random.Random(0)
    for game in range(100):
        names = santorini_game(placement="chosen" if game % 2 else "default")
        agent, position, actions = WebAgent(proxy, 2, names), names.start(), []
        while not position.is_terminal:
            agent.choose(actions)
            actions.append(rng.choice(position.legal_actions()))
            position = position.after(actions[-1])
        proxy.getNextState(TURN_162[actions[-1]])
        winner = 1 if position.winner == 1 else -1
        assert proxy.g.getGameEnded(proxy.board, proxy.player).tolist() == [winner, -winner]
