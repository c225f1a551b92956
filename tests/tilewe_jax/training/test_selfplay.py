"""Self-play, replay buffer, losses and architectures."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewe_jax
from tests import toy
from tests.search.tictactoe import TicTacToe
from tests.support import batched, positions, rows
from tilewe_jax import networks
from tilewe_jax.game import observation_shape
from tilewe_jax.search import Evaluation, GumbelRule, SearchSettings, dense_logits
from tilewe_jax.training import agents, loss, replay, selfplay
from tilewe_jax.training.config import LossConfig, SelfplayConfig
from tilewe_jax.training.heads import ownership_head
from tilewe_jax.training.replay import Positions

GAME = TicTacToe()
CONFIG = SelfplayConfig(
    num_games=8,
    unroll_length=24,
    search=SearchSettings(num_simulations=6, num_candidates=9, candidate_pool=9, max_depth=9),
    gumbel=GumbelRule(max_num_considered_actions=4, gumbel_scale=1.0),
)


def uniform(params: Any, state: Any, key: Any) -> Any:
    """Evaluate a position with logits that grow with the action."""
    del params, state, key
    return Evaluation(dense_logits(jnp.linspace(0.0, 1.0, 9)), jnp.full(2, 0.5))


def played(config: SelfplayConfig, seed: int = 0, opponent: Any = None) -> Any:
    players = agents.full_and_fast(config, GAME, uniform)
    games = selfplay.start(config, GAME, jax.random.key(seed), config.num_games)
    play = jax.jit(lambda games, key: selfplay.play(config, GAME, players, games, key, opponent))
    return play(games, jax.random.key(seed + 1))


def test_columns_are_sequences_of_legal_games() -> None:
    """Each column holds games by the rules, and the last position of a game has its outcome."""
    games, moved, stats = jax.device_get(played(CONFIG))
    step, over, first = jax.jit(GAME.step), GAME.is_terminal, GAME.init(jax.random.key(0))
    finished = 0
    for lane in range(CONFIG.num_games):
        number, ply = 0, 0
        for t in range(CONFIG.unroll_length):
            state = rows(rows(moved, t), lane).state
            if not ply:
                jax.tree.map(np.testing.assert_array_equal, state, jax.device_get(first))
            legal = np.flatnonzero(np.asarray(GAME.legal_action_mask(state)))
            actions, policy = moved.candidates[t, lane], moved.policy[t, lane]
            assert sorted(actions[actions >= 0].tolist()) == legal.tolist()
            np.testing.assert_allclose(policy.sum(), 1, rtol=1e-5)
            assert (policy[actions < 0] == 0).all()
            assert moved.game_index[t, lane] == number
            after = rows(rows(moved, t + 1), lane).state if t + 1 < CONFIG.unroll_length else rows(games, lane).state
            ends = [a for a in legal if bool(over(step(state, jnp.int32(a))))]
            if moved.finished[t, lane]:
                results = {tuple(np.asarray(GAME.returns(step(state, jnp.int32(a)))).tolist()) for a in ends}
                assert tuple(moved.returns[t, lane].tolist()) in results
                number, ply, finished = number + 1, 0, finished + 1
            else:
                nexts = [jax.device_get(step(state, jnp.int32(a))) for a in legal]
                assert any(jax.tree.all(jax.tree.map(np.array_equal, after, following)) for following in nexts)
                assert (moved.returns[t, lane] == replay.UNKNOWN).all()
                ply += 1
        assert games.game_index[lane] == number
        assert games.ply[lane] == ply
    assert stats.games == finished > 10
    assert stats.moves == stats.full_searches == CONFIG.num_games * CONFIG.unroll_length
    assert stats.returns.sum() == pytest.approx(finished)
    assert (moved.surprise > 0).any()


def test_fast_searches_are_excluded_from_learning() -> None:
    _, moved, stats = jax.device_get(played(replace(CONFIG, fast_simulations=2, full_search_prob=0.3)))
    full = (moved.surprise >= 0).all(axis=1)
    assert ((moved.surprise >= 0) == full[:, None]).all()  # all games alike
    assert 0 < full.sum() < CONFIG.unroll_length
    assert stats.full_searches == full.sum() * CONFIG.num_games


def test_every_tenth_game_is_played_without_resignation() -> None:
    """With a threshold of 0.5, players resign immediately, except in every tenth game of a column."""
    games, moved, stats = jax.device_get(played(replace(CONFIG, resign_threshold=0.5)))
    assert stats.resigned > 0
    assert stats.resignations_checked >= CONFIG.num_games
    assert 0 < stats.false_resignations <= stats.resignations_checked
    first = moved.game_index == 0
    lengths = first.sum(axis=0)
    assert (lengths >= 5).all()  # no game of tic-tac-toe is shorter
    assert ((moved.game_index == 1).sum(axis=0) == 1).all()
    assert set(moved.returns[moved.finished].ravel().tolist()) <= {0.0, 0.5, 1.0}
    assert (games.winner[games.game_index % 10 != 0] == -1).all()


AGAINST = replace(CONFIG, num_games=72, opponent_fraction=1.0)
"""Self-play against an opponent, with more games than a chunk of searches."""


def first_legal(state: Any, key: Any) -> Any:
    """Play the first legal action."""
    del key
    return jnp.argmax(GAME.legal_action_mask(state)).astype(jnp.int32)


def test_moves_of_an_opponent_have_no_policy_target() -> None:
    """Only the moves of the learner, which has one seat per game, have a searched policy; the opponent's have one candidate."""
    games, moved, stats = jax.device_get(played(AGAINST, opponent=first_legal))
    mover, cells = moved.state.current_player, moved.state.cells
    searched = moved.root_value[..., 0] != replay.UNKNOWN
    lowest = np.argmax(cells < 0, axis=-1)
    assert (moved.candidates[~searched][:, 0] == lowest[~searched]).all()
    assert (moved.candidates[~searched][:, 1:] == -1).all()
    assert (moved.policy[~searched] == np.eye(9)[0]).all()
    assert (moved.surprise[~searched] == 0).all()
    legal = (cells < 0).sum(axis=-1)
    assert ((moved.candidates >= 0).sum(axis=-1)[searched] == legal[searched]).all()
    np.testing.assert_array_equal(cells[1:][~searched[:-1] & ~moved.finished[:-1]].max(), 1)

    seats, won, finished = [], 0.0, 0
    for column in range(AGAINST.num_games):
        for number in range(games.game_index[column] + 1):
            rows_of_game = moved.game_index[:, column] == number
            seat = set(mover[rows_of_game & searched[:, column], column].tolist())
            assert seat.isdisjoint(mover[rows_of_game & ~searched[:, column], column].tolist())
            if number < games.game_index[column]:
                assert len(seat) == 1
                seats += seat
                won += moved.returns[rows_of_game & moved.finished[:, column], column, seats[-1]].item()
                finished += 1
            elif seat:
                assert seat == {games.learner_seat[column]}
        for t in range(AGAINST.unroll_length - 1):  # recorded actions were played
            if not searched[t, column] and not moved.finished[t, column]:
                after = cells[t].copy()[column]
                after[lowest[t, column]] = mover[t, column]
                np.testing.assert_array_equal(cells[t + 1, column], after)
    assert stats.opponent_games == stats.games == finished > 150
    assert stats.learner_returns == pytest.approx(won)
    assert stats.opponent_moves == (~searched).sum()
    assert stats.full_searches == searched.sum()
    assert abs(np.mean(seats) - 0.5) < 4 * 0.5 / len(seats) ** 0.5


