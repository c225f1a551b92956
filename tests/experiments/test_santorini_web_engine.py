"""The engine that runs the web player of Santorini: in front of a stand-in of its files, and of the files themselves."""

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
"""A stand-in for their module: the rules are ours, and its search takes what the network says."""


class Network:
    """A stand-in for the network: it prefers the valid action of the highest number."""

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        if Path(path).read_text() != "network":
            raise RuntimeError("[ONNXRuntimeError]\n no protobuf")

    def run(self, names: list[str], inputs: dict[str, Any]) -> list[Any]:
        assert names == ["pi", "v"]
        board, valid = inputs["board"], inputs["valid_actions"]
        assert (board.shape, board.dtype, valid.shape, valid.dtype) == ((1, 25, 3), np.float32, (1, 162), bool)
        assert sorted(set(board[0, :, 0])) == [-2, -1, 0, 1, 2]
        assert board[0, :, 2].tolist() == [64, 64, *[0] * 23]
        return [np.where(valid, np.arange(162), -np.inf), np.zeros((1, 2), np.float32)]


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The modules of a checkout have common names, and are forgotten after each test."""
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
def test_it_plays_games_from_their_start(checkout: Path, placement: str) -> None:
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


def test_two_programs_that_disagree_are_noticed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy: Any = load_proxy(checkout)
    agent = WebAgent(proxy, 7, santorini_game())
    first = agent.choose(())
    monkeypatch.setattr(proxy.g, "getValidMoves", lambda board, player: np.zeros(162, bool))
    with pytest.raises(GtpError, match="other legal moves"):
        agent.choose(())
    proxy.board[0, 0, 1] += 1
    with pytest.raises(GtpError, match="the position"):
        agent.choose((first,))
    with pytest.raises(GtpError, match="cannot keep"):
        agent.set_time(1)
    agent.set_time(None)
    for names in (gtp_game("duo_official"), santorini_game(size=4)):
        with pytest.raises(GtpError, match="5 x 5 cells only"):
            WebAgent(proxy, 7, names)


def test_the_program_answers_and_their_prints_do_not(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"set_game santorini\ngenmove b\n")))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
    engine.main([str(checkout)])
    assert out.getvalue() == b"= \n\n= c2-d1*e1\n\n"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", "model_no_god.onnx is missing"),
        ("no network", "model_no_god.onnx is no network: [ONNXRuntimeError] no protobuf"),
        ("broken", "do not work: SyntaxError"),
        ("no runtime", "onnxruntime is not installed; pip install onnxruntime"),
        ("one simulation", "--simulations must be at least 2"),
    ],
)
def test_what_is_missing_is_named(
    checkout: Path, damage: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkout / "santorini"
    if damage == "missing":
        (folder / NETWORK).unlink()
    elif damage == "no network":
        (folder / NETWORK).write_text("git lfs")
    elif damage == "broken":
        (folder / "proxy.py").write_text("def")
    elif damage == "no runtime":
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
    reason="TILEWE_SANTORINI_WEB names no checkout of cestpasphoto.github.io, or there is no onnxruntime",
)
def test_random_games_in_step_with_the_web_player() -> None:
    """In 100 games both programs have the same boards, turns and legal moves, and at the end the same winner."""
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
