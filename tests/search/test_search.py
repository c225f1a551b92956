"""The search against mctx, brute force and a manual calculation, and its invariants."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewe_jax
from tests.search.exhaustive import Solver, with_distinct_payoffs
from tests.search.tictactoe import BATCH, State, TicTacToe, opening
from tests.support import assert_same, batched, positions, rows, slow
from tilewe_jax.search import (
    Evaluation,
    GumbelRule,
    PuctRule,
    Search,
    SearchSettings,
    Tree,
    dense_logits,
    mcts,
    network_evaluator,
    playout_evaluator,
    subtree,
    uniform_evaluator,
)
from tilewe_jax.search.rules import RootContext


class ZeroSum(TicTacToe):
    """Outcomes 1 and -1, as in mctx."""

    def returns(self, state):
        return jnp.where(self.is_terminal(state), 2 * super().returns(state) - 1, 0.0)


def oracle(params: Any, state: State, key: Any) -> Evaluation:
    """Evaluate a position by a hash without ties."""
    del params, key
    powers = jnp.asarray(3 ** np.arange(9), jnp.int32)
    code = jnp.sum((state.cells.astype(jnp.int32) + 1) * powers, dtype=jnp.int32)
    noise = jnp.sin(code.astype(jnp.float32) * (1 + jnp.arange(10, dtype=jnp.float32)) * 0.37)
    value = jnp.tanh(noise[9])
    mine = jnp.where(state.current_player == 0, value, -value)
    return Evaluation(dense_logits(1.5 * noise[:9]), jnp.stack([mine, -mine]))


def in_mctx(game: TicTacToe, state: State, policy: Any, **options: Any) -> Any:
    def look(state: State) -> tuple[jax.Array, jax.Array]:
        logits, values = oracle(None, state, None)
        logits = logits(jnp.arange(9))
        masked = jnp.where(game.legal_action_mask(state), logits, -jnp.inf)
        masked = jnp.where(game.is_terminal(state), logits, masked)
        return jnp.maximum(masked, -1e30), values[state.current_player]

    def recurrent(params: Any, key: Any, action: jax.Array, state: State) -> tuple[Any, Any]:
        del params, key
        player = state.current_player
        after = jax.vmap(game.step)(state, action)
        over = jax.vmap(game.is_terminal)(after)
        logits, values = jax.vmap(look)(after)
        reward = jnp.take_along_axis(jax.vmap(game.returns)(after), player[:, None], axis=1)[:, 0]
        return mctx.RecurrentFnOutput(
            reward=reward, discount=jnp.where(over, 0.0, -1.0), prior_logits=logits, value=values
        ), after

    def run(state: State) -> Any:
        logits, values = jax.vmap(look)(state)
        root = mctx.RootFnOutput(prior_logits=logits, value=values, embedding=state)
        invalid = ~jax.vmap(game.legal_action_mask)(state)
        return policy(None, jax.random.key(0), root, recurrent, invalid_actions=invalid, **options)

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # required by mctx
        return jax.jit(run)(state)


def at_root(num_candidates: int) -> RootContext:
    """Return the context of a root without noise and kept visits."""
    none = jnp.zeros(num_candidates, jnp.int32)
    return RootContext(none.astype(jnp.float32), none, num_simulations=40)


def by_action(result: Any) -> np.ndarray:
    """Return the visits by action id."""
    visits = np.zeros((BATCH, 9), int)
    for lane in range(BATCH):
        actions = np.asarray(result.candidates[lane])
        visits[lane, actions[actions >= 0]] = np.asarray(result.visits[lane])[actions >= 0]
    return visits


@pytest.mark.parametrize("plies", [0, 3])
def test_puct_equals_mctx(plies: int) -> None:
    game = ZeroSum()
    state = opening(game, plies, 1)

    def values(tree: Any, node: Any) -> jax.Array:
        # mctx does not mask illegal actions below the root.
        return jnp.where(tree.children_prior_logits[node] > -1e29, tree.qvalues(node), -1e9)

    theirs = in_mctx(
        game, state, mctx.muzero_policy, num_simulations=100, qtransform=values, dirichlet_fraction=0.0, temperature=0.0
    )
    search = Search(game, oracle, PuctRule(fpu_value=0.0), SearchSettings(100, 9, max_depth=9))
    ours = jax.jit(jax.vmap(search))(state, jax.random.split(jax.random.key(1), BATCH))
    np.testing.assert_array_equal(by_action(ours), np.asarray(theirs.search_tree.summary().visit_counts, int))
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(
        np.take_along_axis(np.asarray(ours.value), np.asarray(state.current_player)[:, None], axis=1)[:, 0],
        theirs.search_tree.summary().value,
        atol=1e-5,
    )


@pytest.mark.parametrize(("simulations", "considered"), [(7, 4), (50, 16)])
def test_gumbel_equals_mctx(simulations: int, considered: int) -> None:
    game = ZeroSum()
    state = opening(game, 1, 3)
    theirs = in_mctx(
        game,
        state,
        mctx.gumbel_muzero_policy,
        num_simulations=simulations,
        max_num_considered_actions=considered,
    )
    noise = jax.random.gumbel(jax.random.split(jax.random.key(0))[1], (BATCH, 9))  # the noise of mctx

    search = Search(game, oracle, GumbelRule(considered, gumbel_scale=1.0), SearchSettings(simulations, 9, max_depth=9))

    def recorded(state: State, key: Any, noise: jax.Array) -> Any:
        tree = search.simulate(search.init(state), at_root(9), jnp.int32(0), key)
        noise = jnp.where(tree.candidates[0] >= 0, noise[tree.candidates[0]], 0.0)
        return search.finish(search.advance(replace(search.start(tree, key), noise=noise)))

    ours = jax.jit(jax.vmap(recorded))(state, jax.random.split(jax.random.key(1), BATCH), noise)
    np.testing.assert_array_equal(by_action(ours), np.asarray(theirs.search_tree.summary().visit_counts, int))
    np.testing.assert_array_equal(ours.action, theirs.action)
    weights = np.zeros((BATCH, 9), np.float32)
    for lane in range(BATCH):
        actions = np.asarray(ours.candidates[lane])
        weights[lane, actions[actions >= 0]] = np.asarray(ours.policy[lane])[actions >= 0]
    np.testing.assert_allclose(weights, theirs.action_weights, atol=1e-5)


class Table(TicTacToe):
    """A binary tree of positions: 0 leads to 1 and 2, 1 to 3 and 4, 2 to 5 and 6; positions 3 to 6 are terminal."""

    returned = np.array([(0.0, 0.0)] * 3 + [(1.0, 0.0), (0.0, 1.0), (0.2, 0.8), (0.9, 0.1)], np.float32)
    guessed = np.array([(0.5, 0.5), (0.6, 0.4), (0.3, 0.7)] + [(9.0, 9.0)] * 4, np.float32)
    mover = np.array([0, 1, 1, 0, 0, 0, 0], np.int32)
    num_actions = 2

    def init(self, key):
        del key
        return jnp.int32(0)

    def apply(self, state, action):
        return jnp.where(action >= 0, 2 * state + 1 + action, state)

    def legal_action_mask(self, state):
        return jnp.broadcast_to(~self.is_terminal(state), (2,))

    def current_player(self, state):
        return jnp.asarray(self.mover)[state]

    def is_terminal(self, state):
        return state >= 3

    def returns(self, state):
        return jnp.asarray(self.returned)[state]

    def evaluate(self, params, state, key):
        del key
        return Evaluation(dense_logits(jnp.zeros(2)), jnp.asarray(self.guessed)[state])


def test_a_search_calculated_by_hand() -> None:
    """With constant exploration weight 1 and the value 0.5 for unvisited candidates; ties select the first one."""
    game = Table()
    expected = [  # after each simulation: new position, visits of the root and of its candidates, values of the root
        (1, 2, (1, 0), (1.1, 0.9)),  # 1 against 1
        (2, 3, (1, 1), (1.4, 1.6)),  # 0.6 + 0.354 against 0.5 + 0.707
        (3, 4, (2, 1), (2.4, 1.6)),  # 0.6 + 0.433 against 0.3 + 0.433; below, 1 and 1
        (4, 5, (3, 1), (2.4, 2.6)),  # 0.8 + 0.333 against 0.3 + 0.5; below, for player 1, 0 + 0.354 against 0.5 + 0.707
        (5, 6, (3, 2), (2.6, 3.4)),  # 0.533 + 0.280 against 0.3 + 0.559; below, 1 and 1
    ]
    search = Search(game, game.evaluate, PuctRule(1.0, c_base=1e9, fpu_value=0.5), SearchSettings(5, 2))
    advance, finish = jax.jit(partial(search.advance, rounds=1)), jax.jit(search.finish)
    progress = search.start(search.init(jnp.int32(0)), jax.random.key(0))
    for count, (position, visits, edges, values) in enumerate(expected, 1):
        progress = advance(progress)
        result = finish(progress)
        tree = result.tree
        assert int(tree.state[count]) == position
        assert int(tree.visits[0]) == visits
        assert tuple(result.visits.tolist()) == edges
        np.testing.assert_allclose(tree.value_sum[0], values, atol=1e-6)
    assert result.action == 0
    np.testing.assert_allclose(tree.value_sum[1], (1.6, 1.4), atol=1e-6)
    np.testing.assert_allclose(result.policy, (0.6, 0.4))


def check_invariants(tree: Tree, add_up: bool = True, evaluations: int = 1) -> None:
    """Check that visits and values add up, that each child occurs once, after its parent, and that candidates are distinct.

    A node has at most this many evaluations, all with the same value.
    """
    tree = jax.device_get(tree)
    size = int(tree.num_nodes)
    assert tree.visits[size:].sum() == 0
    children = tree.children[:size][tree.children[:size] >= 0]
    assert sorted(children.tolist()) == list(range(1, size))
    for node in range(size):
        children = tree.children[node][tree.children[node] >= 0]
        assert (children > node).all()
        assert ((tree.children[node] < 0) | (tree.candidates[node] >= 0)).all()
        candidates = tree.candidates[node][tree.candidates[node] >= 0]
        assert len(set(candidates.tolist())) == len(candidates)
        if tree.proven[node]:
            assert not len(children)
            np.testing.assert_allclose(tree.value_sum[node], tree.visits[node] * tree.raw_value[node], rtol=1e-5)
        elif add_up:
            own = tree.visits[node] - tree.visits[children].sum()
            assert 1 <= own <= evaluations
            np.testing.assert_allclose(
                tree.value_sum[node], own * tree.raw_value[node] + tree.value_sum[children].sum(axis=0), atol=1e-4
            )


@pytest.mark.parametrize("leaves", [1, 5])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), rounds=st.integers(0, 9))
def test_tree_invariants(leaves: int, seed: int, rounds: int) -> None:
    """Visits and values add up after every number of rounds."""
    start, simulate = search_in_rounds(leaves)
    tree = start(rows(opening(TicTacToe(), seed % 6, seed), seed % BATCH))
    for i in range(rounds):
        tree = simulate(tree, jnp.int32(leaves * i), jax.random.key(seed + i), jnp.int32(leaves))
    visits = jnp.sum(jnp.where(tree.children[0] >= 0, tree.visits[tree.children[0]], 0))
    assert bool(tree.proven[0]) or int(visits) == leaves * rounds
    check_invariants(tree, add_up=leaves == 1)


@cache
def search_in_rounds(leaves: int) -> tuple[Any, Any]:
    """Return compiled functions that evaluate a root, and that run a round of simulations."""
    game = TicTacToe()
    search = Search(game, playout_evaluator(game), PuctRule(), SearchSettings(45, 9, max_depth=9, leaves=leaves))
    root = RootContext(jnp.full(9, 1 / 9), jnp.zeros(9, jnp.int32), 45)
    simulate = jax.jit(lambda tree, i, key, count: search.simulate(tree, root, i, key, None, count))
    return lambda state: simulate(search.init(state), jnp.int32(0), jax.random.key(0), jnp.int32(1)), simulate


@pytest.mark.parametrize("rule", [PuctRule(), slow(GumbelRule())], ids=["puct", "gumbel"])
def test_leaves_of_a_round_are_distinct(rule: Any) -> None:
    game = ZeroSum()
    search = Search(game, oracle, rule, SearchSettings(20, 9, max_depth=9, leaves=8, virtual_loss=1.0))
    output = jax.jit(jax.vmap(search))(opening(game, 0, 1), jax.random.split(jax.random.key(1), BATCH))
    assert output.visits.sum(axis=1).tolist() == [20] * BATCH
    assert output.num_simulations.tolist() == [20] * BATCH
    first = replace(search, settings=replace(search.settings, num_simulations=8))
    output = jax.jit(jax.vmap(first))(opening(game, 0, 1), jax.random.split(jax.random.key(1), BATCH))
    assert (np.asarray(output.visits) > 0).sum(axis=1).min() >= 5


@pytest.mark.parametrize(("rule", "leaves"), [(PuctRule(), 1), (GumbelRule(), 6)], ids=["puct", "gumbel"])
def test_proven_values_equal_exhaustive_search(rule: Any, leaves: int) -> None:
    game = TicTacToe()
    states = opening(game, 5, 17)
    search = Search(game, playout_evaluator(game), rule, SearchSettings(120, 9, max_depth=9, leaves=leaves, exact_endings=True))
    output = jax.device_get(jax.jit(jax.vmap(search))(states, jax.random.split(jax.random.key(2), BATCH)))
    solver, solved = Solver(game, 100), 0
    for lane in range(BATCH):
        tree, state = rows(output.tree, lane), rows(states, lane)
        for node in np.flatnonzero(tree.proven):
            np.testing.assert_array_equal(tree.raw_value[node], solver.value(rows(tree.state, node)))
        if tree.proven[0] and not bool(game.is_terminal(state)):
            solved += 1
            after = game.apply(state, jnp.int32(output.action[lane]))
            np.testing.assert_array_equal(solver.value(after), tree.raw_value[0])
            assert output.num_simulations[lane] < 120
    assert solved >= 4


def test_games_of_a_batch_are_independent() -> None:
    game = TicTacToe()
    search = Search(game, playout_evaluator(game, 2), GumbelRule(4, gumbel_scale=1.0), SearchSettings(30, 5, max_depth=4))
    states, keys = opening(game, 3, 7), jax.random.split(jax.random.key(9), BATCH)
    together, alone = jax.jit(jax.vmap(search)), jax.jit(search)
    results = together(states, keys)
    for lane in (0, 5):
        single = alone(rows(states, lane), keys[lane])
        np.testing.assert_array_equal(single.visits, results.visits[lane])
        assert_same(single.tree.children, results.tree.children[lane])
    mixed = together(states, keys[::-1])
    assert not np.array_equal(mixed.visits, results.visits)
    for lane in range(BATCH):
        check_invariants(rows(results.tree, lane), add_up=False)


@pytest.mark.parametrize("capacity", [90, 40])
def test_continued_subtrees_equal_fresh_searches(capacity: int) -> None:
    """Without noise, and with the same rule at root and interior nodes, the order of simulations does not matter."""
    game = ZeroSum()
    first = Search(game, oracle, PuctRule(), SearchSettings(60, 9, max_depth=9), capacity)
    states = opening(game, 2, 11)
    result = jax.jit(jax.vmap(first))(states, jax.random.split(jax.random.key(1), BATCH))
    trees = jax.jit(jax.vmap(subtree))(result.tree, result.action_index)
    after, continued = batched(game).step(states, result.action), capacity < 90
    for lane in range(BATCH):
        tree, old = rows(trees, lane), rows(result.tree, lane)
        check_invariants(tree, add_up=capacity == 90)
        root = int(old.children[0, int(result.action_index[lane])])
        assert_same(rows(tree.state, 0), rows(after, lane))
        assert int(tree.visits[0]) == int(old.visits[root])
        assert_same(tree.value_sum[0], old.value_sum[root])
        assert int(jnp.sum(tree.visits > 0)) == int(tree.num_nodes)
        if not continued and not bool(tree.proven[0]):
            continued, visits = True, int(tree.visits[0])
            more = Search(game, oracle, PuctRule(), SearchSettings(20, 9, max_depth=9), capacity)
            fresh = Search(game, oracle, PuctRule(), SearchSettings(visits - 1 + 20, 9, max_depth=9))
            extended = jax.jit(more.extend)(tree, jax.random.key(3))
            expected = jax.jit(fresh)(rows(after, lane), jax.random.key(4))
            visits_by_action = [
                dict(zip(each.candidates.tolist(), each.visits.tolist(), strict=True)) for each in (extended, expected)
            ]
            assert visits_by_action[0] == visits_by_action[1]
            np.testing.assert_allclose(extended.value, expected.value, atol=1e-5)
    assert continued


def solved_from_its_leaves(tree: Tree) -> np.ndarray:
    """Return the max^n value of the root from the leaves of the tree."""
    tree = jax.device_get(tree)
    values = tree.raw_value.copy()
    for node in range(int(tree.num_nodes) - 1, -1, -1):
        children = tree.children[node][tree.children[node] >= 0]
        if len(children):
            values[node] = values[children[values[children, tree.player[node]].argmax()]]
    return values[0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tilewe", {"players": 3, "size": 4, "pieces": ("O1", "I2", "L3")}),
        pytest.param("tilewe", {"players": 4, "size": 4, "pieces": ("O1", "I2")}, marks=pytest.mark.slow),
        ("santorini", {"size": 3}),
        pytest.param("triominos", {"players": 3, "tiles": 10, "tray": 2}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_best_reply_of_small_games(name: str, options: dict[str, Any]) -> None:
    """In the first position of random games that brute force can solve."""
    game = with_distinct_payoffs(tilewe_jax.make(name, **options))
    history = list(positions(game, BATCH, seed=2))
    # A first-play urgency of 1 makes the search try every action.
    rule, settings = PuctRule(c_init=2.0, fpu_value=1.0), SearchSettings(8000, 32, max_depth=40)
    search = jax.jit(Search(game, uniform_evaluator(game), rule, settings, capacity=500))
    solver, solved = Solver(game, 100), 0
    for lane in range(4):
        for state, action in history:
            if action[lane] < 0 or (values := solver.action_values(rows(state, lane))) is None:
                continue
            player = int(game.current_player(rows(state, lane)))
            result = search(rows(state, lane), jax.random.key(lane))
            best = max(values.values(), key=lambda value: value[player])
            assert values[int(result.action)][player] > best[player] - 0.02
            np.testing.assert_allclose(solved_from_its_leaves(result.tree), best, atol=1e-6)
            solved += len(values) > 1
            break
    assert solved


@pytest.mark.parametrize(("widen_visits", "leaves", "period"), [(4, 1, 1), (4, 1, 8), (4, 4, 8), (0, 1, 8)])
def test_visited_nodes_get_candidates_from_the_larger_pool(
    monkeypatch: pytest.MonkeyPatch, widen_visits: int, leaves: int, period: int
) -> None:
    monkeypatch.setattr(mcts, "WIDENING_PERIOD", period)
    game, pools = ZeroSum(), {"candidate_pool": 3, "root_candidate_pool": 9, "widen_visits": widen_visits}
    search = Search(game, oracle, PuctRule(), SearchSettings(80, 3, max_depth=9, leaves=leaves, **pools))
    output = jax.jit(jax.vmap(search))(opening(game, 1, 3), jax.random.split(jax.random.key(2), BATCH))
    assert output.num_simulations.tolist() == [80] * BATCH
    step = jax.jit(jax.vmap(game.apply))
    for lane in range(BATCH):
        tree = jax.device_get(rows(output.tree, lane))
        check_invariants(tree, leaves == 1, evaluations=2)
        parents, places = np.nonzero(tree.children >= 0)
        after = step(rows(tree.state, parents), tree.candidates[parents, places])
        assert_same(after, rows(tree.state, tree.children[parents, places]))
        inner = np.arange(len(tree.visits)) > 0
        is_wide = inner & (tree.visits > 0) & ~tree.is_narrow & ~tree.proven & ((tree.state.cells < 0).sum(axis=1) > 3)
        assert is_wide.any() == bool(widen_visits)
        assert (tree.visits[is_wide] > widen_visits).all()
        if period == 1:  # in every round
            assert (tree.visits[tree.is_narrow] <= widen_visits).all()
        if not widen_visits:
            assert (tree.is_narrow & inner & (tree.visits > 4)).any()


def test_stopping_early_does_not_change_the_action() -> None:
    game = TicTacToe()
    states, keys = opening(game, 4, 3), jax.random.split(jax.random.key(2), BATCH)
    settings = SearchSettings(60, 9, max_depth=9)
    full, early = (
        jax.jit(jax.vmap(Search(game, oracle, PuctRule(), replace(settings, stop_early=stop)))) for stop in (False, True)
    )
    whole, stopped = full(states, keys), early(states, keys)
    np.testing.assert_array_equal(whole.action, stopped.action)
    num_simulations = np.asarray(stopped.num_simulations)
    assert (np.asarray(whole.num_simulations) == 60).all()
    assert num_simulations.min() < 50
    for lane in range(BATCH):
        assert int(stopped.tree.visits[lane, 0]) == 1 + num_simulations[lane]
        visits = np.sort(np.asarray(stopped.visits[lane]))
        assert num_simulations[lane] == 60 or visits[-1] > visits[-2] + 60 - num_simulations[lane]
        check_invariants(rows(stopped.tree, lane))
    halving = Search(game, oracle, GumbelRule(), SearchSettings(20, 9, stop_early=True))
    assert int(jax.jit(halving)(rows(states, 0), keys[0]).num_simulations) == 20


def test_searches_in_parts_equal_whole_searches() -> None:
    game, keys = TicTacToe(), jax.random.split(jax.random.key(0), BATCH)
    states = opening(game, 1, 0)
    search = Search(game, playout_evaluator(game), GumbelRule(4, 1.0), SearchSettings(30, 9, max_depth=9, leaves=4))
    progress = jax.jit(jax.vmap(lambda state, key: search.start(search.init(state), key)))(states, keys)
    advance = jax.jit(jax.vmap(partial(search.advance, rounds=3)))
    for _ in range(3):
        progress = advance(progress)
    assert_same(jax.jit(jax.vmap(search.finish))(progress), jax.jit(jax.vmap(search))(states, keys))


@pytest.mark.parametrize(
    ("create", "name"),
    [
        (lambda game: SearchSettings(num_simulations=0), "num_simulations"),
        (lambda game: SearchSettings(score_weight=2.0), "score_weight"),
        (lambda game: SearchSettings(score_weight=float("nan")), "score_weight"),
        (lambda game: Search(game, oracle, PuctRule(), capacity=0), "capacity"),
        (lambda game: GumbelRule(max_num_considered_actions=0), "max_num_considered_actions"),
        (lambda game: PuctRule(c_init=float("inf")), "c_init"),
        (lambda game: PuctRule(dirichlet_fraction=2.0), "dirichlet_fraction"),
        (lambda game: playout_evaluator(game, 0), "num_playouts"),
        (
            lambda game: network_evaluator(game, lambda planes: (planes.ravel(), jnp.zeros(3))),
            r"logits float32\[9\], got float32\[18\]",
        ),
    ],
)
def test_invalid_settings(create: Any, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        create(TicTacToe())