def test_fraction_of_games_against_the_opponent() -> None:
    config = replace(AGAINST, opponent_fraction=0.25)
    games, moved, stats = jax.device_get(played(config, opponent=first_legal))
    against = stats.opponent_games / stats.games
    assert abs(against - 0.25) < 4 * (0.25 * 0.75 / stats.games) ** 0.5
    alone = (moved.game_index == games.game_index[None]) & (games.learner_seat < 0)[None]
    assert (moved.root_value[alone] != replay.UNKNOWN).all()
    assert 0 < stats.opponent_moves < 0.25 * stats.moves


def test_games_without_the_opponent_equal_plain_selfplay() -> None:
    """If no game is against the opponent, positions are bit-exact, with fast searches."""
    config = replace(AGAINST, opponent_fraction=0.0, fast_simulations=2, full_search_prob=0.5)
    _, plain, before = jax.device_get(played(config))
    _, moved, after = jax.device_get(played(replace(config, opponent_fraction=1e-9), opponent=first_legal))
    jax.tree.map(np.testing.assert_array_equal, plain, moved)
    assert after.opponent_moves == after.opponent_games == before.opponent_moves == 0
    assert after.full_searches == before.full_searches > 0


def test_seats_of_the_learner_are_uniform() -> None:
    seats = jax.vmap(lambda key: selfplay._learner_seat(1.0, 4, key))(jax.random.split(jax.random.key(0), 8000))
    counts = np.bincount(np.asarray(seats), minlength=4)
    assert counts.sum() == 8000
    assert (abs(counts - 2000) < 4 * (8000 * 0.25 * 0.75) ** 0.5).all()


