"""Games in OpenSpiel: its simulation tests and solvers, and the resampling of states."""

from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

import jax
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import ismcts, mcts

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.support import slow, zero_sum_rewards
from tilewe_jax.interop import open_spiel, single

TINY = open_spiel.load_game("triominos", tiles=4, tray=1)
HIDDEN = open_spiel.load_game("triominos", tiles=10, tray=2)
GAMES = {
    "santorini": open_spiel.load_game("santorini", size=3),
    "santorini_random": open_spiel.load_game("santorini", size=3, placement="random"),
    "tilewe": open_spiel.load_game("tilewe", size=4, players=3, pieces=["O1", "I2"]),
    "tilewe_alone": open_spiel.load_game("tilewe", size=4, players=1, pieces=["O1", "I2"]),
    "triominos": HIDDEN,
    "triominos_highest": open_spiel.load_game("triominos", tiles=10, tray=2, players=3, start="highest"),
    "tictactoe": open_spiel.load_game(TicTacToe()),  # an unregistered game
}


def random_states(game: Any, seed: int) -> list[Any]:
    """Every state of a random game."""
    random, states = np.random.default_rng(seed), [game.new_initial_state()]
    while not states[-1].is_terminal():
        states.append(states[-1].child(int(random.choice(possible(states[-1])))))
    return states


def possible(state: Any) -> list[int]:
    """The actions or the outcomes of chance."""
    return [outcome for outcome, _ in state.chance_outcomes()] if state.is_chance_node() else state.legal_actions()


@pytest.mark.parametrize(
    "name",
    ["santorini_random", "tilewe", "triominos_highest", "tictactoe", *map(slow, ("santorini", "tilewe_alone", "triominos"))],
)
def test_random_sim_test_passes(name: str) -> None:
    pyspiel.random_sim_test(GAMES[name], num_sims=1, serialize=name != "tictactoe", verbose=False)


@pytest.mark.parametrize("name", ["santorini_random", "tilewe", "triominos"])
def test_games_follow_the_rules(name: str) -> None:
    """Names, texts, tensors and returns; the actions of a record replay on the device to the same end."""
    spiel = GAMES[name]
    game = open_spiel._RULES[str(spiel)].game
    for state in (state for seed in range(2) for state in random_states(spiel, seed)):
        if state.is_chance_node():
            continue
        position = state._at.position
        host = game.host(position.state)
        assert str(state) == host.text()
        assert state.is_terminal() == host.is_terminal
        if not host.is_terminal:
            assert state.current_player() == host.current_player
            assert state.legal_actions() == host.legal_actions()
            action = state.legal_actions()[-1]
            assert state.action_to_string(action) == host.action_name(action)
            assert not any(state.returns())
        else:
            np.testing.assert_allclose(state.returns(), zero_sum_rewards(host.scores()), atol=1e-6)
        for player in range(game.num_players):
            tensor = np.array(state.observation_tensor(player), np.float32)
            np.testing.assert_array_equal(tensor, single.observe(game, position.state, player).ravel())


@pytest.mark.parametrize("name", ["triominos", "triominos_highest"])
def test_resampled_states_are_indistinguishable(name: str) -> None:
    """Resampled states have the same information state and a consistent history, and hidden tiles change."""
    game = GAMES[name]
    random = np.random.RandomState(0)
    changed = 0
    for state in random_states(game, 5):
        if state.is_chance_node() or state.is_terminal():
            continue
        for player in range(game.num_players()):
            resampled = state.resample_from_infostate(player, random.random_sample)
            assert resampled.information_state_string(player) == state.information_state_string(player)
            assert resampled.observation_string(player) == state.observation_string(player)
            assert resampled.current_player() == state.current_player()
            replayed = game.new_initial_state()
            for action in resampled.history():
                assert action in possible(replayed)
                replayed.apply_action(action)
            assert replayed.legal_actions() == resampled.legal_actions()
            assert str(replayed).splitlines()[:-1] == str(resampled).splitlines()[:-1]
            trays = np.asarray(resampled._at.position.state.trays)
            np.testing.assert_array_equal(trays[player], np.asarray(state._at.position.state.trays)[player])
            changed += int((trays != np.asarray(state._at.position.state.trays)).any())
    assert changed > 5


