"""Searches as functions of one position, with all their settings as keywords, as mctx has them; ``jax.vmap`` maps them.

They are ``Search``, ``Determinized`` and ``InformationSetSearch``, which is what to use where the settings are values already.
"""

from typing import TypeVar

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

State = TypeVar("State")


def puct_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    num_simulations: int = 64,
    num_candidates: int = 64,
    candidate_pool: int | None = None,
    max_depth: int = 32,
    score_weight: float | None = None,
    stop_early: bool = False,
    root_candidate_pool: int | None = None,
    leaves: int = 1,
    virtual_loss: float = 0.0,
    seconds: float | None = None,
    exact_endings: bool = False,
    lookahead: bool = False,
    c_init: float = 1.25,
    c_base: float = 19_652.0,
    fpu_value: float | None = None,
    fpu_reduction: float = 0.1,
    dirichlet_alpha: float = 0.0,
    dirichlet_fraction: float = 0.25,
    forced_playouts: float = 0.0,
    temperature: float = 0.0,
    value_temperature: float = 0.0,
) -> SearchOutput[State]:
    """Search a position by PUCT (AlphaZero, Silver et al. 2017), with the extensions of KataGo (Wu 2019).

    >>> import jax, tilewe_jax
    >>> from tilewe_jax.search import heuristic_evaluator, puct_policy
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> policy = jax.jit(lambda state, key: puct_policy(game, heuristic_evaluator(game), state, key, num_simulations=16))
    >>> output = policy(game.init(jax.random.key(0)), jax.random.key(1))
    >>> int(output.visits.sum()), int(output.tree.num_nodes)
    (16, 17)

    K stands for ``num_candidates``, P for the players of the game.

    Args:
        game: the rules.
        evaluator: ``evaluator(state, key) -> Evaluation``; called for the root and once a simulation.
        state: the position to search.
        key: random number generator state; consumed.
        num_simulations: number of simulations, at least 1.
        num_candidates: K, the actions that a node keeps: all legal ones where they fit, else a sample by their priors.
        candidate_pool: at most this many legal actions are scored per node; ``None`` is 1,024.
        max_depth: simulations go no deeper than this.
        score_weight: weight of the score utility in the value of finished games, between 0 and 1; ``None`` is 0.
        stop_early: whether the search ends once the remaining simulations cannot change the action.
        root_candidate_pool: ``candidate_pool`` of the root; ``None`` is that of other nodes.
        leaves: simulations of a tree that are evaluated together.
        virtual_loss: with several leaves, what a visit that is under way takes off the mean value of its candidate.
        seconds: time limit of the search in seconds, shared by a batch; ``None`` for none.
        exact_endings: whether proven values travel up the tree, and end the search once the root is proven.
        lookahead: whether the exact lookahead of the game, where it has one, leaves out actions that provably lose.
        c_init: weight of priors against values; ``pb_c_init`` of mctx.
        c_base: after this many visits the weight has grown by log(2); ``pb_c_base`` of mctx.
        fpu_value: value of a candidate without visits; ``None`` is the value of its node, less a reduction.
        fpu_reduction: that reduction, times the root of the visited prior probability.
        dirichlet_alpha: parameter of the Dirichlet noise in the priors of the root; 0 for none. mctx takes 0.3.
        dirichlet_fraction: fraction of that noise.
        forced_playouts: k of the forced playouts of KataGo; 0 for none.
        temperature: the action is drawn by ``visits ** (1 / temperature)``; 0 takes the most visited one. mctx takes 1.
        value_temperature: the action is drawn by exp(value / value_temperature) among the visited ones; 0 does not.

    Returns:
        The action, the policy (fractions of the visits) over the candidates, values, and the tree.

    Raises:
        ValueError: a setting is out of range.
    """
    rule = PuctRule(
        c_init,
        c_base,
        fpu_value,
        fpu_reduction,
        dirichlet_alpha,
        dirichlet_fraction,
        forced_playouts,
        temperature,
        value_temperature,
    )
    settings = SearchSettings(
        num_simulations=num_simulations,
        num_candidates=num_candidates,
        candidate_pool=candidate_pool,
        max_depth=max_depth,
        score_weight=score_weight,
        stop_early=stop_early,
        root_candidate_pool=root_candidate_pool,
        leaves=leaves,
        virtual_loss=virtual_loss,
        seconds=seconds,
        exact_endings=exact_endings,
        lookahead=lookahead,
    )
    return Search(game, evaluator, rule, settings)(state, key)


