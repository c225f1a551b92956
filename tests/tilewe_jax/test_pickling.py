"""Public objects can be pickled, copied, and sent to a spawned process."""

import concurrent.futures
import contextlib
import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tilewe_jax import batching, records
from tilewe_jax.agents import AgentSpec, agent
from tilewe_jax.formats import blksgf, names
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS
from tilewe_jax.games.santorini.host import Place, Turn
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop import alpha_zero_general
from tilewe_jax.replay import recorded
from tilewe_jax.search import (
    Determinized,
    GumbelRule,
    InformationSetSearch,
    PuctRule,
    Search,
    SearchSettings,
    SubtreeReuse,
    evaluators,
    solve,
)
from tilewe_jax.tilewe import Board
from tilewe_jax.tilewe.elo import EloEstimate
from tilewe_jax.tilewe.engine import MoveExecutor

NOT_SENT = {
    "hold processes, threads, streams or compiled functions": (
        "agents arena device_position interop.analysis interop.analysis_requests interop.gtp interop.gtp_client interop.single"
        " tilewe.tournament web"
    ),
    "exist while a function is traced": (
        "endings games.polyomino.encoding games.polyomino.endings games.polyomino.heuristics records.Positions"
        " games.polyomino.movegen.LocalBoards games.polyomino.movegen_gpu games.polyomino.one_ply"
        " games.santorini.heuristics games.santorini.lookahead games.triominos.heuristics games.triominos.table"
        " interop.gymnasium.Outcome interop.mctx search.candidates search.evaluators.Evaluation"
        " search.ismcts.InformationSetTree search.mcts.Progress search.rules search.tree.Node search.tree.Path"
    ),
    "pickled by OpenSpiel as text": "chance games.santorini.chance games.triominos.chance interop.open_spiel",
    "tested elsewhere": "interop.torch networks",
    "used in one process": (
        "cli draw games.santorini.host_heuristics host.Coach host.Heuristics host.HostDraws host.Offer presets training utils"
    ),
}
"""Modules and classes whose objects are not sent to other processes, by the reason."""
EXEMPT = {name for names in NOT_SENT.values() for name in names.split()}


def public_classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(tilewe_jax.__path__, "tilewe_jax."):
        name = module.name.partition(".")[2]
        if module.name.endswith("__main__"):
            continue
        try:
            members = vars(importlib.import_module(module.name))
        except ImportError:  # an optional dependency of an adapter
            continue
        for kind in members.values():
            is_own = inspect.isclass(kind) and kind.__module__ == module.name and not kind.__name__.startswith("_")
            if is_own and (issubclass(kind, Exception) or not is_exempt(name)):
                yield kind


def is_exempt(name: str) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:count]) in EXEMPT for count in range(1, len(parts) + 1))


def is_sent(kind: type) -> bool:
    name = f"{kind.__module__.partition('.')[2]}.{kind.__qualname__}"
    is_abstract = inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    return issubclass(kind, Exception) or not (is_abstract or is_exempt(name))


@cache
def objects() -> list[Any]:
    """Examples of objects that users send to other processes."""
    key = jax.random.key(0)
    found: list[Any] = []
    games = [
        tilewe_jax.make("santorini", size=3),
        tilewe_jax.make("duo", size=5, pieces=["O1"]),
        tilewe_jax.make("triominos", tiles=4, tray=1),
    ]
    for game in games:
        state = jax.jit(game.init)(key)
        position = game.host(state)
        found += [game, state, position, position.after(position.legal_actions()[0]), *game.policies().values()]
        host = make_host_game(game.id, **game.options)
        found += [host, host.init_from_deal(game.deal(state))]
        environment = batching.Environment(game)
        found += [environment, *jax.jit(environment.reset, static_argnums=1)(key, 2)]
        for make in (evaluators.uniform_evaluator, evaluators.heuristic_evaluator, evaluators.playout_evaluator):
            found.append(Search(game, make(game), GumbelRule(), SearchSettings(2, 2)))
        found += [agent(text, game) for text in ("puct:num_simulations=2", "random")]
    game = games[0]
    trajectory = jax.jit(lambda key: batching.trajectories(game, key, 2))(key)
    stream, steps = jax.jit(lambda key: batching.run_stream(game, batching.init_stream(game, key, 2, 1), 2))(key)
    small = SearchSettings(2, 2)
    tree_search = Search(game, evaluators.heuristic_evaluator(game), PuctRule(), small)
    output = jax.jit(tree_search)(game.init(key), key)
    found += [trajectory, trajectory.rollout, stream, steps, tree_search, output, output.policy_output]
    found += [SubtreeReuse(tree_search), AgentSpec("puct"), jax.jit(partial(solve, game, max_nodes=2))(game.init(key))]
    hidden = games[2]
    found += [
        Determinized(Search(hidden, evaluators.uniform_evaluator(hidden), PuctRule(), small)),
        InformationSetSearch(hidden, evaluators.uniform_evaluator(hidden), PuctRule(), small),
    ]
    found.append(recorded.GameFile([recorded.RecordedGame(make_host_game("duo"), None, (1, 2), (), None)]))
    found += [records.Record(None, (1, 2), (1, 0), (1.0, 0.0)), names.gtp_game("santorini"), names.gtp_game("duo")]
    found += [alpha_zero_general.SantoriniGame(3), alpha_zero_general.PolyominoGame("duo", size=5)]
    found += [blksgf.SgfGame(*(None for _ in fields(blksgf.SgfGame)))]  # type: ignore[arg-type]
    board = Board(2)
    board.push(board.generate_legal_moves()[0])
    found += [board, board.moves[0], EloEstimate(2), MoveExecutor(Board(2), board.moves[0])]
    found += [*position_parts(), *ORIENTATIONS[:2], Turn((0, 0), (0, 1), (0, 2)), Place((0, 0))]
    found += adapters(game)
    return found


