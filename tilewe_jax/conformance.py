"""Conformance suite for the ``Game`` contract, for built-in and user-supplied games: ``conformance.check(MyGame())``."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax.game import Game, check_contract
from tilewe_jax.host import HostPosition
from tilewe_jax.registry import available_games, make

BATCH = 16
"""Number of games in the batch of each check."""
_DRAWS = 8192
"""Number of samples in the chi-square test of ``sample_action``."""
_SECONDS_BETWEEN_LINES = 2.0
"""Minimum number of seconds between two lines of progress."""

History = list[tuple[Any, np.ndarray]]
"""Random play: the states of a batch after 0, 1, 2, ... actions, each with the next actions (-1 at the end)."""


class ConformanceError(AssertionError):
    """A violation of the ``Game`` contract, named in the message."""


def check(game: Game[Any], *, max_state_bytes: int | None = None, eager: bool = True, quiet: bool = False) -> None:
    """Check the ``Game`` contract by playing a game at random.

    The game need not be registered; if it is, ``make`` must return an equal game. Compilation takes nearly all of the time,
    some seconds for a small game.

    Args:
      game: the game.
      max_state_bytes: maximum size of a state in bytes; unlimited by default.
      eager: whether to also call ``step`` outside of ``jit``, which is slow.
      quiet: whether to suppress the progress on standard error.

    Raises ``ConformanceError``, which names the violated law.
    """
    functions = _Functions(game)
    history: History = []
    checks: dict[str, Callable[[], object]] = {
        "identity": lambda: check_identity(game),
        "shapes and dtypes": lambda: check_state(game, max_state_bytes),
        "random games": lambda: history.extend(random_play(game, functions)),
        "play to the end": lambda: check_play(game, functions, history),
        "masks": lambda: check_masks(game, functions, history),
        "illegal actions": lambda: check_illegal_actions(game, functions, history),
        "sampling": lambda: check_sampling(game, functions, history),
        "transformations": lambda: check_transformations(game, functions, history, eager),
        "independence in a batch": lambda: check_independence(functions, history),
        "symmetries": lambda: check_symmetries(game, functions, history),
        "hidden information": lambda: check_hidden_information(game, functions, history),
        "heuristics": lambda: check_heuristics(game, functions, history),
        "playouts": lambda: check_playouts(game, functions, history),
        "lookahead": lambda: check_lookahead(game, functions, history),
        "host form": lambda: check_host(game, functions, history),
    }
    started, said = time.monotonic(), -math.inf
    for number, (name, run) in enumerate(checks.items(), 1):
        if not quiet and time.monotonic() - said > _SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            print(f"checking {name}, {number} of {len(checks)}: {said - started:.0f} s", file=sys.stderr, flush=True)
        run()


class _Functions:
    """Batched functions of a game, each compiled once for all checks.

    The functions of only a state form one program, so that their common parts, such as the legal actions, compile once.
    """

    OF_A_STATE = "legal_action_mask num_legal current_player is_terminal is_truncated scores returns heuristic_value"
    OTHERS = (
        "apply apply_deferred resolve_passes step is_legal sample_action observe determinize playout init heuristic_logits"
        " transform"
    )

    def __init__(self, game: Game[Any]) -> None:
        names = self.OF_A_STATE.split()
        self._of_a_state = _compiled(jax.vmap(lambda state: {name: getattr(game, name)(state) for name in names}))
        self._others = {name: _compiled(jax.vmap(getattr(game, name))) for name in self.OTHERS.split()}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        other: Callable[..., Any] | None = self._others.get(name)
        return other or (lambda state: self._of_a_state(state)[name])


def _compiled(function: Callable[..., Any]) -> Any:
    """Apply ``jit`` with few optimizations, which halves the compilation time; the function only runs for milliseconds."""
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(function, compiler_options=options)


def random_play(game: Game[Any], functions: Any, seed: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
    """Play a batch of random games to the end and yield the entries of its ``History``."""
    key = jax.random.key(seed)
    state = functions.init(jax.random.split(key, BATCH))
    for step in range(game.max_steps + 1):
        action = functions.sample_action(state, jax.random.split(jax.random.fold_in(key, step), BATCH))
        yield state, np.asarray(action)
        if np.all(np.asarray(action) < 0):
            return
        state = functions.step(state, action)
    raise ConformanceError(f"a random game goes on after max_steps = {game.max_steps} actions")


def check_identity(game: Game[Any]) -> None:
    """Check that a game is hashable and that ``make`` returns an equal game if it is registered."""
    hash(game)
    _require(isinstance(game.version, int), f"version must be an int, got {game.version!r}")
    if game.id in available_games():
        again = make(game.id, **game.options)
        _require(again == game and hash(again) == hash(game), f"make({game.id!r}, **game.options) is another game")


def check_state(game: Game[Any], max_state_bytes: int | None) -> None:
    """Check that states are pytrees of arrays, and the shapes and dtypes of the results of all functions."""
    state = game.init(jax.random.key(0))
    leaves = jax.tree.leaves(state)
    _require(all(isinstance(leaf, jax.Array) for leaf in leaves), "all leaves of a state must be arrays")
    size = sum(leaf.nbytes for leaf in leaves)
    _require(max_state_bytes is None or size <= max_state_bytes, f"state has {size} bytes, more than {max_state_bytes}")
    _require_same(game.init_from_deal(game.deal(state)), state, "init_from_deal(deal(state)) is not the initial state")
    if game.fixed_start:
        _require_same(game.init(jax.random.key(1)), state, "fixed_start, but the initial state depends on the key")
        _require(game.deal(state) is None, "fixed_start, but the initial state has a deal")
    try:
        check_contract(game)
    except (TypeError, ValueError) as error:
        raise ConformanceError(str(error)) from error
    _require(bool(game.text(state)), "text is empty")
    _require(game.svg(state).startswith("<svg"), "svg is not an SVG document")


def check_play(game: Game[Any], functions: Any, history: History) -> None:
    """Check that every random game ends, and that returns are zero before the end and sum to 1 at the end."""
    for state, action in history:
        over = np.asarray(functions.is_terminal(state))
        _require_equal(over, action < 0, "sample_action must be -1 at the end, and only there")
        _require_equal(over, np.asarray(functions.num_legal(state)) == 0, "no action is legal at the end, and only there")
        player = np.asarray(functions.current_player(state))
        _require(np.all((player >= 0) & (player < game.num_players)), "current_player must be a seat")
        returns = np.asarray(functions.returns(state))
        _require(np.all(returns[~over] == 0), "returns must be zero before the end")
        if game.num_players > 1:
            _require_close(returns[over].sum(axis=1), 1, "returns must sum to 1 at the end")
        _require(np.all((returns >= 0) & (returns <= 1)), "returns must be between 0 and 1")
        truncated = np.asarray(functions.is_truncated(state))
        _require(not np.any(truncated & ~over), "a truncated game must be terminal")


def check_masks(game: Game[Any], functions: Any, history: History) -> None:
    """Check that the mask, ``is_legal`` and ``num_legal`` agree."""
    every = jnp.arange(-2, game.num_actions + 2, dtype=jnp.int32)
    one_by_one = _compiled(jax.vmap(game.is_legal, in_axes=(None, 0)))
    for index in sorted({0, len(history) // 3, len(history) // 2, max(0, len(history) - 2), len(history) - 1}):
        state, _ = history[index]
        mask = np.asarray(functions.legal_action_mask(state))
        _require_equal(mask.sum(axis=1), np.asarray(functions.num_legal(state)), "num_legal is not the size of the mask")
        for row in range(0, BATCH, 5):
            legal = np.asarray(one_by_one(_row(state, row), every))
            _require_equal(legal[2:-2], mask[row], "is_legal and legal_action_mask disagree")
            _require(not legal[:2].any() and not legal[-2:].any(), "is_legal must be false for an invalid action id")


def check_illegal_actions(game: Game[Any], functions: Any, history: History) -> None:
    """Check that illegal actions, any action at the end, and -1 leave the state unchanged."""
    rng = np.random.default_rng(0)
    for state, _ in (*history[:: max(1, len(history) // 4)], history[-1]):
        mask = np.asarray(functions.legal_action_mask(state))
        illegal = np.array([rng.choice(np.flatnonzero(~row)) if not row.all() else -1 for row in mask], np.int32)
        for action in (illegal, *(np.full(BATCH, a, np.int32) for a in (-1, -2, -(2**31), game.num_actions, 2**31 - 1))):
            _require(not np.any(np.asarray(functions.is_legal(state, action))), "is_legal holds for an illegal action")
            _require_same(functions.step(state, action), state, "step with an illegal action changes the state")
        _require_same(functions.apply(state, np.full(BATCH, -1, np.int32)), state, "apply with -1 changes the state")
    last, _ = history[-1]
    for action in rng.integers(0, game.num_actions, (8, BATCH)).astype(np.int32):
        _require_same(functions.step(last, action), last, "step at the end changes the state")


def check_sampling(game: Game[Any], functions: Any, history: History) -> None:
    """Check that ``sample_action`` is uniform, by a chi-square test at four and a half standard deviations."""
    sample = _compiled(jax.vmap(game.sample_action, in_axes=(None, 0)))
    for step in sorted({0, len(history) // 2, max(0, len(history) - 3)}):
        state = _row(history[step][0], 1)
        legal = np.flatnonzero(np.asarray(functions.legal_action_mask(history[step][0]))[1])
        if not len(legal):
            continue
        actions = np.asarray(sample(state, jax.random.split(jax.random.key(step), _DRAWS)))
        counts = np.bincount(actions, minlength=game.num_actions)
        _require(counts.sum() == counts[legal].sum() == _DRAWS, "sample_action returns illegal actions")
        expected, freedom = _DRAWS / len(legal), len(legal) - 1
        if not freedom:
            continue
        statistic = ((counts[legal] - expected) ** 2 / expected).sum()
        # Wilson-Hilferty: the cube root of chi-square divided by its degrees of freedom is nearly normal.
        deviation = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
        _require(abs(deviation) < 4.5, f"sample_action is not uniform: chi-square {statistic:.0f} with {freedom} degrees")


def check_transformations(game: Game[Any], functions: Any, history: History, eager: bool) -> None:
    """Check that ``vmap`` equals a loop, nested ``vmap`` a flat one, ``jit`` no ``jit``, and deferred passes ``apply``."""
    single = _compiled(game.step)
    twice = _compiled(jax.vmap(jax.vmap(game.step)))
    outer = _compiled(jax.vmap(jax.vmap(game.is_legal, in_axes=(None, 0)), in_axes=(0, None)))
    for index in sorted({0, len(history) // 2, max(0, len(history) - 2)}):
        state, action = history[index]
        after = functions.step(state, action)
        _require_same(functions.step(state, action), after, "repeating a step changes the result")
        for row in (0, BATCH - 1):
            _require_same(single(_row(state, row), action[row]), _row(after, row), "vmap and a loop over games differ")
        nested = jax.tree.map(lambda leaf: leaf.reshape(2, BATCH // 2, *leaf.shape[1:]), (state, action))
        flat = jax.tree.map(lambda leaf: leaf.reshape(BATCH, *leaf.shape[2:]), twice(*nested))
        _require_same(flat, after, "nested vmap and vmap differ")
        legal = outer(state, action)
        _require_equal(np.diagonal(legal), action >= 0, "is_legal differs under nested vmap")
        deferred = functions.apply_deferred(state, action)
        _require_same(functions.resolve_passes(deferred), after, "resolve_passes after apply_deferred is not apply")
        for _ in range(game.num_players):
            deferred = functions.apply_deferred(deferred, np.full(BATCH, -1, np.int32))
        _require_same(deferred, after, "apply_deferred with -1 does not make the forced passes one by one")
    if eager:
        state, action = _row(history[len(history) // 2], 0)
        _require_same(game.step(state, jnp.int32(action)), single(state, action), "step differs with and without jit")
    keys = jax.random.split(jax.random.key(3), BATCH)
    returns = np.asarray(functions.playout(history[len(history) // 2][0], keys))
    if game.num_players > 1:
        _require_close(returns.sum(axis=1), 1, "the returns of a playout must sum to 1")


def check_independence(functions: Any, history: History) -> None:
    """Check that the result for one game of a batch does not depend on the other games of the batch."""
    state, action = history[len(history) // 2]
    seat = np.zeros(BATCH, np.int32)
    arguments: dict[str, tuple[Any, ...]] = dict.fromkeys(
        ("legal_action_mask", "num_legal", "is_terminal", "scores", "returns"), ()
    )
    arguments |= {"heuristic_value": (), "apply": (action,), "is_legal": (action,), "observe": (seat,)}
    arguments |= {"heuristic_logits": (np.repeat(action[:, None], 8, axis=1),)}
    for name, more in arguments.items():
        given = (state, *more)
        repeated = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:1], BATCH, axis=0), given)
        function = getattr(functions, name)
        _require_same(_row(function(*repeated), 0), _row(function(*given), 0), f"{name} depends on the other games of a batch")


def check_symmetries(game: Game[Any], functions: Any, history: History) -> None:
    """Check that a symmetry maps legal actions to legal actions and keeps the player to move, scores, returns and end."""
    table = np.asarray(game.action_symmetries)
    _require(table.shape == (game.num_symmetries, game.num_actions), "action_symmetries has a wrong shape")
    _require_equal(table[0], np.arange(game.num_actions), "symmetry 0 must be the identity")
    for state, _ in (history[0], history[len(history) // 2]):
        mask = np.asarray(functions.legal_action_mask(state))
        for index in range(game.num_symmetries):
            transformed = functions.transform(state, jnp.full(BATCH, index, jnp.int32))
            if index == 0:
                _require_same(transformed, state, "transform with symmetry 0 changes the state")
            moved = np.zeros_like(mask)
            rows, actions = np.nonzero(mask)
            moved[rows, table[index][actions]] = True
            _require_equal(
                np.asarray(functions.legal_action_mask(transformed)), moved, f"symmetry {index} changes the legal actions"
            )
            _require_same_facts(functions, transformed, state, f"symmetry {index}")


def check_hidden_information(game: Game[Any], functions: Any, history: History) -> None:
    """Check that ``determinize`` keeps the observation of the observer, the player to move, scores, returns and end."""
    is_default = type(game).determinize is Game.determinize
    _require(game.has_hidden_information or is_default, "has_hidden_information must be true for a game with determinize")
    keys = jax.random.split(jax.random.key(1), BATCH)
    for state, _ in history[:: max(1, len(history) // 3)]:
        for player in range(game.num_players):
            seat = jnp.full(BATCH, player, jnp.int32)
            resampled = functions.determinize(state, seat, keys)
            _require_same(
                functions.observe(resampled, seat), functions.observe(state, seat), "determinize changes the observation"
            )
            _require_same_facts(functions, resampled, state, "determinize")


def check_heuristics(game: Game[Any], functions: Any, history: History) -> None:
    """Check ``sample_actions``, ``nth_legal`` and ``playout_action``. Check that heuristics are finite and normalized."""
    size = 8
    nth_legal = _compiled(jax.vmap(game.nth_legal, in_axes=(0, None)))
    choose = _compiled(jax.vmap(lambda state, key: (game.sample_actions(state, key, size), game.playout_action(state, key))))
    for index in sorted({0, max(0, len(history) - 4), len(history) - 1}):
        state, _ = history[index]
        mask = np.asarray(functions.legal_action_mask(state))
        actions, of_playouts = choose(state, jax.random.split(jax.random.key(4), BATCH))
        for legal, chosen, of_playout in zip(mask, np.asarray(actions), np.asarray(of_playouts).tolist(), strict=True):
            is_legal = legal[of_playout] if of_playout >= 0 else of_playout == -1 and not legal.any()
            _require(is_legal, f"playout_action returns {of_playout}, which is illegal")
            real = chosen[chosen >= 0]
            _require(len(set(real.tolist())) == len(real) == min(size, legal.sum()), "sample_actions repeats or omits actions")
            _require(np.all(legal[real]), "sample_actions returns illegal actions")
        ranks = np.append(np.arange(mask.sum(axis=1).max(), dtype=np.int32), np.int32(-1))
        for legal, ranked in zip(mask, np.asarray(nth_legal(state, ranks)), strict=True):
            _require(ranked[-1] == -1, "nth_legal must return -1 for the rank -1")
            found = np.sort(ranked[: legal.sum()])
            _require(np.array_equal(found, np.flatnonzero(legal)), "nth_legal repeats or omits actions")
        logits = np.asarray(functions.heuristic_logits(state, actions))[np.asarray(actions) >= 0]
        _require(np.isfinite(logits).all(), "heuristic_logits of legal actions must be finite")
        value = np.asarray(functions.heuristic_value(state))
        _require(np.all(value >= 0), "heuristic_value must not be negative")
        _require_close(value.sum(axis=1), 1, "heuristic_value must sum to 1")


def check_playouts(game: Game[Any], functions: Any, history: History) -> None:
    """Check that the moves of a playout are legal, and that ``apply_in_playout`` agrees with ``apply_deferred``."""
    names = ["current_player", "is_terminal", "scores", "returns", "heuristic_value"]
    choose, apply = (_compiled(jax.vmap(function)) for function in (game.playout_action, game.apply_in_playout))
    exact = state = history[len(history) // 2][0]
    for step in range(game.max_steps * game.num_players):
        action = choose(state, jax.random.split(jax.random.key(step), BATCH))
        chosen = np.asarray(action) >= 0
        _require(np.all(functions.is_legal(exact, action)[chosen]), "playout_action is illegal after apply_in_playout")
        exact, state = functions.apply_deferred(exact, action), apply(state, action)
        for name in names:
            is_same = np.array_equal(getattr(functions, name)(state), getattr(functions, name)(exact))
            _require(is_same, f"{name} after apply_in_playout is not {name} after apply_deferred")
        if np.all(functions.is_terminal(state)):
            return
    raise ConformanceError("a playout does not end")


def check_lookahead(game: Game[Any], functions: Any, history: History) -> None:
    """Check that outcomes proven by ``outcomes_of_actions`` agree with final returns and with outcomes one action later."""
    if not game.has_lookahead:
        is_default = type(game).outcomes_of_actions is Game.outcomes_of_actions
        _require(is_default, "has_lookahead must be true for a game with outcomes_of_actions")
        return
    _require(game.num_players == 2 and not game.has_hidden_information, "lookahead needs two players and perfect information")
    every = jnp.arange(game.num_actions, dtype=jnp.int32)

    def outcomes(state: Any) -> tuple[Any, Any]:
        """Proven outcome of each action; and its outcome by the returns, or by the proven outcomes of the replies."""
        player, after = game.current_player(state), jax.vmap(game.apply, in_axes=(None, 0))(state, every)
        replies = jax.vmap(lambda state: game.outcomes_of_actions(state, every))(after)
        best_reply = jnp.max(jnp.where(jax.vmap(game.legal_action_mask)(after), replies, -2), axis=1)
        by_replies = jnp.where(jax.vmap(game.current_player)(after) == player, best_reply, -best_reply)
        by_returns = jnp.sign(2 * jax.vmap(game.returns)(after)[:, player] - 1).astype(jnp.int32)
        later = jnp.where(jax.vmap(game.is_terminal)(after), by_returns, by_replies)
        return game.outcomes_of_actions(state, every), later

    compiled = _compiled(outcomes)
    for index in sorted({0, len(history) // 2, max(0, len(history) - 3), max(0, len(history) - 2)}):
        states = history[index][0]
        for row in range(0, BATCH, 5):
            legal = np.asarray(functions.legal_action_mask(states))[row]
            proven, later = (np.asarray(part)[legal] for part in compiled(_row(states, row)))
            _require(np.isin(proven, (-1, 0, 1)).all(), "outcomes_of_actions must be -1, 0 or 1")
            _require(np.all(proven * later >= 0), "outcomes_of_actions disagrees with the returns or with the replies")
    padding = game.outcomes_of_actions(_row(history[0][0], 0), jnp.full(2, -1, jnp.int32))
    _require(not np.any(np.asarray(padding)), "outcomes_of_actions must be 0 for -1")


def check_host(game: Game[Any], functions: Any, history: History) -> None:
    """Check that host positions agree with the device: legal actions, player, scores, end, and the effect of an action."""

    def agree(position: HostPosition, states: Any, when: str) -> None:
        legal = np.flatnonzero(np.asarray(functions.legal_action_mask(states))[0]).tolist()
        _require(position.legal_actions() == legal, f"legal_actions of the host form differ {when}")
        over = bool(functions.is_terminal(states)[0])
        _require(position.is_terminal == over, f"is_terminal of the host form differs {when}")
        player = int(functions.current_player(states)[0])
        _require(over or position.current_player == player, f"current_player of the host form differs {when}")
        _require(list(position.scores()) == functions.scores(states)[0].tolist(), f"scores of the host form differ {when}")
        _require(bool(position.text()), f"text of the host form is empty {when}")
        for action in (-1, game.num_actions, *legal[:1]):
            _require((position.explain(action) is None) == (action in legal), f"explain of the host form differs {when}")
        for seat in (None, *range(game.num_players)):
            view = position.view(seat=seat)
            _require(json.loads(json.dumps(view)) == view, f"view of the host form is not a JSON value {when}")
            known = [view[name] for name in ("num_players", "current_player", "terminal", "scores")]
            expected = [game.num_players, position.current_player, over, list(position.scores())]
            _require(known == expected, f"view of the host form differs from the position {when}")

    for index in sorted({0, len(history) // 2, len(history) - 1}):
        states, actions = history[index]
        position = game.host(_row(states, 0))
        agree(position, states, f"after {index} actions")
        if (action := int(actions[0])) >= 0:
            after = position.after(action)
            agree(after, functions.step(states, actions), f"after {index + 1} actions")
            name = game.action_name(action, _row(states, 0))
            _require(position.action_name(action) == name, f"action_name of the host form differs after {index} actions")
            _require(position.action_of_name(name) == action, f"action_of_name is not the inverse after {index} actions")
            view = position.action_view(action)
            is_action = (view["id"], view["name"]) == (action, name) and json.loads(json.dumps(view)) == view
            _require(is_action, f"action_view of the host form is not a JSON value of the action after {index} actions")
            _require(bool(after.text(last_action=action)), "text of the host form is empty with last_action")
            _require(after.svg(last_action=action).startswith("<svg"), "svg of the host form is not an SVG document")


def _row(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _require_same_facts(functions: Any, left: Any, right: Any, cause: str) -> None:
    """Require two batches of states to have the same player to move, end, scores and returns."""
    for name in ("current_player", "is_terminal", "scores", "returns"):
        function = getattr(functions, name)
        _require_same(function(left), function(right), f"{cause} changes {name}")


def _require(condition: Any, law: str) -> None:
    if not condition:
        raise ConformanceError(law)


def _require_equal(left: Any, right: Any, law: str) -> None:
    _require(np.array_equal(left, right), law)


def _require_close(values: Any, expected: float, law: str) -> None:
    _require(np.allclose(values, expected, rtol=1e-5), law)


def _require_same(left: Any, right: Any, law: str) -> None:
    """Require two trees to have the same structure, dtypes and values."""
    _require(str(jax.tree.structure(left)) == str(jax.tree.structure(right)), law)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        _require(a.dtype == b.dtype and np.array_equal(np.asarray(a), np.asarray(b)), law)
