"""Evaluators: action logits and the value of a position, before any search below it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Action, Game, Policy, state_shapes
from tilewe_jax.lanes import each, per_lane, subkey, subkeys
from tilewe_jax.search.exported import Network, network_interface
from tilewe_jax.settings import check_number, setting, validate
from tilewe_jax.utils.boundaries import array, check_result, check_tree, name_of
from tilewe_jax.utils.checks import shown
from tilewe_jax.utils.loops import while_loop

State = TypeVar("State")
LogitsFn = Callable[[Int32[Array, "k"]], Float32[Array, "k"]]
"""Maps ids of legal actions to logits, ``int32[k] -> float32[k]``; a search calls it only for the actions that it considers."""


class Evaluation(NamedTuple):
    """The output of an evaluator for one position; P players."""

    logits: LogitsFn
    """Logits of legal actions: ``uniform_logits``, ``dense_logits(array)``, or any other function."""
    value: Float32[Array, "P"]
    """Expected outcome of every player, by seat; the outcomes of a game sum to 1."""


Evaluator = Callable[[Any, Any, PRNGKeyArray], Evaluation]
"""``evaluator(params, state, key) -> Evaluation`` for one position; the key is consumed. ``params`` is the pytree given to the
search as ``params``, for example a network; evaluators without parameters ignore it."""


def check_evaluation(game: Game[Any], evaluator: Any, evaluation: Any) -> Evaluation:
    """Check the types, shapes and dtypes that an evaluator returned; the logits are checked when they are computed.

    Raises ``TypeError`` or ``ValueError`` that names the evaluator.
    """
    source, by_seat = f"result of the evaluator {name_of(evaluator)}", array(jnp.float32, game.num_players)
    if not (isinstance(evaluation, tuple) and len(evaluation) == 2 and callable(evaluation[0])):
        raise TypeError(f"{source}: expected Evaluation(a function of actions, {by_seat}), got {shown(evaluation)}")
    logits, value = evaluation
    check_tree(source, {"value": value}, {"value": by_seat})

    def checked(actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        scores: Float32[Array, "k"] = logits(actions)
        check_tree(source, {"logits": scores}, {"logits": array(jnp.float32, *actions.shape)})
        return scores

    return Evaluation(logits if logits is uniform_logits else checked, value)


def uniform_logits(actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
    """Return equal logits. ``sample_candidates`` recognises this function and then skips scoring."""
    return jnp.zeros(actions.shape, jnp.float32)


def dense_logits(logits: Float32[Array, "num_actions"]) -> LogitsFn:
    """Wrap an array with the logits of all actions as a function of action ids."""
    return lambda actions: jnp.take(logits, actions, mode="clip")


def uniform_evaluator(game: Game[Any]) -> Evaluator:
    """Return the evaluator with equal logits and equal values."""
    return partial(_evaluate_uniformly, game)


def _evaluate_uniformly(game: Game[Any], params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
    del params, state, key
    return Evaluation(uniform_logits, jnp.full(game.num_players, 1 / game.num_players, jnp.float32))


def heuristic_evaluator(game: Game[Any]) -> Evaluator:
    """Return the evaluator of a game's static heuristics, ``heuristic_logits`` and ``heuristic_value``."""
    return partial(_evaluate_heuristics, game)


