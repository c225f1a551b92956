"""Evaluators: the value of a position and the logits of its actions, before anything below it is searched."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray

from tilewe_jax.game import Action, Game, Policy, state_shapes
from tilewe_jax.search.exported import Network, network_interface
from tilewe_jax.search.made import made_again
from tilewe_jax.settings import check_number, setting, validate
from tilewe_jax.utils.boundaries import array, check_result, check_tree, name_of
from tilewe_jax.utils.checks import shown
from tilewe_jax.utils.loops import while_loop

State = TypeVar("State")
LogitsFn = Callable[[Int32[Array, "k"]], Float32[Array, "k"]]
"""Logits of some legal actions of one position, ``int32[k] -> float32[k]``; called for the actions that are looked at alone."""


class Evaluation(NamedTuple):
    """What an evaluator says of a position; P players."""

    logits: LogitsFn
    """Logits of legal actions: ``uniform_logits``, ``dense_logits(array)``, or any other function."""
    value: Float32[Array, "P"]
    """Expected outcome of every player, by seat; the outcomes of a game sum to 1."""


Evaluator = Callable[[Any, Any, PRNGKeyArray], Evaluation]
"""``evaluator(params, state, key) -> Evaluation``, for one position; the key is consumed. ``params`` is any pytree, such as the
weights of a network: what a search is given as ``params``. Evaluators without parameters ignore it."""


def check_evaluation(game: Game[Any], evaluator: Any, evaluation: Any) -> Evaluation:
    """Check what an evaluator gave: a function of actions, and a value for each seat.

    Raises ``TypeError`` or ``ValueError`` that names the evaluator; also when its logits are asked for.
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
    """All actions alike. ``sample_candidates`` recognises this function, and then scores nothing."""
    return jnp.zeros(actions.shape, jnp.float32)


def dense_logits(logits: Float32[Array, "num_actions"]) -> LogitsFn:
    """The logits of all actions, legal or not, as a function of some of them."""
    return lambda actions: jnp.take(logits, actions, mode="clip")