ADD = jax.jit(replay.add, static_argnums=2)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_outcomes_are_copied_to_all_positions_of_a_game(data: st.DataObject) -> None:
    """Outcomes and TD(lambda) targets equal those of a list of games, over several rounds of the ring.

    Some positions are solved: their targets, and those of the positions before them, take the exact outcome.
    """
    size, more, lanes = 6, 3, 2
    td_lambda = data.draw(st.sampled_from([1.0, 0.7, 0.0]))

    def target(history: list[Any], time: int, lane: int, td_lambda: float) -> Any:
        _, _, ended, won, solved = history[time]
        if solved[lane].sum():
            return solved[lane]
        if ended[lane]:
            return won[lane]
        value, rest = history[time + 1][1][lane], target(history, time + 1, lane, td_lambda)
        is_exact = history[time + 1][4][lane].sum() > 0
        return rest if is_exact or value[0] == replay.UNKNOWN else (1 - td_lambda) * value + td_lambda * rest

    ring = replay.empty(GAME, size, lanes, 9, final_states=True)
    add, history = ADD, []
    number = np.zeros(lanes, int)
    for _ in range(data.draw(st.integers(1, 6))):
        ended = np.array(
            data.draw(st.lists(st.lists(st.booleans(), min_size=lanes, max_size=lanes), min_size=more, max_size=more))
        )
        game = number + np.cumsum(np.vstack([np.zeros((1, lanes), bool), ended[:-1]]), axis=0)
        number = game[-1] + ended[-1]
        outcome = np.where(ended, 1 / (game + 2), 0).astype(np.float32)
        won = np.stack([outcome, np.where(ended, 1 - outcome, 0)], axis=-1)
        share = st.sampled_from([0.1, 0.4, 0.9, replay.UNKNOWN])
        shares = np.array(data.draw(st.lists(share, min_size=more * lanes, max_size=more * lanes)))
        values = np.stack([shares, np.where(shares == replay.UNKNOWN, shares, 1 - shares)], axis=-1).astype(np.float32)
        values = values.reshape(more, lanes, 2)
        exact = np.array(
            data.draw(st.lists(st.sampled_from([-1, -1, -1, 0.0, 0.5, 1.0]), min_size=more * lanes, max_size=more * lanes))
        )
        solved = np.where(exact[:, None] < 0, 0, np.stack([exact, 1 - exact], axis=-1)).reshape(more, lanes, 2)
        solved = solved.astype(np.float32)
        new = rows(ring.positions, np.arange(more))
        cells = jnp.asarray(np.where(ended, game, -1), new.final.cells.dtype)
        new = replace(
            new,
            final=replace(new.final, cells=jnp.broadcast_to(cells[..., None], new.final.cells.shape)),
            root_value=jnp.asarray(values),
            game_index=jnp.asarray(game, jnp.int32),
            returns=jnp.asarray(np.where(ended[..., None], won, replay.UNKNOWN)),
            score_value=jnp.asarray(won),
            outcome_target=jnp.asarray(solved),
        )
        ring = add(ring, new, td_lambda)
        history += [(game[t], values[t], ended[t], won[t], solved[t]) for t in range(more)]
    kept = {time % size: time for time in range(max(0, len(history) - size), len(history))}
    for row in range(size):
        for lane in range(lanes):
            if row not in kept:
                assert int(ring.positions.game_index[row, lane]) == -1
                assert not ring.positions.finished[row, lane]
                continue
            time = kept[row]
            game = int(history[time][0][lane])
            over = game < number[lane]
            assert int(ring.positions.game_index[row, lane]) == game
            assert bool(ring.positions.finished[row, lane]) == over
            np.testing.assert_allclose(
                ring.positions.returns[row, lane, 0], 1 / (game + 2) if over else replay.UNKNOWN, rtol=1e-6
            )
            if over:
                expected = target(history, time, lane, td_lambda)
                np.testing.assert_allclose(ring.positions.outcome_target[row, lane], expected, atol=1e-6)
                assert (np.asarray(ring.positions.final.cells[row, lane]) == game).all()


