"""Pondering: the thread, and agents as GTP engines."""

import io
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bad_inputs import run
from tests.support import wait_until
from tests.tilewe_jax.agents.test_host_agent import AGENT, GAME, NAMES, answers
from tilewe_jax import agents
from tilewe_jax.agents.host_agent import HostAgent
from tilewe_jax.agents.pondering import Pondering
from tilewe_jax.interop.gtp import GtpSession, serve


def steps(log: list[str], name: str, count: int = 1_000_000) -> Iterator[None]:
    for _ in range(count):
        yield
        log.append(name)


def test_computations_run_until_stopped() -> None:
    pondering, log = Pondering(), list[str]()
    pondering.start(lambda: steps(log, "a"))
    wait_until(lambda: "a" in log)
    pondering.start(lambda: steps(log, "b"))
    wait_until(lambda: "b" in log)
    pondering.wait()
    assert log == sorted(log), "the second computation starts after the end of the first"
    count = len(log)
    time.sleep(0.01)
    assert len(log) == count
    assert not pondering.is_busy


def test_wait_raises_errors_once() -> None:
    def fail() -> Iterator[None]:
        yield
        raise RuntimeError("no memory")

    pondering = Pondering()
    pondering.start(fail)
    wait_until(lambda: not pondering.is_busy)
    with pytest.raises(RuntimeError, match="no memory"):
        pondering.wait()
    pondering.wait()


@pytest.fixture(scope="module")
def agent() -> HostAgent:
    return agents.agent(AGENT, GAME).host(ponders=True)


def test_the_tree_grows_on_the_opponents_time(agent: HostAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    session = GtpSession(NAMES, lambda names: agent)
    agent.set_seed(0)
    answers(session, "clear_board", "genmove b")
    wait_until(lambda: not agent.is_pondering)
    assert int(agent.memory.num_nodes) == agent.memory.capacity, "pondering ends when the tree is full"
    searched = agent.memory.candidates[0][agent.memory.children[0] >= 0]
    kept: dict[bool, list[int]] = {False: [], True: []}
    for ponders, visits in kept.items():
        with monkeypatch.context() as patch:
            if not ponders:
                patch.setattr(agent, "ponder", lambda actions: None)
            for action in searched.tolist()[:4]:
                agent.set_seed(0)
                answers(session, "clear_board", "genmove b")
                wait_until(lambda: not agent.is_pondering)
                answers(session, f"play w {NAMES.move_text(action)}")
                agent.follow(session.actions)
                visits.append(int(agent.memory.visits[0]))
    assert all(more >= fewer for more, fewer in zip(kept[True], kept[False], strict=True))
    assert sum(kept[True]) > sum(kept[False])


def test_commands_are_answered_while_pondering(agent: HostAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, goes_on = threading.Event(), threading.Event()

    def slow_part(key: Any) -> None:
        del key
        entered.set()
        assert goes_on.wait(60)

    monkeypatch.setattr(agent, "_search_part", slow_part)
    session = GtpSession(NAMES, lambda names: agent)
    answers(session, "clear_board", "genmove b")
    assert entered.wait(60)
    answers(session, "name", "showboard", "final_score")
    (legal,) = answers(session, "all_legal w")
    answers(session, f"play w {legal.split()[0]}")
    assert agent.is_pondering
    goes_on.set()
    assert answers(session, "genmove b") != ["pass"]


def test_errors_in_the_thread_are_reported(agent: HostAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing_part(*arguments: Any) -> None:
        raise MemoryError("too many trees")

    session = GtpSession(NAMES, lambda names: agent)
    with monkeypatch.context() as patch:
        patch.setattr(agent, "_search_part", failing_part)
        answers(session, "clear_board", "genmove b")
        (legal,) = answers(session, "all_legal w")
        wait_until(lambda: not agent.is_pondering)
    answers(session, f"play w {legal.split()[0]}")
    answer = session.answer("genmove b")
    assert answer.startswith("? ")
    assert "MemoryError: too many trees" in answer
    answers(session, "genmove b")


@pytest.mark.parametrize("commands", [b"genmove b\nquit\n", b"genmove b\n"])
def test_the_thread_ends_with_the_session(agent: HostAgent, commands: bytes) -> None:
    agent.new_game()
    out = io.BytesIO()
    serve(GtpSession(NAMES, lambda names: agent), io.BytesIO(commands), out)
    wait_until(lambda: not agent.is_pondering)
    assert out.getvalue().startswith(b"= ")


def test_only_searches_that_keep_a_tree_ponder() -> None:
    for text in ("random", "gumbel:num_playouts=0", "puct:num_playouts=0,reuse_subtree=false"):
        outcome = run("gtp", "--game", "duo_official", "--set", "size=6", "pieces=O1,I2,L3", "--agent", text, "--ponder")
        assert outcome.is_one_line, outcome
        assert "reuse_subtree" in outcome.err
