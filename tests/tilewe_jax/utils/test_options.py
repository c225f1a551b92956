"""Options of games accept or reject values of any kind in one line, the same with and without JAX."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewe_jax import make, register
from tilewe_jax.batching import init_stream, rollout, run_stream
from tilewe_jax.host_games import make_host_game
from tilewe_jax.registry import available_games, options

KINDS: list[Any] = [
    None, True, False, 0, 1, -1, 5, 2**31, 2**70, 0.0, 0.9, 5.0, -0.5, 1e308, float("inf"), float("-inf"), float("nan"),
    "", "x", "5", "random", "\n", [], [5], ["x"], [None], [True], [0.9], [[]], [[[0, 0]]], [[[0.9, 0]]], [[[True, 0]]],
    [[[float("inf"), 0]], [[0, 0]]], [["a", "b"]], [{}], {}, {"size": 5}, [[[0, 0, 0]]], [[0, 0]], "O1", ["O1"], [["O1"]],
]  # fmt: skip
NESTED: Any = []
for _ in range(400):
    NESTED = [NESTED]


@pytest.mark.parametrize("name", available_games())
def test_options_accept_or_reject_any_value(name: str) -> None:
    for option in options(name):
        for value in [*KINDS, NESTED]:
            refusal, other = refusal_of(make, name, option, value), refusal_of(make_host_game, name, option, value)
            assert refusal == other
            if refusal is not None:
                assert option in refusal
                assert "\n" not in refusal
                assert len(refusal) < 400
            if isinstance(value, (bool, float, dict)) and not isinstance(options(name)[option].default, bool):
                assert refusal is not None


def refusal_of(maker: Callable[..., Any], name: str, option: str, value: Any) -> str | None:
    try:
        maker(name, **{option: value})
    except ValueError as error:
        return str(error)
    return None


def test_options_survive_json() -> None:
    for name in available_games():
        for option in options(name):
            for value in KINDS:
                try:
                    game = make(name, **{option: value})
                except ValueError:
                    continue
                assert make(name, **json.loads(json.dumps(game.options))) == game


def test_integers_of_numpy_are_integers() -> None:
    assert make("santorini", size=np.int64(4)) == make("santorini", size=4)
    assert make("duo", size=np.array(8)) == make("duo", size=8)


@pytest.mark.parametrize("cells", [[[0, 0]] * 60_000, [[n, n] for n in range(60_000)], [[0, 0], [0, 0]], []])
def test_start_cells_are_different_cells_of_the_board(cells: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="start_cells") as error:
        make("duo", start_cells=[cells, [[1, 1]]])
    assert len(str(error.value)) < 400


def test_factories_of_any_kind_are_refused_in_one_line() -> None:
    def careless(pieces: Any = None, deep: "tuple[int, ...]" = (), rate: float = 0.5) -> Any:
        if sum(pieces or ()) + deep[0] + rate < 0:
            raise ValueError("never")
        return make("santorini")

    register("careless_game", careless)
    for given in ({"pieces": 5}, {"pieces": ["x"]}, {"deep": ["x"]}, {"deep": []}, {"deep": [True]}, {"rate": "1"}):
        with pytest.raises(ValueError, match="careless_game") as error:
            make("careless_game", **given)
        assert "\n" not in str(error.value)
    assert make("careless_game", deep=[1], rate=1) == make("santorini")
    for name, factory in ((5, careless), ("", careless), (None, careless), ("other_game", 5), ("other_game", None)):
        with pytest.raises(TypeError):
            register(name, factory)  # type: ignore[arg-type]
    for name in (5, None, [], {}, "no_game"):
        with pytest.raises(ValueError, match="game"):
            make(name)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="game"):
            make_host_game(name)  # type: ignore[arg-type]


@pytest.mark.untyped
def test_sizes_of_batches_are_positive_integers() -> None:
    import jax

    game, key = make("santorini", size=3), jax.random.key(0)
    stream = init_stream(game, key, 2, 1)
    for count, error in ((0, ValueError), (2.0, TypeError), (True, TypeError), ("2", TypeError), (None, TypeError)):
        with pytest.raises(error, match="batch must be"):
            rollout(game, key, count)  # type: ignore[arg-type]
        with pytest.raises(error, match="batch must be"):
            init_stream(game, key, count, 1)  # type: ignore[arg-type]
        with pytest.raises(error, match="num_steps must be"):
            run_stream(game, stream, count)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="policy must be"):
        rollout(game, key, 2, "random")  # type: ignore[arg-type]