def test_half_of_the_games_start_with_random_actions() -> None:
    config = replace(CONFIG, random_opening=3, num_games=512)
    state = jax.jit(lambda key: selfplay.start(config, GAME, key, config.num_games).state)(jax.random.key(0))
    plies = np.bincount((np.asarray(state.cells) >= 0).sum(axis=1), minlength=10)
    assert plies[4:].sum() == 0
    assert (abs(plies[:4] - 512 * np.array([3, 1, 1, 1]) / 6) < 4 * (512 * 0.25) ** 0.5).all()
    # The law holds for restarted games too.
    _, moved, _ = jax.device_get(played(replace(config, num_games=8)))
    starts = (moved.state.cells[1:] >= 0).sum(axis=-1)[moved.finished[:-1]]
    assert set(starts.tolist()) == {0, 1, 2, 3}


def test_positions_are_sampled_by_surprise() -> None:
    ring = replay.empty(GAME, 4, 2, 9)
    surprise = jnp.asarray([[0.0, 1.0], [3.0, -1.0], [9.0, 0.0], [0.0, 0.0]])
    returns = jnp.asarray([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])[..., None].repeat(2, -1)
    ring = replace(ring, positions=replace(ring.positions, surprise=surprise, returns=returns))
    draw = jax.jit(replay.sample, static_argnums=(2, 3))
    drawn = np.asarray(draw(ring, jax.random.key(0), 40_000, 0.5))
    shares = np.bincount(drawn, minlength=8) / 40_000
    np.testing.assert_allclose(shares, [0.125, 0.25, 0.5, 0, 0, 0.125, 0, 0], atol=0.01)
    none = replace(ring, positions=replace(ring.positions, returns=returns * 0 + replay.UNKNOWN))
    assert (np.asarray(draw(none, jax.random.key(0), 10, 0.5)) == -1).all()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("duo", {"size": 5, "pieces": ("I2", "L3"), "voluntary_pass": True}),
        ("santorini", {"size": 3, "placement": "chosen"}),
        ("triominos", {"players": 3, "tiles": 10, "tray": 2}),
    ],
    ids=str,
)
def test_outputs_of_networks_have_the_shapes_of_the_game(name: str, options: dict[str, Any]) -> None:
    game = tilewe_jax.make(name, **options)
    model = networks.make(game, "default", "tiny", jax.random.key(0))

    @jax.jit
    @jax.vmap
    def ask(key: Any) -> Any:
        state = game.init(key)
        outputs = model(game.observe(state, game.current_player(state)))
        return outputs, game.gather_logits(state, outputs.logits, game.sample_actions(state, key, 5))

    outputs, logits = ask(jax.random.split(jax.random.key(1), 4))
    assert outputs.logits.shape == (4, game.num_logits)
    assert outputs.outcome_logits.shape == outputs.score_logits.shape == (4, game.num_players)
    assert logits.shape == (4, 5)
    assert np.isfinite(np.asarray(logits)).all()


