"""Searches as functions of one position, as mctx has them; ``jax.vmap`` maps them.

They are ``Search``, ``Determinized`` and ``InformationSetSearch``. All take settings as values, and in ``overrides`` single
fields of them by name, like ``num_simulations=32``; ``TypeError`` is raised for a name that is no field.
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from jaxtyping import PRNGKeyArray

from tilewe_jax.game import Game
from tilewe_jax.search.determinization import Determinized
from tilewe_jax.search.evaluators import Evaluator
from tilewe_jax.search.gumbel import GumbelRule
from tilewe_jax.search.ismcts import InformationSetSearch
from tilewe_jax.search.mcts import Search
from tilewe_jax.search.output import PolicyOutput, SearchOutput
from tilewe_jax.search.puct import PuctRule
from tilewe_jax.search.rules import SelectionRule
from tilewe_jax.search.settings import SearchSettings
from tilewe_jax.utils.words import did_you_mean

State = TypeVar("State")
_SETTINGS, _PUCT, _GUMBEL = SearchSettings(), PuctRule(), GumbelRule()


def puct_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    params: Any = None,
    settings: SearchSettings = _SETTINGS,
    rule: SelectionRule = _PUCT,
    **overrides: Any,
) -> SearchOutput[State]:
    """Search a position by PUCT (AlphaZero, Silver et al. 2017), with the extensions of KataGo (Wu 2019).

    >>> import jax, tilewe_jax
    >>> from tilewe_jax.search import heuristic_evaluator, puct_policy
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> policy = jax.jit(lambda state, key: puct_policy(game, heuristic_evaluator(game), state, key, num_simulations=16))
    >>> output = policy(game.init(jax.random.key(0)), jax.random.key(1))
    >>> int(output.visits.sum()), int(output.tree.num_nodes)
    (16, 17)

    Args:
        game: the rules.
        evaluator: ``evaluator(params, state, key) -> Evaluation``; called for the root and once a simulation.
        state: the position to search.
        key: random number generator state; consumed.
        params: parameters of the evaluator, such as a network.
        settings: the size of the search.
        rule: how actions are selected.
        **overrides: fields of the settings and of the rule, in place of those given.

    Returns:
        The action, the policy (fractions of the visits) over the candidates, values, and the tree.
    """
    settings, rule = _changed(overrides, settings, rule)
    return Search(game, evaluator, rule, settings)(state, key, params)


def gumbel_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    params: Any = None,
    settings: SearchSettings = _SETTINGS,
    rule: SelectionRule = _GUMBEL,
    **overrides: Any,
) -> SearchOutput[State]:
    """Search a position by full Gumbel AlphaZero ("Policy improvement by planning with Gumbel", Danihelka et al. 2022).

    Arguments are those of ``puct_policy``; ``gumbel_scale=1`` explores, as self-play does.

    Returns:
        The action, the improved policy (softmax of logits + completed Q-values) over the candidates, values, and the tree.
    """
    return puct_policy(game, evaluator, state, key, params=params, settings=settings, rule=rule, **overrides)


def determinized_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    num_determinizations: int = 4,
    params: Any = None,
    settings: SearchSettings = _SETTINGS,
    rule: SelectionRule = _PUCT,
    **overrides: Any,
) -> PolicyOutput:
    """Search a position with hidden information by determinization (PIMC): one search for each sampled determinization.

    Arguments are those of ``puct_policy``, and ``num_determinizations``. What the mover cannot see makes no difference:
    ``Game.determinize`` samples it.

    Returns:
        The action of the highest mean policy, the K candidates that have the highest, and mean values.
    """
    settings, rule = _changed(overrides, settings, rule)
    return Determinized(Search(game, evaluator, rule, settings), num_determinizations)(state, key, params)


def ismcts_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    params: Any = None,
    settings: SearchSettings = _SETTINGS,
    rule: SelectionRule = _PUCT,
    **overrides: Any,
) -> PolicyOutput:
    """Search a position with hidden information by single-observer information-set MCTS (Cowling et al. 2012).

    Arguments are those of ``puct_policy``. What the mover cannot see makes no difference: ``Game.determinize`` samples it, in
    every simulation anew. The logits of the evaluator are asked for at every node of a simulation.

    Returns:
        The action, and the policy over the actions that were tried at the root, which are the candidates.
    """
    settings, rule = _changed(overrides, settings, rule)
    return InformationSetSearch(game, evaluator, rule, settings)(state, key, params)


def _changed(overrides: dict[str, Any], *values: Any) -> list[Any]:
    """Dataclasses with some of their fields changed."""
    names = [[item.name for item in fields(value)] if is_dataclass(value) else [] for value in values]
    for name in overrides:
        if not any(name in own for own in names):
            raise TypeError(f"there is no setting {name!r}{did_you_mean(name, [known for own in names for known in own])}")
    return [
        replace(value, **{name: overrides[name] for name in own if name in overrides}) if own else value
        for value, own in zip(values, names, strict=True)
    ]
