"""Searches as functions of one position, like the policies of mctx; use ``jax.vmap`` for a batch.

They wrap ``Search``, ``Determinized`` and ``InformationSetSearch``. ``overrides`` are fields of the settings or the rule, like
``num_simulations=32``; an unknown name raises ``TypeError``.
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
        game: the game.
        evaluator: ``evaluator(params, state, key) -> Evaluation``; called for the root and once per simulation.
        state: the position to search.
        key: random key; consumed.
        params: parameters of the evaluator, for example a network.
        settings: settings of the search.
        rule: selection rule.
        **overrides: fields of the settings and of the rule.

    Returns:
        The action, the policy over the candidates (normalized visit counts), values, and the tree.
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

    Arguments as for ``puct_policy``; use ``gumbel_scale=1`` to explore in self-play.

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
    """Search a position with hidden information by determinization (PIMC): one search per sampled determinization.

    Arguments as for ``puct_policy``, and ``num_determinizations``. ``Game.determinize`` resamples the information that
    the player to move cannot see.

    Returns:
        The action with the highest mean policy, the K candidates with the highest mean policy, and mean values.
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

    Arguments as for ``puct_policy``. ``Game.determinize`` resamples the hidden information in every simulation, and the
    evaluator is called at every node of a simulation.

    Returns:
        The action, and the policy over the candidates, which are the actions tried at the root.
    """
    settings, rule = _changed(overrides, settings, rule)
    return InformationSetSearch(game, evaluator, rule, settings)(state, key, params)


def _changed(overrides: dict[str, Any], *values: Any) -> list[Any]:
    """Return the dataclasses with the overridden fields replaced; each name must be a field of one of them."""
    names = [{item.name for item in fields(value)} if is_dataclass(value) else set() for value in values]
    known = set().union(*names)
    for name in overrides.keys() - known:
        raise TypeError(f"unknown setting {name!r}{did_you_mean(name, sorted(known))}")
    return [
        replace(value, **{name: overrides[name] for name in overrides.keys() & own}) if own else value
        for value, own in zip(values, names, strict=True)
    ]
