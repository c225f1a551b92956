"""The public functions and the programs that they compile to."""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.search.test_agents import Guess
from tests.search.tictactoe import TicTacToe
from tilewe_jax import search
from tilewe_jax.search import (
    Determinized,
    Evaluation,
    GumbelRule,
    InformationSetSearch,
    PuctRule,
    Search,
    SearchSettings,
    SubtreeReuse,
    determinized_policy,
    gumbel_policy,
    ismcts_policy,
    playout_evaluator,
    puct_policy,
    uniform_logits,
)


def test_overrides_are_fields_of_the_settings() -> None:
    game = TicTacToe()
    with pytest.raises(TypeError, match="num_simulations"):
        puct_policy(game, search.uniform_evaluator(game), game.init(None), jax.random.key(0), num_simulation=2)
    with pytest.raises(ValueError, match="num_simulations"):
        ismcts_policy(game, search.uniform_evaluator(game), game.init(None), jax.random.key(0), num_simulations=0)


def test_policies_trace_to_the_programs_of_their_searches() -> None:
    game, key = TicTacToe(), jax.random.key(1)
    evaluator, state = playout_evaluator(game), game.init(None)
    settings = SearchSettings(12, 5, max_depth=4, stop_early=True)
    given: dict[str, Any] = {"num_simulations": 12, "num_candidates": 5, "max_depth": 4, "stop_early": True}
    puct, gumbel = PuctRule(c_init=2.0, dirichlet_alpha=0.3, temperature=1.0), GumbelRule(4, gumbel_scale=1.0, value_scale=0.2)
    pairs = [
        (puct_policy, {"rule": replace(puct, c_init=1.0), "c_init": 2.0}, Search(game, evaluator, puct, settings)),
        (
            gumbel_policy,
            {"max_num_considered_actions": 4, "gumbel_scale": 1.0, "value_scale": 0.2},
            Search(game, evaluator, gumbel, settings),
        ),
        (
            determinized_policy,
            {"rule": puct, "num_determinizations": 2},
            Determinized(Search(game, evaluator, puct, settings), 2),
        ),
        (ismcts_policy, {"rule": gumbel}, InformationSetSearch(game, evaluator, gumbel, settings)),
    ]
    for policy, options, searcher in pairs:
        by_function = jax.jit(lambda state, key: policy(game, evaluator, state, key, **given, **options))  # noqa: B023
        assert program_text(by_function, state, key) == program_text(jax.jit(searcher), state, key)


def program_text(function: Any, state: Any, key: Any) -> str:
    return re.sub(r"module @\w+", "module", function.lower(state, key).as_text())


def test_the_evaluator_is_compiled_once() -> None:
    """Roots and leaves share the code of the evaluator, which dominates the size of the program."""
    game = TicTacToe()

    def evaluator(params: Any, state: Any, key: Any) -> Evaluation:
        del key
        features = jnp.sin(jnp.outer(state.cells.astype(jnp.float32), jnp.arange(12.0)))
        return Evaluation(uniform_logits, jnp.abs(features @ params)[0])

    searcher = Search(game, evaluator, PuctRule(dirichlet_alpha=0.3), SearchSettings(8, 9))
    states = jax.vmap(lambda _: game.init(None))(jnp.arange(4))
    keys = jax.random.split(jax.random.key(0), 4)
    player = SubtreeReuse(searcher)
    memory = jax.vmap(player.init)(states)
    params = jnp.ones((12, 2))
    searches = (jax.jit(jax.vmap(partial(call, params=params))) for call in (searcher, player.act))
    for lowered in (next(searches).lower(states, keys), next(searches).lower(memory, states, keys)):
        assert lowered.as_text().count("stablehlo.dot_general") == 1


def test_public_names() -> None:
    assert sorted(search.__all__) == search.__all__
    for name in search.__all__:
        assert getattr(search, name).__doc__ or name in ("Evaluator", "Network")  # type aliases


def test_information_set_searches_that_stop_early_play_the_same_action() -> None:
    game = Guess()
    keys = jax.random.split(jax.random.key(0), 8)
    states = jax.vmap(game.init)(keys)
    evaluator = search.uniform_evaluator(game)
    outputs = []
    for stop in (False, True):
        settings = SearchSettings(120, 4, max_depth=2, stop_early=stop)
        outputs.append(jax.jit(jax.vmap(InformationSetSearch(game, evaluator, PuctRule(), settings)))(states, keys))
    whole, stopped = outputs
    np.testing.assert_array_equal(whole.action, stopped.action)
    assert not np.array_equal(whole.policy, stopped.policy)