def gumbel_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    num_simulations: int = 64,
    num_candidates: int = 64,
    candidate_pool: int | None = None,
    max_depth: int = 32,
    score_weight: float | None = None,
    stop_early: bool = False,
    root_candidate_pool: int | None = None,
    leaves: int = 1,
    virtual_loss: float = 0.0,
    seconds: float | None = None,
    exact_endings: bool = False,
    lookahead: bool = False,
    max_num_considered_actions: int = 16,
    gumbel_scale: float = 0.0,
    value_scale: float = 0.1,
    maxvisit_init: float = 50.0,
    rescale_values: bool = True,
) -> SearchOutput[State]:
    """Search a position by full Gumbel AlphaZero ("Policy improvement by planning with Gumbel", Danihelka et al. 2022).

    >>> import jax, tilewe_jax
    >>> from tilewe_jax.search import gumbel_policy, heuristic_evaluator
    >>> game = tilewe_jax.make("santorini", size=3)
    >>> policy = jax.jit(lambda state, key: gumbel_policy(game, heuristic_evaluator(game), state, key, num_simulations=16))
    >>> output = policy(game.init(jax.random.key(0)), jax.random.key(1))
    >>> bool(output.policy.sum().round(3) == 1), int(output.tree.num_nodes)
    (True, 17)

    Args:
        game: the rules.
        evaluator: ``evaluator(state, key) -> Evaluation``; called for the root and once a simulation.
        state: the position to search.
        key: random number generator state; consumed.
        num_simulations: number of simulations, at least 1.
        num_candidates: K, the actions that a node keeps: all legal ones where they fit, else a sample by their priors.
        candidate_pool: at most this many legal actions are scored per node; ``None`` is 1,024.
        max_depth: simulations go no deeper than this.
        score_weight: weight of the score utility in the value of finished games, between 0 and 1; ``None`` is 0.
        stop_early: whether the search ends where there is only one action.
        root_candidate_pool: ``candidate_pool`` of the root; ``None`` is that of other nodes.
        leaves: simulations of a tree that are evaluated together.
        virtual_loss: with several leaves, what a visit that is under way takes off the mean value of its candidate.
        seconds: time limit of the search in seconds, shared by a batch; ``None`` for none.
        exact_endings: whether proven values travel up the tree, and end the search once the root is proven.
        lookahead: whether the exact lookahead of the game, where it has one, leaves out actions that provably lose.
        max_num_considered_actions: candidates with which sequential halving begins at the root.
        gumbel_scale: scale of the Gumbel noise at the root; 0, the default, to play, 1 (as in mctx) to explore in self-play.
        value_scale: weight of values against logits.
        maxvisit_init: added to the visits of the most visited candidate, with which values gain weight.
        rescale_values: whether the values of a node's candidates are stretched to lie between 0 and 1.

    Returns:
        The action, the improved policy (softmax of logits + completed Q-values) over the candidates, values, and the tree.

    Raises:
        ValueError: a setting is out of range.
    """
    rule = GumbelRule(max_num_considered_actions, gumbel_scale, value_scale, maxvisit_init, rescale_values)
    settings = SearchSettings(
        num_simulations=num_simulations,
        num_candidates=num_candidates,
        candidate_pool=candidate_pool,
        max_depth=max_depth,
        score_weight=score_weight,
        stop_early=stop_early,
        root_candidate_pool=root_candidate_pool,
        leaves=leaves,
        virtual_loss=virtual_loss,
        seconds=seconds,
        exact_endings=exact_endings,
        lookahead=lookahead,
    )
    return Search(game, evaluator, rule, settings)(state, key)