def test_hidden_trays_stay_hidden() -> None:
    """Neither texts nor information states reveal the tiles of another player."""
    for state in random_states(HIDDEN, 1):
        if state.is_chance_node() or state.is_terminal():
            continue
        host = tilewe_jax.make("triominos", tiles=10, tray=2).host(state._at.position.state)
        lines = state.observation_string(0).splitlines()
        assert f"{len(host.trays[1])} tiles" in next(line for line in lines if line.startswith("player 2"))
        own = sum(event.seen_by == 0 for event in state._at.events)
        hidden = sum(event.seen_by == 1 for event in state._at.events)
        assert state.information_state_string(0).count("?") == hidden
        assert state.information_state_string(1).count("?") == own


def test_cfr_solves_the_smallest_game() -> None:
    uniform = pyspiel.exploitability(TINY, pyspiel.UniformRandomPolicy(TINY))
    solver = pyspiel.CFRSolver(TINY)
    for _ in range(2):
        solver.evaluate_and_update_policy()
    assert pyspiel.exploitability(TINY, solver.average_policy()) < uniform


def test_ismcts_plays() -> None:
    """Information-set Monte Carlo tree search, which resamples in every simulation, returns a legal action."""
    bot = ismcts.ISMCTSBot(
        game=HIDDEN,
        evaluator=mcts.RandomRolloutEvaluator(1, np.random.RandomState(0)),
        uct_c=2.0,
        max_simulations=20,
        random_state=np.random.RandomState(1),
    )
    state = max(random_states(HIDDEN, 3), key=lambda state: 0 if state.is_chance_node() else len(state.legal_actions()))
    assert bot.step(state) in state.legal_actions()


def test_environments_for_learners_work() -> None:
    env = rl_environment.Environment(GAMES["santorini"], include_full_state=False)
    step = env.reset()
    turns = 0
    while not step.last():
        player = step.observations["current_player"]
        step = env.step([step.observations["legal_actions"][player][0]])
        turns += 1
    assert turns > 3
    assert sorted(step.rewards) == [-1.0, 1.0]


def test_games_load_by_name() -> None:
    game = pyspiel.load_game("tilewe_jax_triominos", {"tiles": 4, "tray": 1})
    assert str(game) == str(TINY)
    assert str(pyspiel.load_game("tilewe_jax_santorini(size=3)")) == str(GAMES["santorini"])
    by_text = pyspiel.load_game(str(GAMES["tilewe"]))
    assert by_text.num_distinct_actions() == GAMES["tilewe"].num_distinct_actions()
    assert {f"tilewe_jax_{name}" for name in ("tilewe", "duo", "santorini")} <= set(pyspiel.registered_names())


def test_games_with_unlisted_chance_are_rejected() -> None:
    with pytest.raises(ValueError, match="chance"):
        open_spiel.load_game("triominos", game="target")


def test_chance_is_fair() -> None:
    """The deals reach all trays with both starting players."""
    chance = tilewe_jax.make("triominos", tiles=4, tray=1).chance()
    deals: list[list[int]] = [[]]
    while any(chance.deal_outcomes(deal) for deal in deals):
        deals = [[*deal, outcome] for deal in deals for outcome in chance.deal_outcomes(deal)]
    assert len(deals) == 4 * 3 * 2
    assert len({tuple(map(int, leaf)) for deal in deals for leaf in [first_facts(chance.start(deal))]}) == 24


def first_facts(state: Any) -> list[Any]:
    return [*jax.device_get(state.trays).ravel(), state.current_player]