def test_architectures_are_chosen_by_name() -> None:
    """Architectures are registered by class of games, and games have a default."""
    santorini, triominos = tilewe_jax.make("santorini", size=3), tilewe_jax.make("triominos")
    assert networks.architectures(santorini) == ["resnet", "mlp", "reach_resnet"]
    assert networks.architectures(triominos) == ["message_passing", "mlp"]
    assert networks.architectures(GAME) == ["mlp"]

    def structure(architecture: str) -> Any:
        return jax.tree.structure(jax.eval_shape(lambda: networks.make(santorini, architecture, "tiny", jax.random.key(0))))

    assert structure("default") == structure("resnet") != structure("mlp")
    with pytest.raises(ValueError, match=r"'gnn' .*default, resnet, mlp, reach_resnet"):
        networks.make(santorini, "gnn", "tiny", jax.random.key(0))
    with pytest.raises(ValueError, match="'mlp'"):
        networks.register_architecture("mlp", networks.registry.PolyominoMLP)

    def wrong(game: Any, size: networks.Size, key: Any) -> networks.Model:
        model = networks.make(game, "mlp", "tiny", key)
        return lambda observation: model(observation)._replace(logits=jnp.zeros(3))

    registered = networks.registry._ARCHITECTURES
    networks.register_architecture("wrong", wrong, type(GAME))
    try:
        assert networks.architectures(GAME) == ["mlp", "wrong"]
        assert "wrong" not in networks.architectures(santorini)
        with pytest.raises(ValueError, match=r"'wrong'.*wrong.*expected logits float32\[9\], got float32\[3\]"):
            networks.make(GAME, "wrong", "tiny", jax.random.key(0))
    finally:
        del registered["wrong"]


def test_sizes_grow() -> None:
    game = tilewe_jax.make("duo_official")
    counts = [
        networks.num_parameters(jax.eval_shape(lambda size=size: networks.make(game, "default", size, jax.random.key(0))))
        for size in networks.SIZES
    ]
    assert counts == sorted(counts)
    assert counts[1] < 100_000
    assert 7e6 < counts[-1] < 10e6


def test_tiles_of_slots_agree_with_the_rules() -> None:
    from tilewe_jax.games.triominos import observation

    game = tilewe_jax.make("triominos", tiles=35, tray=5)
    functions, config, compared = batched(game), game.config, 0
    for ply, (state, _) in enumerate(positions(game, 8, seed=3)):
        if ply % 5 != 3:
            continue
        parts = observation.split(config, functions.observe(state, state.current_player))
        tile, fits = map(np.asarray, jax.vmap(lambda slots: observation.tiles_of_slots(config, slots))(parts["slots"]))
        own = np.asarray(parts["tiles"][..., 0]) > 0
        legal = np.asarray(functions.legal_action_mask(state))
        for lane in np.flatnonzero(~np.asarray(functions.is_terminal(state))):
            position = rows(state, lane)
            actions = np.asarray(game.compact_actions(position))[: config.frontier_size * config.numbers].reshape(
                tile[lane].shape
            )
            for slot, number in np.argwhere(np.asarray(position.table.frontier)[:, None] >= 0 & (actions >= 0)):
                action = int(actions[slot, number])
                if action >= 0 and legal[lane, action]:
                    named = game.describe(position, action)[0]
                    assert fits[lane, slot, number]
                    assert own[lane, tile[lane, slot, number]]
                    assert sorted(named) == sorted("".join(map(str, config.tile_list[tile[lane, slot, number]])))
                    compared += 1
    assert compared > 20