def determinized_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    rule: SelectionRule | None = None,
    num_determinizations: int = 4,
    num_simulations: int = 64,
    num_candidates: int = 64,
    candidate_pool: int | None = None,
    max_depth: int = 32,
    score_weight: float | None = None,
    stop_early: bool = False,
    root_candidate_pool: int | None = None,
    leaves: int = 1,
    virtual_loss: float = 0.0,
    seconds: float | None = None,
    exact_endings: bool = False,
    lookahead: bool = False,
) -> PolicyOutput:
    """Search a position with hidden information by determinization (PIMC): one search for each sampled determinization.

    Args:
        game: the rules; ``Game.determinize`` samples what the mover cannot see.
        evaluator: ``evaluator(state, key) -> Evaluation``.
        state: the position to search; what its mover cannot see makes no difference.
        key: random number generator state; consumed.
        rule: how candidates are selected; ``None`` is ``PuctRule()``.
        num_determinizations: number of determinizations, at least 1.
        num_simulations: simulations of each of them.
        num_candidates: K, the actions that a node keeps.
        candidate_pool: at most this many legal actions are scored per node; ``None`` is 1,024.
        max_depth: simulations go no deeper than this.
        score_weight: weight of the score utility in the value of finished games, between 0 and 1; ``None`` is 0.
        stop_early: whether the searches end once their remaining simulations cannot change their actions.
        root_candidate_pool: ``candidate_pool`` of the root; ``None`` is that of other nodes.
        leaves: simulations of a tree that are evaluated together.
        virtual_loss: with several leaves, what a visit that is under way takes off the mean value of its candidate.
        seconds: time limit of the search in seconds, shared by a batch; ``None`` for none.
        exact_endings: whether proven values travel up the tree, and end the search once the root is proven.
        lookahead: whether the exact lookahead of the game, where it has one, leaves out actions that provably lose.

    Returns:
        The action of the highest mean policy, the K candidates that have the highest, and mean values.

    Raises:
        ValueError: a setting is out of range.
    """
    settings = SearchSettings(
        num_simulations=num_simulations,
        num_candidates=num_candidates,
        candidate_pool=candidate_pool,
        max_depth=max_depth,
        score_weight=score_weight,
        stop_early=stop_early,
        root_candidate_pool=root_candidate_pool,
        leaves=leaves,
        virtual_loss=virtual_loss,
        seconds=seconds,
        exact_endings=exact_endings,
        lookahead=lookahead,
    )
    search = Search(game, evaluator, PuctRule() if rule is None else rule, settings)
    return Determinized(search, num_determinizations)(state, key)


def ismcts_policy(
    game: Game[State],
    evaluator: Evaluator,
    state: State,
    key: PRNGKeyArray,
    *,
    rule: SelectionRule | None = None,
    num_simulations: int = 64,
    num_candidates: int = 64,
    candidate_pool: int | None = None,
    max_depth: int = 32,
    score_weight: float | None = None,
    stop_early: bool = False,
) -> PolicyOutput:
    """Search a position with hidden information by single-observer information-set MCTS (Cowling et al. 2012).

    Args:
        game: the rules; ``Game.determinize`` samples what the mover cannot see, in every simulation anew.
        evaluator: ``evaluator(state, key) -> Evaluation``; its logits are asked for at every node of a simulation.
        state: the position to search; what its mover cannot see makes no difference.
        key: random number generator state; consumed.
        rule: how candidates are selected; ``None`` is ``PuctRule()``.
        num_simulations: number of simulations, at least 1.
        num_candidates: K, the actions for which a node has room.
        candidate_pool: at most this many legal actions are scored per node; ``None`` is 1,024.
        max_depth: simulations go no deeper than this.
        score_weight: weight of the score utility in the value of finished games, between 0 and 1; ``None`` is 0.
        stop_early: whether the search ends once the remaining simulations cannot change the action.

    Returns:
        The action, and the policy over the actions that were tried at the root, which are the candidates.

    Raises:
        ValueError: a setting is out of range.
    """
    settings = SearchSettings(
        num_simulations=num_simulations,
        num_candidates=num_candidates,
        candidate_pool=candidate_pool,
        max_depth=max_depth,
        score_weight=score_weight,
        stop_early=stop_early,
    )
    return InformationSetSearch(game, evaluator, PuctRule() if rule is None else rule, settings)(state, key)
