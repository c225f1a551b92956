"""Batched Monte Carlo tree search over the ``Game`` protocol of ``tilewe_jax``.

Functions of one position: ``puct_policy``, ``gumbel_policy``, and for hidden information ``determinized_policy`` and
``ismcts_policy``. The same searches as values: ``Search``, ``Determinized``, ``InformationSetSearch``. ``tilewe_jax.agent``
creates them from text.
"""

from tilewe_jax.search.candidates import Candidates, sample_candidates
from tilewe_jax.search.determinization import Determinized
from tilewe_jax.search.evaluators import (
    Evaluation,
    Evaluator,
    EvaluatorSettings,
    dense_logits,
    heuristic_evaluator,
    network_evaluator,
    playout_evaluator,
    uniform_evaluator,
    uniform_logits,
)
from tilewe_jax.search.exported import Network
from tilewe_jax.search.exported import load as load_network
from tilewe_jax.search.exported import save as save_network
from tilewe_jax.search.gumbel import GumbelRule
from tilewe_jax.search.ismcts import InformationSetSearch
from tilewe_jax.search.mcts import Search
from tilewe_jax.search.memory import bytes_per_node
from tilewe_jax.search.output import PolicyOutput, SearchOutput
from tilewe_jax.search.policies import determinized_policy, gumbel_policy, ismcts_policy, puct_policy
from tilewe_jax.search.puct import PuctRule
from tilewe_jax.search.reuse import SubtreeReuse
from tilewe_jax.search.rules import ChildStats, RootContext, SelectionRule
from tilewe_jax.search.settings import SearchSettings
from tilewe_jax.search.solve import Solution, solve
from tilewe_jax.search.tree import Tree, child_stats, init_tree, subtree

__all__ = [
    "Candidates",
    "ChildStats",
    "Determinized",
    "Evaluation",
    "Evaluator",
    "EvaluatorSettings",
    "GumbelRule",
    "InformationSetSearch",
    "Network",
    "PolicyOutput",
    "PuctRule",
    "RootContext",
    "Search",
    "SearchOutput",
    "SearchSettings",
    "SelectionRule",
    "Solution",
    "SubtreeReuse",
    "Tree",
    "bytes_per_node",
    "child_stats",
    "dense_logits",
    "determinized_policy",
    "gumbel_policy",
    "heuristic_evaluator",
    "init_tree",
    "ismcts_policy",
    "load_network",
    "network_evaluator",
    "playout_evaluator",
    "puct_policy",
    "sample_candidates",
    "save_network",
    "solve",
    "subtree",
    "uniform_evaluator",
    "uniform_logits",
]