def test_losses_agree_with_numpy() -> None:
    """The second player is to move, so that seats are rotated."""
    config = LossConfig(root_value_weight=0.25, outcome_loss_weight=2.0, score_loss_weight=0.5)
    state = GAME.step(GAME.init(jax.random.key(0)), jnp.int32(4))
    outputs = networks.Outputs(jnp.arange(9.0), jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 0.5]))
    position = Positions(
        state,
        jnp.asarray([8, 0, 2, -1]),
        jnp.asarray([0.5, 0.25, 0.25, 0.0]),
        jnp.asarray([0.4, 0.6]),
        jnp.float32(0),
        jnp.int32(0),
        jnp.asarray([0.0, 1.0]),
        jnp.asarray([0.1, 0.9]),
        jnp.asarray([0.2, 0.8]),
    )
    total, parts = loss.position_loss(config, GAME, lambda observation: outputs, position, jax.random.key(0))

    def divergence(target: list[float], logits: list[float]) -> float:
        guess = np.exp(logits) / np.exp(logits).sum()
        return float(sum(p * np.log(p / q) for p, q in zip(target, guess, strict=True) if p))

    policy = divergence([0.5, 0.25, 0.25], [8.0, 0.0, 2.0])
    # The mover, seat 1, comes first.
    outcome = divergence([0.25 * 0.6 + 0.75 * 0.9, 0.25 * 0.4 + 0.75 * 0.1], [1.0, 0.0])
    score = divergence([0.8, 0.2], [0.0, 0.5])
    np.testing.assert_allclose([parts.policy, parts.outcome, parts.score], [policy, outcome, score], rtol=1e-5)
    np.testing.assert_allclose(total, policy + 2 * outcome + 0.5 * score, rtol=1e-5)
    assert float(parts.agreement) == 1
    assert np.asarray(parts.calibration)[0].sum() == 2
    unfinished = replace(position, returns=jnp.full(2, replay.UNKNOWN))
    nothing, _ = loss.position_loss(config, GAME, lambda observation: outputs, unfinished, jax.random.key(0))
    assert float(nothing) == 0
    wrong = outputs._replace(outcome_logits=jnp.zeros(3))
    with pytest.raises(ValueError, match=r"outcome_logits float32\[2\], got float32\[3\]"):
        loss.predict(GAME, lambda observation: wrong, state, position.candidates)

    def model_of_logits(observation: Any) -> Any:
        return outputs.logits

    with pytest.raises(TypeError, match=r"model_of_logits: expected networks\.Outputs"):
        networks.check_outputs(model_of_logits, outputs.logits, 9, 2)


