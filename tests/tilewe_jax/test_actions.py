"""Validation of actions and states given by callers, the same in every adapter."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tilewe_jax.batching import Environment
from tilewe_jax.game import as_action
from tilewe_jax.host import IllegalActionError
from tilewe_jax.interop.alpha_zero_general import PolyominoGame, SantoriniGame
from tilewe_jax.search import PuctRule, Search, SearchSettings, uniform_evaluator
from tilewe_jax.tilewe import Board, Move

GAME = tilewe_jax.make("santorini", size=3)
NOT_INTEGERS: list[Any] = [
    2.9, 2.0, "7", True, np.True_, np.float32(3), float("nan"), float("inf"), b"7", (7,), [7], {}, 1j,
    np.array([7]), np.array([[7]]), np.array(True), np.array(7.0), np.zeros(0, np.int32), jnp.array(True), jnp.float32(7),
]  # fmt: skip
OUTSIDE: list[Any] = [-1, 128, 2**31, 2**32, 2**63, 2**70, np.int64(2**32), np.int64(-1), np.uint64(2**63), np.array(2**32)]


def gymnasium_step() -> tuple[Callable[[Any], Any], int]:
    env = pytest.importorskip("tilewe_jax.interop.gymnasium").GameEnv(GAME, seat=0)
    _, info = env.reset(seed=0)
    return env.step, int(np.argmax(info["action_mask"]))


def pettingzoo_step(wrapped: bool) -> tuple[Callable[[Any], Any], int]:
    module = pytest.importorskip("tilewe_jax.interop.pettingzoo")
    env = module.env(GAME) if wrapped else module.GameEnv(GAME)
    env.reset(seed=0)
    return env.step, int(np.argmax(env.observe(env.agent_selection)["action_mask"]))


def open_spiel_step() -> tuple[Callable[[Any], Any], int]:
    state = pytest.importorskip("tilewe_jax.interop.open_spiel").load_game(GAME).new_initial_state()
    return state.apply_action, state.legal_actions()[0]


def alpha_zero_step(game: Any) -> tuple[Callable[[Any], Any], int]:
    board = game.getInitBoard()
    return lambda action: game.getNextState(board, 1, action), int(np.argmax(game.getValidMoves(board, 1)))


def host_step(name: str, **options: Any) -> tuple[Callable[[Any], Any], int]:
    game = tilewe_jax.make(name, **options)
    position = game.host(game.init(jax.random.key(0)))
    return position.after, position.legal_actions()[0]


STEPS: dict[str, Callable[[], tuple[Callable[[Any], Any], int]]] = {
    "gymnasium": gymnasium_step,
    "pettingzoo": lambda: pettingzoo_step(False),
    "pettingzoo-wrapped": lambda: pettingzoo_step(True),
    "open_spiel": open_spiel_step,
    "alpha_zero-santorini": lambda: alpha_zero_step(SantoriniGame(3)),
    "alpha_zero-polyomino": lambda: alpha_zero_step(PolyominoGame("duo", size=5, pieces=["O1", "I2"])),
    "host-santorini": lambda: host_step("santorini", size=3),
    "host-duo": lambda: host_step("duo", size=5, pieces=["O1", "I2"]),
    "host-triominos": lambda: host_step("triominos", tiles=4, tray=1),
}


@pytest.mark.untyped
@pytest.mark.parametrize("adapter", STEPS)
def test_actions_are_integers_in_range(adapter: str) -> None:
    step, legal = STEPS[adapter]()
    for action in NOT_INTEGERS:
        with pytest.raises(TypeError, match="action must") as type_error:
            step(action)
        assert "\n" not in str(type_error.value)
    for action in (*(outside for outside in OUTSIDE if outside != 128), 10**6, np.int64(2**32 + legal)):
        with pytest.raises(IllegalActionError, match="actions are"):
            step(action)
    step(np.array(legal) if adapter.startswith("host") else jnp.int32(legal))


@pytest.mark.untyped
def test_functions_reject_invalid_actions() -> None:
    state = GAME.init(jax.random.key(0))
    legal = int(np.argmax(GAME.legal_action_mask(state)))
    for action in NOT_INTEGERS:
        with pytest.raises((TypeError, ValueError), match="action must"):
            GAME.step(state, action)
    for action in (*OUTSIDE, np.int64(2**32 + legal), -(2**40)):
        assert not GAME.is_legal(state, action)
        after = GAME.step(state, action)
        assert all(jax.tree.leaves(jax.tree.map(lambda old, new: bool((old == new).all()), state, after)))
    assert int(as_action(np.uint32(2**32 - 1))) == -1
    assert int(jax.jit(as_action)(np.uint32(2**31 + 5))) == -1
    assert int(jax.jit(as_action)(np.int16(5))) == 5


@pytest.mark.untyped
def test_actions_of_a_batch_are_integers_in_range() -> None:
    envs = pytest.importorskip("tilewe_jax.interop.gymnasium").GameVectorEnv(GAME, 2)
    with pytest.raises(Exception, match="call reset first"):
        envs.action_masks()
    envs.reset(seed=0)
    for actions in ([0.5, 1], ["0", "1"], [True, False], [None, None]):
        with pytest.raises(TypeError, match="actions must"):
            envs.step(actions)
    for actions in ([0], [0, 1, 2], [[0, 1]], 0):
        with pytest.raises(ValueError, match="actions must"):
            envs.step(np.array(actions))
    for action in (-1, 128, 2**32, 2**62):
        with pytest.raises(IllegalActionError, match=f"action {action} is illegal"):
            envs.step(np.array([0, action]))


def test_steps_after_the_end_require_a_reset() -> None:
    peer = pytest.importorskip("gymnasium")
    env = pytest.importorskip("tilewe_jax.interop.gymnasium").GameEnv(GAME)
    with pytest.raises(peer.error.ResetNeeded):
        env.step(0)
    _, info = env.reset(seed=0)
    env.step(int(np.argmin(info["action_mask"])))  # illegal, and so lost
    with pytest.raises(peer.error.ResetNeeded, match="call reset") as error:
        env.step(0)
    assert "reset_mask" not in str(error.value)
    bare = pytest.importorskip("tilewe_jax.interop.pettingzoo").GameEnv(GAME)
    for call in (lambda: bare.step(0), lambda: bare.observe("player_0"), bare.render):
        with pytest.raises(RuntimeError, match="call reset first"):
            call()


@pytest.mark.untyped
def test_integers_outside_of_the_range_are_illegal_in_pgx() -> None:
    env = pytest.importorskip("tilewe_jax.interop.pgx").PgxEnv(GAME)
    state = jax.jit(env.init)(jax.random.key(0))
    step = jax.jit(env.step)
    for action in (-1, 128, 2**30):
        after = step(state, jnp.int32(action))
        assert bool(after.terminated)
        assert float(after.rewards[state.current_player]) == -1
    for action in (2.9, True, "7"):
        with pytest.raises(TypeError):
            env.step(state, action)


def test_open_spiel_and_alpha_zero_reject_illegal_actions() -> None:
    for adapter in ("open_spiel", "alpha_zero-santorini"):
        step, _ = STEPS[adapter]()
        mask = np.asarray(GAME.legal_action_mask(GAME.init(jax.random.key(0))))
        with pytest.raises(IllegalActionError, match="is illegal"):
            step(int(np.argmin(mask)))


def test_drop_in_moves_are_integers() -> None:
    board = Board(2)
    move = board.generate_legal_moves()[0]
    assert Move(np.int64(move.piece), move.rotation, move.contact, move.to_tile) == move  # type: ignore[arg-type]
    for piece in (True, 2.0, "1", np.True_):
        with pytest.raises(AttributeError):
            Move(piece, move.rotation, move.contact, move.to_tile)  # type: ignore[arg-type]
    for given in (0, 2.9, "7", True, None):
        with pytest.raises(AttributeError, match="Must be"):
            board.push(given)  # type: ignore[arg-type]


OTHERS = [
    (GAME, tilewe_jax.make("santorini", size=6)),
    (tilewe_jax.make("duo", size=5, pieces=["O1"]), tilewe_jax.make("duo", size=8, pieces=["O1"])),
    (GAME, tilewe_jax.make("triominos", tiles=4, tray=1)),
]


@pytest.mark.untyped
@pytest.mark.parametrize(("game", "other"), OTHERS, ids=lambda game: game.id)
def test_states_of_other_games_are_rejected(game: Any, other: Any) -> None:
    key = jax.random.key(0)
    state = jax.eval_shape(other.init, key)
    environment = Environment(game)
    games, _ = jax.eval_shape(lambda key: Environment(other).reset(key, 2), key)
    search = Search(game, uniform_evaluator(game), PuctRule(), SearchSettings(2, 2))
    host_state = other.init(key)
    for call in (
        lambda: jax.eval_shape(lambda state: game.step(state, 0), state),
        lambda: jax.eval_shape(lambda state: game.apply(state, jnp.int32(0)), state),
        lambda: jax.eval_shape(game.legal_action_mask, state),
        lambda: jax.eval_shape(lambda state: game.is_legal(state, 0), state),
        lambda: jax.eval_shape(lambda state: game.observe(state, jnp.int32(0)), state),
        lambda: jax.eval_shape(lambda state: game.playout(state, key), state),
        lambda: jax.eval_shape(lambda state: search(state, key), state),
        lambda: jax.eval_shape(lambda games: environment.step(games, jnp.zeros(2, jnp.int32)), games),
        lambda: game.host(host_state),
        lambda: game.text(host_state),
    ):
        with pytest.raises((TypeError, ValueError), match=game.id):
            call()


@pytest.mark.untyped
def test_batches_of_states_are_rejected_by_unbatched_functions() -> None:
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 2))
    with pytest.raises(ValueError, match="expected"):
        GAME.step(states, 0)
    floats = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), GAME.init(jax.random.key(0)))
    with pytest.raises(TypeError, match="expected"):
        GAME.step(floats, 0)


@pytest.mark.untyped
def test_boards_of_other_sizes_are_rejected() -> None:
    game = SantoriniGame(4)
    for call in (lambda: game.getValidMoves(SantoriniGame(3).getInitBoard(), 1), lambda: game.getNextState(np.zeros(3), 1, 0)):
        with pytest.raises(ValueError, match="shape"):
            call()
    with pytest.raises(ValueError, match="player must be"):
        game.getValidMoves(game.getInitBoard(), 2)
    for size in (5.0, "5", True):
        with pytest.raises(TypeError, match="board_size"):
            SantoriniGame(size)  # type: ignore[arg-type]