def _evaluate_heuristics(game: Game[Any], params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
    del params, key
    return Evaluation(partial(game.heuristic_logits, state), game.heuristic_value(state))


def playout_evaluator(
    game: Game[Any],
    num_playouts: int = 1,
    *,
    priors: bool = False,
    playout_policy: Policy | None = None,
    num_samples: int = 1,
    max_plies: int = 0,
    max_legal: int = 0,
    score_weight: float = 0.0,
) -> Evaluator:
    """Return the evaluator whose value is the mean outcome of Monte Carlo playouts.

    Args:
        game: the game.
        num_playouts: number of playouts from each position.
        priors: whether to use ``heuristic_logits`` as logits; otherwise they are uniform.
        playout_policy: policy of all players in the playouts; by default ``best_of(game, num_samples)``.
        num_samples: each move is the best of this many random actions by ``heuristic_logits``; 1 plays at random, 0 plays
            ``Game.playout_action``.
        max_plies: length at which a playout is cut off and valued by ``heuristic_value``; 0 means no limit.
        max_legal: positions with more legal actions are valued by ``heuristic_value`` without playouts; 0 means no limit. The
            remaining playouts start near the end of the game and are short.
        score_weight: weight of ``heuristic_value`` in the outcome of finished playouts.

    Raises ``ValueError`` for a number out of range.
    """
    check_number("num_playouts", num_playouts, 1)
    check_number("num_samples", num_samples, 0)
    check_number("max_plies", max_plies, 0)
    check_number("max_legal", max_legal, 0)
    check_number("score_weight", score_weight, 0, 1)
    choose, apply = playout_moves(game, playout_policy, num_samples)
    return _PlayoutEvaluator(game, choose, apply, num_playouts, priors, max_plies, max_legal, score_weight)


@dataclass(frozen=True, eq=False)
class _PlayoutEvaluator:
    game: Game[Any]
    choose: Policy
    apply: Callable[[Any, Action], Any]
    num_playouts: int
    priors: bool
    max_plies: int
    max_legal: int
    score_weight: float

    def __call__(self, params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
        del params
        value = jnp.mean(jax.vmap(self._play, in_axes=(None, 0))(state, subkeys(key, self.num_playouts)), axis=0)
        return Evaluation(partial(self.game.heuristic_logits, state) if self.priors else uniform_logits, value)

    def _play(self, state: Any, key: PRNGKeyArray) -> Float32[Array, "P"]:
        game = self.game
        is_played = game.num_legal(state) <= self.max_legal if self.max_legal else True
        last = play_out(game, self.choose, self.apply, state, key, self.max_plies, is_played)
        return jnp.where(game.is_terminal(last), terminal_value(game, last, self.score_weight), game.heuristic_value(last))


def play_out(
    game: Game[State],
    choose: Policy,
    apply: Callable[[State, Action], State],
    state: State,
    key: PRNGKeyArray,
    max_plies: int = 0,
    is_played: Bool[Array, ""] | bool = True,
) -> State:
    """Play a game to its end with one policy for all players and return the final state.

    Under ``vmap`` all games are played in one loop, in lanes (see ``tilewe_jax.lanes``), until the last one has ended.

    Args:
        game: the game.
        choose: the policy.
        apply: ``game.apply``, or for policies that support it ``game.apply_deferred`` or ``game.apply_in_playout``, see
            ``playout_moves``.
        state: the position to start from, without deferred passes.
        key: consumed.
        max_plies: maximum number of actions; 0 means no limit.
        is_played: if false, the position is returned unchanged.
    """

    def play(state: State, key: PRNGKeyArray, is_played: Bool[Array, ""]) -> State:
        def runs(state: State) -> Bool[Array, "lanes"]:
            return ~each(game.is_terminal)(state) & is_played

        def next_action(state: State, ply: Array) -> Int32[Array, "lanes"]:
            action = each(lambda state, key: choose(state, subkey(key, ply)))(state, key)
            return jnp.where(runs(state), action, -1)

        def goes_on(carry: tuple[State, Array, Array]) -> Array:
            state, _, ply = carry
            running = jnp.any(runs(state))
            return running & (ply <= max_plies) if max_plies else running

        # The action is chosen at the end of an iteration and carried, because XLA would compute it twice in the same iteration.
        # The first iteration applies -1, which changes nothing. To choose the first action before the loop would compile the
        # choice twice.
        def move(carry: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
            state, action, ply = carry
            state = each(apply)(state, action)
            return state, next_action(state, ply), ply + 1

        no_action = jnp.full(is_played.shape, -1, jnp.int32)
        return while_loop(goes_on, move, (state, no_action, jnp.int32(0)))[0]

    return per_lane(play)(state, key, jnp.asarray(is_played))


def playout_moves(game: Game[Any], policy: Policy | None, num_samples: int) -> tuple[Policy, Callable[[Any, Action], Any]]:
    """Return ``choose`` and ``apply`` for ``play_out``: the policy, or by default ``best_of`` with deferred passes."""
    if policy:
        return policy, game.apply
    return best_of(game, num_samples), game.apply_deferred if num_samples else game.apply_in_playout


def best_of(game: Game[Any], num_samples: int) -> Policy:
    """Return the policy ``Game.best_sampled``: with 1 sample, ``Game.sample_action``, with 0 ``Game.playout_action``.

    It supports ``apply_deferred``.
    """
    if num_samples <= 1:
        return game.sample_action if num_samples else game.playout_action
    return partial(game.best_sampled, k=num_samples)


def terminal_value(game: Game[Any], state: Any, score_weight: float | None) -> Float32[Array, "P"]:
    """Return the value of a finished game: the outcome, mixed with ``heuristic_value`` by the score weight."""
    returns = game.returns(state)
    return (1 - score_weight) * returns + score_weight * game.heuristic_value(state) if score_weight else returns


def network_evaluator(game: Game[Any], network: Network | None = None, symmetries: bool = False) -> Evaluator:
    """Return the evaluator that calls a network; the network is the evaluator's ``params``.

    A network maps ``Game.observe`` of the player to move to ``(logits, values)``: ``float[num_logits]``, see
    ``Game.gather_logits``, and the expected outcomes ``float[num_players]`` by seat, starting with the player to move. A
    network with a ``NetworkInterface`` may use another encoding. As ``params`` it is a callable pytree: an Equinox module, or
    ``jax.tree_util.Partial(apply, weights)``.

    Args:
        game: the game.
        network: the network to use when ``params`` is ``None``.
        symmetries: whether to average the network over all symmetries of the game.

    Raises ``ValueError`` if the network returns other shapes, or the game has no symmetries.
    """
    if symmetries and game.num_symmetries == 1:
        raise ValueError(f"{game.id} has no symmetries to average over")
    if network is not None:
        check_network(game, network)
    return partial(_evaluate_network, game, network, symmetries)


def check_network(game: Game[Any], network: Network) -> None:
    """Raise ``ValueError`` or ``TypeError`` if a network does not fit the game; nothing is compiled."""
    jax.eval_shape(partial(_predict, game, network), state_shapes(game))


def _predict(game: Game[Any], network: Network, state: Any) -> tuple[Array, Array]:
    """Return the logits of a network, and its values by absolute seat."""
    interface, player = network_interface(game, network), game.current_player(state)
    output = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), network(interface.observe(state, player)))
    named = {"logits": output[0], "values": output[1]} if isinstance(output, tuple) and len(output) == 2 else output
    expected = {"logits": array(jnp.float32, interface.num_logits), "values": array(jnp.float32, game.num_players)}
    check_result("network", network, named, expected)
    logits, value = output
    seats = (jnp.arange(game.num_players, dtype=jnp.int32) - player) % game.num_players
    return logits, value[seats]


def _evaluate_network(
    game: Game[Any], default: Network | None, symmetries: bool, params: Any, state: Any, key: PRNGKeyArray
) -> Evaluation:
    del key
    network: Network | None = default if params is None else params
    if network is None:
        raise ValueError("network_evaluator needs a network, as its argument or as params of the search")
    interface = network_interface(game, network)
    if not symmetries:
        logits, value = _predict(game, network, state)
        return Evaluation(partial(interface.gather_logits, state, logits), value)
    indices = jnp.arange(game.num_symmetries, dtype=jnp.int32)
    transformed = jax.vmap(game.transform, in_axes=(None, 0))(state, indices)
    all_logits, values = jax.vmap(partial(_predict, game, network))(transformed)

    def mean_logits(actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        renamed = jnp.take(jnp.asarray(game.action_symmetries), actions, axis=1, mode="clip")
        return jnp.mean(jax.vmap(interface.gather_logits)(transformed, all_logits, renamed), axis=0)

    return Evaluation(mean_logits, jnp.mean(values, axis=0))


@dataclass(frozen=True, eq=False)
class _MixedEvaluator:
    """An evaluator with the logits of ``policy`` and the weighted mean of the values of two evaluators."""

    game: Game[Any]
    policy: Evaluator
    playouts: Evaluator
    playout_weight: float
    """Weight of the values of ``playouts``, in [0, 1]."""
    max_legal: int
    """The weight is 0 in positions with more legal actions; 0 means no limit."""

    def __call__(self, params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
        logits, value = self.policy(params, state, subkey(key, 0))
        is_mixed = self.game.num_legal(state) <= self.max_legal if self.max_legal else jnp.asarray(True)
        playout_value = self.playouts(params, state, subkey(key, 1)).value
        mixed = (1 - self.playout_weight) * value + self.playout_weight * playout_value
        return Evaluation(logits, jnp.where(is_mixed, mixed, value))


@dataclass(frozen=True)
class EvaluatorSettings:
    """The evaluator of an agent: playouts, heuristics, or a network. Raises ``ValueError`` for numbers out of range."""

    num_playouts: int = setting(1, 0)
    """Playouts from each leaf; 0 uses the static ``Game.heuristic_value`` instead."""
    num_samples: int = setting(0, 0)
    """Each move of a playout is the best of this many random actions by ``Game.heuristic_logits``; 1 plays at random, 0 plays
    ``Game.playout_action``."""
    playout_policy: str = ""
    """Name of a policy of the game to use in playouts instead."""
    max_plies: int = setting(0, 0)
    """Maximum number of actions of a playout; 0 plays to the end."""
    priors: bool = True
    """Use ``Game.heuristic_logits`` as priors; otherwise they are uniform."""
    network: str = ""
    """A network that replaces playouts and heuristics: a file written by ``save_network``, or ``module:factory``."""
    playout_weight: float = setting(0.0, 0, 1)
    """Weight of playouts in the values of a network."""
    playout_max_legal: int = setting(0, 0)
    """Mix playouts only into positions with at most this many legal actions; 0 means no limit. Near the end of a game playouts
    are short and more accurate than a network."""
    symmetries: bool = False
    """Average the network over all symmetries of the position."""

    def __post_init__(self) -> None:
        validate(self)
        if self.playout_weight and not (self.network and self.num_playouts):
            raise ValueError("playout_weight needs a network and num_playouts of at least 1")
        if self.playout_max_legal and not self.playout_weight:
            raise ValueError("playout_max_legal needs playout_weight")
        if self.symmetries and not self.network:
            raise ValueError("symmetries needs a network")
        for name in ("playout_policy", "network"):
            if "," in getattr(self, name):
                raise ValueError(f"{name} must not contain a comma: {getattr(self, name)!r}")

    def build(self, game: Game[Any], score_weight: float, has_network: bool = False) -> Evaluator:
        """Build the evaluator; a network is its ``params``. Raises ``ValueError`` if it does not fit the game.

        Args:
            game: the game.
            score_weight: weight of the score utility in the outcome of playouts.
            has_network: whether ``params`` is a network even if the setting ``network`` is empty.
        """
        if self.network or has_network:
            by_network = network_evaluator(game, symmetries=self.symmetries)
            if not self.playout_weight:
                return by_network
            playouts = self._playouts(game, score_weight)
            return _MixedEvaluator(game, by_network, playouts, self.playout_weight, self.playout_max_legal)
        if not self.num_playouts:
            return heuristic_evaluator(game) if self.priors else uniform_evaluator(game)
        return self._playouts(game, score_weight)

    def policy(self, game: Game[Any]) -> Policy | None:
        """Return the playout policy; ``None`` for ``best_of``. Raises ``ValueError`` for an unknown name."""
        if not self.playout_policy:
            return None
        policies = game.policies()
        if self.playout_policy not in policies:
            raise ValueError(f"{game.id} has no policy {self.playout_policy!r}; it has {', '.join(policies)}")
        return policies[self.playout_policy]

    def _playouts(self, game: Game[Any], score_weight: float) -> Evaluator:
        return playout_evaluator(
            game,
            self.num_playouts,
            priors=self.priors,
            playout_policy=self.policy(game),
            num_samples=self.num_samples,
            max_plies=self.max_plies,
            max_legal=self.playout_max_legal,
            score_weight=score_weight,
        )