def position_parts() -> list[Any]:
    position = make_host_game("duo", size=5).init_from_deal(None).position  # type: ignore[attr-defined]
    return [position, position.geometry, position.geometry[0]]


def adapters(game: Any) -> list[Any]:
    """Environments of adapters, before and after their first reset."""
    found: list[Any] = []
    for module, classes in (("gymnasium", ("GameEnv", "GameVectorEnv")), ("pettingzoo", ("GameEnv", "env")), ("pgx", ())):
        try:
            adapter = importlib.import_module(f"tilewe_jax.interop.{module}")
        except ImportError:
            continue
        for name in classes:
            started = getattr(adapter, name)(game)
            started.reset(seed=0)
            found += [getattr(adapter, name)(game), started]
        if module == "pgx":
            env = adapter.PgxEnv(game)
            found += [env, jax.jit(env.init)(jax.random.key(0))]
    return found


def parts(value: Any, seen: dict[int, Any]) -> None:
    """Collect all objects of this project inside of a value in ``seen``, by id."""
    if id(value) in seen or isinstance(value, (str, int, float, bool, type(None), np.ndarray, jax.Array)):
        return
    seen[id(value)] = value
    if isinstance(value, (list, tuple, set, frozenset)):
        children = list(value)
    elif isinstance(value, dict):
        children = list(value.values())
    elif is_dataclass(value) and not isinstance(value, type):
        children = [getattr(value, field.name) for field in fields(value)]
    elif type(value).__module__.startswith(("tilewe_jax", "search")):
        children = list(getattr(value, "__dict__", {}).values())
    else:
        children = []
    for child in children:
        parts(child, seen)


def made_simply(kind: type) -> Any:
    """An exception, or an object without required arguments."""
    for count in range(1, 4) if issubclass(kind, Exception) else ():
        with contextlib.suppress(TypeError):
            return kind(*["text"] * count)
    return kind()


def described(value: Any) -> Any:
    """Type, text and arrays of an object, for comparison."""
    leaves = jax.tree.leaves(value)
    arrays = [np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf) for leaf in leaves if hasattr(leaf, "dtype")]
    text = repr(value) if type(value).__repr__ is not object.__repr__ and not arrays and " at 0x" not in repr(value) else ""
    return type(value).__qualname__, text, [(array.shape, array.dtype.str, array.tobytes()) for array in arrays]


def is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def all_objects() -> list[Any]:
    seen: dict[int, Any] = {}
    parts(objects(), seen)
    known = {type(value) for value in seen.values()}
    simple = [made_simply(kind) for kind in public_classes() if is_sent(kind) and kind not in known and can_be_made(kind)]
    return [*objects(), *simple]


def can_be_made(kind: type) -> bool:
    try:
        made_simply(kind)
    except TypeError:
        return False
    return True


def test_every_public_class_has_an_example() -> None:
    seen: dict[int, Any] = {}
    parts(all_objects(), seen)
    known = {base for value in seen.values() for base in type(value).__mro__}
    missing = [f"{kind.__module__}.{kind.__qualname__}" for kind in public_classes() if is_sent(kind) and kind not in known]
    assert not missing


def test_objects_are_pickled_and_copied() -> None:
    for value in all_objects():
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
            assert described(again) == described(value), type(value)


def test_copied_environments_continue_identically() -> None:
    adapter = pytest.importorskip("tilewe_jax.interop.gymnasium")
    env = adapter.GameVectorEnv("santorini", 2, size=3)
    _, info = env.reset(seed=3)
    actions = np.argmax(info["action_mask"], axis=1)
    again = pickle.loads(pickle.dumps(env))
    for mine, others in zip(env.step(actions)[:4], again.step(actions)[:4], strict=True):
        np.testing.assert_array_equal(mine, others)


def test_objects_are_sent_to_another_process() -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        for value in all_objects():
            assert pool.submit(described, value).result() == described(value), type(value)