def test_ownership_loss_is_relative_to_the_mover() -> None:
    """The loss agrees with NumPy, and the final state is transformed with the position."""
    config = LossConfig(ownership_loss_weight=0.5, augment=False)
    game, size = toy.GAME, toy.GAME.config.size
    state = final = game.step(game.init(jax.random.key(0)), game.sample_action(game.init(jax.random.key(0)), jax.random.key(1)))
    step, draw = jax.jit(game.step), jax.jit(game.sample_action)
    while not game.is_terminal(final):
        final = step(final, draw(final, jax.random.key(2)))
    boards = [sum(int(word) << 32 * i for i, word in enumerate(words)) for words in np.asarray(final.occupied)]
    assert np.asarray(game.ownership(final)).tolist() == [
        next((seat for seat in range(2) if boards[seat] >> cell & 1), -1) for cell in range(size * size)
    ]
    actions = jnp.asarray(game.legal_list(state, 8))
    share = jnp.asarray([0.5, 0.5])
    position = Positions(
        state,
        actions,
        jnp.eye(8)[0],
        share,
        jnp.float32(0),
        jnp.int32(0),
        *[share] * 3,
        final=final,
    )

    def vector(observation: Any) -> networks.Outputs:
        return networks.Outputs(jnp.zeros(game.num_logits), jnp.zeros(2), jnp.zeros(2), jnp.asarray([1.0, -2.0]))

    def board(observation: Any) -> networks.Outputs:
        return vector(observation)._replace(features=jnp.moveaxis(observation, 0, -1))

    def learned(model: Any, position: Any, config: LossConfig, seed: int = 0) -> tuple[Any, Any, Any]:
        head = ownership_head(game, model)
        weight = jax.random.normal(jax.random.key(3), head.linear.weight.shape)
        head = eqx.tree_at(lambda head: head.linear.weight, head, weight)
        compute = jax.jit(lambda position, head, key: loss.position_loss(config, game, model, position, key, head))
        total, parts = compute(position, head, jax.random.key(seed))
        return total, parts, weight

    total, parts, weight = learned(vector, position, config)
    logits = (np.asarray([1.0, -2.0]) @ np.asarray(weight)).reshape(size * size, 3)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    # Seat 1 is to move, so that it comes first.
    owner = [1 if boards[0] >> cell & 1 else 0 if boards[1] >> cell & 1 else 2 for cell in range(size * size)]
    expected = -np.log(probabilities[np.arange(size * size), owner]).mean()
    np.testing.assert_allclose(parts.ownership, expected, rtol=1e-5)
    without = jax.jit(lambda: loss.position_loss(config, game, vector, position, jax.random.key(0))[0])()
    np.testing.assert_allclose(total, without + 0.5 * parts.ownership, rtol=1e-5)
    assert float(learned(vector, replace(position, final=state), config)[1].ownership) == 0

    assert game.num_symmetries > 1
    plain = learned(board, position, config)[1].ownership
    for seed in range(2):
        turned = learned(board, position, replace(config, augment=True), seed)[1].ownership
        np.testing.assert_allclose(turned, plain, rtol=1e-5)
    with pytest.raises(ValueError, match="features"):
        ownership_head(game, lambda observation: vector(observation)._replace(features=None))


def test_loss_is_invariant_under_symmetries() -> None:
    """The loss of an augmented position is that of the transformed position with renamed candidates."""
    game = tilewe_jax.make("santorini", size=3)
    config = LossConfig()
    weights = jax.random.normal(jax.random.key(0), (game.num_logits, *observation_shape(game)))

    def model(observation: Any) -> networks.Outputs:
        return networks.Outputs(jnp.einsum("achw,chw->a", weights, observation), jnp.zeros(2), jnp.zeros(2))

    state = rows(list(positions(game, 2))[5][0], 0)
    actions = game.sample_actions(state, jax.random.key(1), 16)
    valid = (actions >= 0).astype(jnp.float32)
    policy = valid / valid.sum()
    position = Positions(
        state,
        actions,
        policy,
        jnp.full(2, 0.5),
        jnp.float32(0),
        jnp.int32(0),
        *[jnp.full(2, 0.5)] * 3,
    )
    compute = jax.jit(lambda config, position, key: loss.position_loss(config, game, model, position, key)[0], static_argnums=0)
    for seed in range(4):
        key = jax.random.key(seed)
        index = jax.random.randint(key, (), 0, game.num_symmetries)
        transformed = game.transform(state, index)
        renamed = jnp.where(actions >= 0, jnp.asarray(game.action_symmetries)[index][jnp.maximum(actions, 0)], -1)
        turned = replace(position, state=transformed, candidates=renamed)
        plain = compute(replace(config, augment=False), turned, key)
        augmented = compute(config, position, key)
        np.testing.assert_allclose(plain, augmented, rtol=1e-5)
        assert np.asarray(game.legal_action_mask(transformed))[np.asarray(renamed)[np.asarray(renamed) >= 0]].all()
