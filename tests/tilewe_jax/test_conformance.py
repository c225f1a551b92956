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
"""Games whose rules engine is also tested with a smaller game of ``VARIATIONS``."""

VARIATIONS = [
    slow("tilewe", {"players": 1}),
    slow("tilewe", {"players": 2, "size": 5, "pieces": ("O1", "I2", "L3", "X5")}),
    slow("duo", {"voluntary_pass": True, "size": 7}),
    ("duo", {"voluntary_pass": True, "size": 5, "pieces": ("O1", "I2", "L3")}),
    slow("classic_2", {"size": 6, "pieces": ("O1", "I2", "L3", "T4")}),
    ("santorini", {"size": 3}),
    slow("santorini", {"size": 4, "placement": "chosen"}),
    slow("santorini", {"size": 3, "placement": "random"}),
    slow("triominos", {"players": 3, "tiles": 10, "tray": 2, "start": "highest"}),
    ("triominos", {"tiles": 4, "tray": 1}),
]


@pytest.mark.parametrize("name", [slow(name) for name in available_games()])
def test_registered_games_conform(name: str) -> None:
    eager = name in ("tilewe", "santorini", "triominos")  # one game of each engine
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

    def playout_action(self, state, key):
        return jnp.where(self.fault == "playout_action", 0, super().playout_action(state, key)).astype(jnp.int32)

    def apply_in_playout(self, state, action):
        return super().apply_in_playout(state, jnp.where(self.fault == "apply_in_playout", -1, action).astype(jnp.int32))

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
        ("scores", r"scores.*float32\[2\]"),
        ("returns", "returns must sum to 1"),
        ("is_legal", "is_legal must be false"),
        ("apply", "max_steps = 9"),
        ("heuristic_value", "heuristic_value must sum to 1"),
        ("playout_action", "playout_action returns 0, which is illegal"),
        ("apply_in_playout", "current_player after apply_in_playout"),
        ("outcomes_of_actions", "outcomes_of_actions disagrees"),
    ],
)
def test_errors_name_the_violated_law(fault: str, law: str) -> None:
    with pytest.raises(conformance.ConformanceError, match=law):
        conformance.check(Broken(fault), eager=False)


def test_unregistered_games_conform(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert TicTacToe().id not in available_games()
    monkeypatch.setattr(conformance, "_SECONDS_BETWEEN_LINES", -1.0)
    conformance.check(TicTacToe())
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) > 10
    assert all(line.startswith("checking ") and line.endswith(" s") for line in lines)


class Traced(TicTacToe):
    """Tic-tac-toe that counts the traces of its rules."""

    calls = 0

    def legal_action_mask(self, state: Any) -> Any:
        type(self).calls += 1
        return super().legal_action_mask(state)


def test_number_of_traces_does_not_grow_with_positions(capsys: pytest.CaptureFixture[str]) -> None:
    """Rules with loops take seconds to compile; without ``jit``, each call would compile them again."""
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


def test_dependence_on_other_games_of_a_batch_is_detected() -> None:
    @jax.custom_batching.custom_vmap
    def sum_over_batch(value):
        return value

    @sum_over_batch.def_vmap
    def _(size, mapped, values):
        del size, mapped
        return jnp.broadcast_to(jnp.sum(values), values.shape), True

    class Dependent(TicTacToe):
        def heuristic_logits(self, state, actions):
            return jnp.broadcast_to(sum_over_batch(jnp.argmax(state.cells).astype(jnp.float32)), actions.shape)

    with pytest.raises(conformance.ConformanceError, match="heuristic_logits"):
        conformance.check(Dependent(), eager=False)
