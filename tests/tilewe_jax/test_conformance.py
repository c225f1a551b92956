from typing import Any

import jax
import jax.numpy as jnp
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import slow
from tilewe_jax import conformance
from tilewe_jax.registry import available_games

STATE_BYTES = {
    "tilewe": 400,
    "classic": 400,
    "classic_2": 400,
    "duo": 200,
    "duo_official": 200,
    "santorini": 64,
    "triominos": 720,
}

SLOW = ("tilewe", "duo", "duo_official", "classic", "classic_2", "triominos")
"""Of their rules engines a smaller game is among ``VARIATIONS``."""

VARIATIONS = [
    slow("tilewe", {"players": 1}),
    ("tilewe", {"players": 2, "size": 5, "pieces": ("O1", "I2", "L3", "X5")}),
    slow("duo", {"voluntary_pass": True, "size": 7}),
    ("duo", {"voluntary_pass": True, "size": 7, "pieces": ("O1", "I2", "L3", "T4")}),
    slow("classic_2", {"size": 6, "pieces": ("O1", "I2", "L3", "T4")}),
    ("santorini", {"size": 4, "placement": "chosen"}),
    slow("santorini", {"size": 3, "placement": "random"}),
    ("triominos", {"players": 3, "tiles": 10, "tray": 2, "start": "highest"}),
]


@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in available_games()])
def test_every_registered_game_conforms(name: str) -> None:
    # One game of each engine without `jit` too.
    eager = name in ("tilewe", "santorini", "triominos")
    conformance.check(tilewe_jax.make(name), max_state_bytes=STATE_BYTES[name], eager=eager)


@pytest.mark.parametrize(("name", "options"), VARIATIONS, ids=str)
def test_variations_conform(name: str, options: dict) -> None:
    conformance.check(tilewe_jax.make(name, **options), max_state_bytes=STATE_BYTES[name], eager=False)


class Broken(TicTacToe):
    """Tic-tac-toe with a fault."""

    id = "broken"

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Broken) and other.fault == self.fault

    def __hash__(self) -> int:
        return hash(self.fault)

    def apply(self, state, action):
        return super().apply(state, jnp.where((action < 0) & (self.fault == "apply"), 0, action))

    def is_legal(self, state, action):
        return super().is_legal(state, action) | ((action == 9) & (self.fault == "is_legal"))

    def returns(self, state):
        return super().returns(state) * (2 if self.fault == "returns" else 1)

    def heuristic_value(self, state):
        value = super().heuristic_value(state)
        return value * 3 if self.fault == "heuristic_value" else value

    def scores(self, state):
        scores = super().scores(state)
        return scores.astype(jnp.float32) if self.fault == "scores" else scores

    has_lookahead = property(lambda self: self.fault == "outcomes_of_actions")

    def outcomes_of_actions(self, state, actions):
        outcomes = super().outcomes_of_actions(state, actions)
        return outcomes - (actions >= 0).astype(jnp.int32) if self.fault == "outcomes_of_actions" else outcomes


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("scores", r"scores.*: expected an array int32\[2\], got float32\[2\]"),
        ("returns", "returns must sum to 1 at the end"),
        ("is_legal", "is_legal must be false for what is no action id"),
        ("apply", "a random game goes on after max_steps = 9 actions"),
        ("heuristic_value", "heuristic_value must sum to 1"),
        ("outcomes_of_actions", "outcomes_of_actions disagrees with the end of a game, or with the replies"),
    ],
)
def test_faults_are_named(fault: str, law: str) -> None:
    with pytest.raises(conformance.ConformanceError, match=law):
        conformance.check(Broken(fault), eager=False)


def test_a_game_that_is_not_registered_conforms(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert TicTacToe().id not in available_games()
    monkeypatch.setattr(conformance, "_SECONDS_BETWEEN_LINES", -1.0)
    conformance.check(TicTacToe())
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) > 10
    assert all(line.startswith("checking ") and line.endswith(" s") for line in lines)


class Traced(TicTacToe):
    """Tic-tac-toe that counts how often Python runs its rules."""

    calls = 0

    def legal_action_mask(self, state: Any) -> Any:
        type(self).calls += 1
        return super().legal_action_mask(state)


def test_rules_are_traced_a_few_times_whatever_the_number_of_positions(capsys: pytest.CaptureFixture[str]) -> None:
    """Rules with loops take seconds to compile, and outside of ``jit`` each call would compile them again."""
    game = Traced()
    position = game.host(game.init(jax.random.key(0)))
    calls = []
    for action in range(7):
        assert not position.is_terminal
        assert position.current_player == action % 2
        assert position.legal_actions() == list(range(action, 9))
        position.view()
        position = position.after(action)
        calls.append(Traced.calls)
    assert position.is_terminal
    assert position.scores() == (1, 0)
    assert len(set(calls)) == 1
    Traced.calls = 0
    conformance.check(game, quiet=True)
    assert Traced.calls < 40
    assert capsys.readouterr().err == ""


def test_a_function_that_looks_at_other_games_is_found() -> None:
    """As ``heuristic_logits`` of Santorini once did, by a sum over the wrong axis of a function of many games."""

    @jax.custom_batching.custom_vmap
    def crowd(value):
        return value

    @crowd.def_vmap
    def _(size, mapped, values):
        del size, mapped
        return jnp.broadcast_to(jnp.sum(values), values.shape), True

    class Crowded(TicTacToe):
        def heuristic_logits(self, state, actions):
            return jnp.broadcast_to(crowd(jnp.argmax(state.cells).astype(jnp.float32)), actions.shape)

    with pytest.raises(conformance.ConformanceError, match="heuristic_logits"):
        conformance.check(Crowded(), eager=False)
