"""The public functions: their signatures, their examples, and what is compiled of them."""

import inspect
from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.search.test_agents import Guess
from tests.search.tictactoe import TicTacToe
from tests.support import assert_same
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


@pytest.mark.parametrize(
    ("policy", "settings", "others"),
    [
        (puct_policy, (SearchSettings, PuctRule), {}),
        (gumbel_policy, (SearchSettings, GumbelRule), {}),
        (determinized_policy, (SearchSettings,), {"rule": None, "num_determinizations": 4}),
        (ismcts_policy, (SearchSettings,), {"rule": None}),
    ],
)
def test_keywords_are_the_fields_of_the_settings(policy: Any, settings: tuple[Any, ...], others: dict[str, Any]) -> None:
    parameters = list(inspect.signature(policy).parameters.values())
    assert [item.name for item in parameters[:4]] == ["game", "evaluator", "state", "key"]
    keywords = {item.name: item.default for item in parameters[4:]}
    assert all(item.kind is inspect.Parameter.KEYWORD_ONLY for item in parameters[4:])
    of_trees = (
        {"root_candidate_pool", "leaves", "virtual_loss", "seconds", "exact_endings", "lookahead"}
        if policy is ismcts_policy
        else set()
    )
    names = {item.name: item.default for owner in settings for item in fields(owner) if item.name not in of_trees}
    assert keywords == others | names
    text = inspect.getdoc(policy)  # docstrings of Python 3.13 have lost their indentation already
    assert text
    for name in keywords:
        assert f"\n    {name}: " in text


def test_policies_are_the_searches_of_their_settings() -> None:
    game, key = TicTacToe(), jax.random.key(1)
    evaluator, state = playout_evaluator(game), game.init(None)
    settings = SearchSettings(12, 5, max_depth=4, stop_early=True)
    given: dict[str, Any] = {"num_simulations": 12, "num_candidates": 5, "max_depth": 4, "stop_early": True}
    puct, gumbel = PuctRule(c_init=2.0, dirichlet_alpha=0.3, temperature=1.0), GumbelRule(4, gumbel_scale=1.0, value_scale=0.2)
    pairs = [
        (puct_policy, {"c_init": 2.0, "dirichlet_alpha": 0.3, "temperature": 1.0}, Search(game, evaluator, puct, settings)),
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
        assert_same(by_function(state, key), jax.jit(searcher)(state, key))


def test_the_evaluator_is_compiled_once() -> None:
    """Evaluators are most of a compiled search: the root is evaluated by the same code as every leaf."""
    game = TicTacToe()

    def evaluator(params: Any, state: Any, key: Any) -> Evaluation:
        del params, key
        features = jnp.sin(jnp.outer(state.cells.astype(jnp.float32), jnp.arange(12.0)))
        return Evaluation(uniform_logits, jnp.abs(features @ jnp.ones((12, 2)))[0])

    searcher = Search(game, evaluator, PuctRule(dirichlet_alpha=0.3), SearchSettings(8, 9))
    states = jax.vmap(lambda _: game.init(None))(jnp.arange(4))
    keys = jax.random.split(jax.random.key(0), 4)
    player = SubtreeReuse(searcher)
    memory = jax.vmap(player.init)(states)
    for lowered in (jax.jit(jax.vmap(searcher)).lower(states, keys), jax.jit(jax.vmap(player.act)).lower(memory, states, keys)):
        assert lowered.as_text().count("stablehlo.dot_general") == 1


def test_public_names() -> None:
    assert sorted(search.__all__) == search.__all__
    for name in search.__all__:
        assert getattr(search, name).__doc__ or name in ("Evaluator", "Network")  # which are types of functions


def test_settled_early_with_information_sets() -> None:
    """A search of information sets that stops early plays what the whole search plays."""
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
