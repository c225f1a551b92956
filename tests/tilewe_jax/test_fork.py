"""Processes forked after the start of JAX: adapters report an error instead of a computation that hangs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 240
"""Seconds after which a process counts as hanging."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

ASYNC = """
import sys, warnings
warnings.simplefilter("ignore")
import gymnasium, jax
import tilewe_jax.interop.gymnasium

if __name__ == "__main__":
    if "used" in sys.argv:
        jax.numpy.zeros(1).block_until_ready()
    envs = gymnasium.make_vec(
        "tilewe_jax/santorini-v1", num_envs=2, vectorization_mode="async", size=3, opponent="random",
        vector_kwargs={"context": sys.argv[1]},
    )
    try:
        observations, _ = envs.reset(seed=0)
        print(observations.shape)
    except RuntimeError as error:
        print("RuntimeError:", error)
    envs.close(terminate=True)
"""

CHILDREN = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import jax, jax.numpy as jnp
import tilewe_jax
from tilewe_jax.search import PuctRule, Search, SearchSettings, uniform_evaluator
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop import alpha_zero_general, gymnasium, open_spiel, pettingzoo, pgx

game = tilewe_jax.make("santorini", size=3)
jnp.zeros(1).block_until_ready()
key = jax.random.key(0)
state = game.init(key)
batch = gymnasium.GameVectorEnv(game, 2)
turns = pettingzoo.env(game)
turns.reset(seed=0)
boards = alpha_zero_general.SantoriniGame(3)
board = boards.getInitBoard()
spiel = open_spiel.load_game(game)
calls = {
    "gymnasium": lambda: batch.reset(seed=0),
    "gymnasium-new": lambda: gymnasium.GameEnv("duo", size=6, pieces=["O1"]).reset(seed=0),
    "pettingzoo": lambda: turns.step(0),
    "pettingzoo-new": lambda: pettingzoo.env("duo", size=6).reset(),
    "pgx": lambda: pgx.PgxEnv(game).init(key),
    "open_spiel": lambda: spiel.new_initial_state(),
    "alpha_zero": lambda: boards.getValidMoves(board, 1),
    "make": lambda: tilewe_jax.make("duo"),
    "rollout": lambda: tilewe_jax.rollout(game, key, 2),
    "environment": lambda: tilewe_jax.Environment(game).reset(key, 2),
    "step": lambda: game.step(state, 0),
    "sample_action": lambda: game.sample_action(state, key),
    "search": lambda: Search(game, uniform_evaluator(game), PuctRule(), SearchSettings(2, 2))(state, key),
}
for name, call in calls.items():
    read, write = os.pipe()
    if not os.fork():
        signal.alarm(20)  # which kills the process, for one that hangs
        try:
            call()
            os.write(write, b"worked")
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        print(name, answer.read() or "hung", sep="\\t", flush=True)
    os.wait()
if not os.fork():  # what needs no JAX works
    try:
        start = make_host_game("santorini").init_from_deal(None)
        print("host", start.after(start.legal_actions()[0]).scores(), sep="\\t", flush=True)
    finally:
        os._exit(0)
os.wait()
"""


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_functions_report_forked_processes() -> None:
    for module in ("gymnasium", "pettingzoo", "pgx", "pyspiel"):
        pytest.importorskip(module)
    lines = dict(line.split("\t") for line in run(CHILDREN).splitlines())
    host = lines.pop("host", None)
    assert host is not None
    assert len(lines) == 13
    for name, answer in lines.items():
        assert "forked" in answer, (name, answer)
        assert "'spawn'" in answer


@pytest.mark.slow
def test_async_vector_environments_report_forked_processes(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    script = tmp_path / "program.py"
    script.write_text(ASYNC)

    def play(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(script), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    assert play("fork", "used").startswith("RuntimeError: ")
    assert play("spawn", "used").startswith("(2, ")