@made_again
def uniform_evaluator(game: Game[Any]) -> Evaluator:
    """The evaluator that knows nothing: equal logits, equal values."""

    def evaluate(params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
        del params, state, key
        return Evaluation(uniform_logits, jnp.full(game.num_players, 1 / game.num_players, jnp.float32))

    return evaluate


@made_again
def heuristic_evaluator(game: Game[Any]) -> Evaluator:
    """The static heuristics of a game, ``heuristic_logits`` and ``heuristic_value``."""

    def evaluate(params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
        del params, key
        return Evaluation(lambda actions: game.heuristic_logits(state, actions), game.heuristic_value(state))

    return evaluate


@made_again
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
    """The mean outcome of games played from a position (Monte Carlo rollouts).

    Args:
        game: the game.
        num_playouts: games played from each position.
        priors: whether the logits are those of ``heuristic_logits``; uniform otherwise.
        playout_policy: plays the games; by default ``best_of(game, num_samples)``.
        num_samples: each move is the best of so many random ones by ``heuristic_logits``; 1 plays at random.
        max_plies: games are cut off after so many actions and are then worth ``heuristic_value``; 0 plays to the end.
        max_legal: no games are played from positions with more legal actions than this, which are worth ``heuristic_value``; 0
            sets no limit. Games from the others are short, and so is the loop that plays those of a batch.
        score_weight: weight of ``heuristic_value`` in the outcome of games played to the end.

    Raises:
        ValueError: a number is out of range.
    """
    check_number("num_playouts", num_playouts, 1)
    check_number("num_samples", num_samples, 1)
    check_number("max_plies", max_plies, 0)
    check_number("max_legal", max_legal, 0)
    check_number("score_weight", score_weight, 0, 1)
    choose = playout_policy or best_of(game, num_samples)
    apply = game.apply if playout_policy else game.apply_deferred

    def play(state: Any, key: PRNGKeyArray) -> Float32[Array, "P"]:
        is_played = game.num_legal(state) <= max_legal if max_legal else True
        last = play_out(game, choose, apply, state, key, max_plies, is_played)
        return jnp.where(game.is_terminal(last), terminal_value(game, last, score_weight), game.heuristic_value(last))

    def evaluate(params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
        del params
        value = jnp.mean(jax.vmap(play, in_axes=(None, 0))(state, jax.random.split(key, num_playouts)), axis=0)
        return Evaluation((lambda actions: game.heuristic_logits(state, actions)) if priors else uniform_logits, value)

    return evaluate


def play_out(
    game: Game[State],
    choose: Policy,
    apply: Callable[[State, Action], State],
    state: State,
    key: PRNGKeyArray,
    max_plies: int = 0,
    is_played: Bool[Array, ""] | bool = True,
) -> State:
    """The state at the end of a game that a policy plays from a position.

    Args:
        game: the game.
        choose: the policy of all players.
        apply: ``game.apply``, or ``game.apply_deferred`` for policies that may be used with it, like ``best_of``.
        state: the position.
        key: consumed.
        max_plies: the game is cut off after so many actions; 0 plays it to the end.
        is_played: where it is false nothing is played, and the position is given back.
    """

    def goes_on(carry: tuple[State, PRNGKeyArray, Array]) -> Array:
        state, _, ply = carry
        running = ~game.is_terminal(state) & is_played
        return running & (ply < max_plies) if max_plies else running

    def move(carry: tuple[State, PRNGKeyArray, Array]) -> tuple[State, PRNGKeyArray, Array]:
        state, key, ply = carry
        key, move_key = jax.random.split(key)
        return apply(state, choose(state, move_key)), key, ply + 1

    last, _, _ = while_loop(goes_on, move, (state, key, jnp.int32(0)))
    return last


@made_again
def network_evaluator(game: Game[Any], network: Network | None = None, symmetries: bool = False) -> Evaluator:
    """A network as evaluator, with the network as its parameters.

    A network maps ``Game.observe`` of the mover to logits, ``float[num_logits]``, see ``Game.gather_logits``, and to the
    expected outcome by seat from the mover's on, ``float[num_players]``; or has an interface for both. As ``params`` it is a
    pytree that can be called: an Equinox module, or ``jax.tree_util.Partial(apply, weights)``.

    Args:
        game: the game.
        network: the network where ``params`` is ``None``.
        symmetries: whether the network is asked about the position under all symmetries of the game, and averaged.

    Raises:
        ValueError: the network gives other shapes, or the game has no symmetries.
    """
    if symmetries and game.num_symmetries == 1:
        raise ValueError(f"{game.id} has no symmetries to average over")

    def predict(network: Network, state: Any) -> tuple[Array, Array]:
        interface, player = network_interface(game, network), game.current_player(state)
        output = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), network(interface.observe(state, player)))
        named = {"logits": output[0], "values": output[1]} if isinstance(output, tuple) and len(output) == 2 else output
        expected = {"logits": array(jnp.float32, interface.num_logits), "values": array(jnp.float32, game.num_players)}
        check_result("network", network, named, expected)
        logits, value = output
        seats = (jnp.arange(game.num_players, dtype=jnp.int32) - player) % game.num_players
        return logits, value[seats]

    if network is not None:  # for errors, before it is compiled
        jax.eval_shape(partial(predict, network), state_shapes(game))

    def evaluate(params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
        del key
        asked: Network | None = network if params is None else params
        if asked is None:
            raise ValueError("the evaluator of a network needs the network: as an argument of network_evaluator, or as params")
        interface = network_interface(game, asked)
        if not symmetries:
            logits, value = predict(asked, state)
            return Evaluation(lambda actions: interface.gather_logits(state, logits, actions), value)
        indices = jnp.arange(game.num_symmetries, dtype=jnp.int32)
        transformed = jax.vmap(game.transform, in_axes=(None, 0))(state, indices)
        all_logits, values = jax.vmap(partial(predict, asked))(transformed)

        def mean_logits(actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
            renamed = jnp.take(jnp.asarray(game.action_symmetries), actions, axis=1, mode="clip")
            return jnp.mean(jax.vmap(interface.gather_logits)(transformed, all_logits, renamed), axis=0)

        return Evaluation(mean_logits, jnp.mean(values, axis=0))

    return evaluate


@made_again
def mixed_evaluator(
    game: Game[Any], policy: Evaluator, playouts: Evaluator, playout_weight: float, max_legal: int = 0
) -> Evaluator:
    """The logits of one evaluator, and its values averaged with those of another.

    Args:
        game: the game.
        policy: gives the logits, such as ``network_evaluator``.
        playouts: such as ``playout_evaluator``.
        playout_weight: weight of the values of ``playouts``, from 0 to 1.
        max_legal: in positions with more legal actions than this that weight is 0; 0 sets no limit.
    """

    def evaluate(params: Any, state: Any, key: PRNGKeyArray) -> Evaluation:
        key_policy, key_playouts = jax.random.split(key)
        logits, value = policy(params, state, key_policy)
        is_mixed = game.num_legal(state) <= max_legal if max_legal else jnp.asarray(True)
        mixed = (1 - playout_weight) * value + playout_weight * playouts(params, state, key_playouts).value
        return Evaluation(logits, jnp.where(is_mixed, mixed, value))

    return evaluate


@made_again
def best_of(game: Game[Any], num_samples: int) -> Policy:
    """The policy that plays the best of so many random actions, by ``heuristic_logits``.

    It may be used with ``apply_deferred``.
    """

    def choose(state: Any, key: PRNGKeyArray) -> Action:
        if num_samples == 1:
            return game.sample_action(state, key)
        actions = game.sample_actions(state, key, num_samples)
        best = jnp.argmax(jnp.where(actions >= 0, game.heuristic_logits(state, actions), -jnp.inf)).astype(jnp.int32)
        # All places are left over only where nobody can move.
        return jnp.where(actions[0] >= 0, actions[best], -1)

    return choose


def terminal_value(game: Game[Any], state: Any, score_weight: float | None) -> Float32[Array, "P"]:
    """The value of a finished game: win or loss, mixed with the score utility ``heuristic_value`` by its weight, if any."""
    returns = game.returns(state)
    return (1 - score_weight) * returns + score_weight * game.heuristic_value(state) if score_weight else returns


@dataclass(frozen=True)
class EvaluatorSettings:
    """The evaluator of an agent: playouts, heuristics, or a network. Raises ``ValueError`` for numbers out of range."""

    num_playouts: int = setting(1, 0)
    """Games played from each leaf; 0 takes the static ``Game.heuristic_value`` instead."""
    num_samples: int = setting(16, 1)
    """In those games each move is the best of so many random ones by ``Game.heuristic_logits``; 1 plays at random."""
    playout_policy: str = ""
    """A policy of the game that plays those games instead."""
    max_plies: int = setting(0, 0)
    """Playouts are cut off after so many actions; 0 plays them to the end."""
    priors: bool = True
    """Whether actions have priors by ``Game.heuristic_logits``; uniform otherwise."""
    network: str = ""
    """A network in place of all above: a file that ``save_network`` has written, or ``module:factory``."""
    playout_weight: float = setting(0.0, 0, 1)
    """Weight of playouts, as they are set above, in the values of a network."""
    playout_max_legal: int = setting(0, 0)
    """Playouts are mixed into the values of positions with at most so many legal actions; 0 sets no limit. Where few are
    legal, a game is nearly over, playouts are short and know more than a network; elsewhere it is the other way round."""
    symmetries: bool = False
    """Whether the network is averaged over all symmetries of the position."""

    def __post_init__(self) -> None:
        validate(self)
        if self.playout_weight and not (self.network and self.num_playouts):
            raise ValueError("playout_weight mixes playouts into the values of a network; name one, and num_playouts")
        if self.playout_max_legal and not self.playout_weight:
            raise ValueError("playout_max_legal limits the playouts that playout_weight mixes into values; set that too")
        if self.symmetries and not self.network:
            raise ValueError("symmetries are asked of a network; name one")
        for name in ("playout_policy", "network"):
            if "," in getattr(self, name):
                raise ValueError(f"{name} must not contain a comma: {getattr(self, name)!r}")

    def build(self, game: Game[Any], score_weight: float, network: Network | None = None) -> Evaluator:
        """The evaluator. Raises ``ValueError`` where it does not fit the game.

        Args:
            game: the game.
            score_weight: weight of the score utility in the outcome of playouts.
            network: what the name ``network`` stands for, already loaded; ``None`` where searches get it as their ``params``.
        """
        if self.network or network is not None:
            by_network = network_evaluator(game, network, self.symmetries)
            if not self.playout_weight:
                return by_network
            playouts = self._playouts(game, score_weight)
            return mixed_evaluator(game, by_network, playouts, self.playout_weight, self.playout_max_legal)
        if not self.num_playouts:
            return heuristic_evaluator(game) if self.priors else uniform_evaluator(game)
        return self._playouts(game, score_weight)

    def _playouts(self, game: Game[Any], score_weight: float) -> Evaluator:
        policies = game.policies() if self.playout_policy else {}
        if self.playout_policy and self.playout_policy not in policies:
            raise ValueError(f"{game.id} has no policy {self.playout_policy!r}; it has {', '.join(policies)}")
        return playout_evaluator(
            game,
            self.num_playouts,
            priors=self.priors,
            playout_policy=policies.get(self.playout_policy),
            num_samples=self.num_samples,
            max_plies=self.max_plies,
            max_legal=self.playout_max_legal,
            score_weight=score_weight,
        )
