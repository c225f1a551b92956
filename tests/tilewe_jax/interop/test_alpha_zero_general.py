"""Games for alpha-zero-general: against the rules in plain Python, and with its Coach, Arena and MCTS.

``ALPHA_ZERO_GENERAL=folder`` names an unmodified checkout of suragnair/alpha-zero-general; without it, its tests are skipped.
"""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewe_jax
from tests.support import slow
from tilewe_jax.games.santorini.host import SantoriniBoard
from tilewe_jax.interop.alpha_zero_general import DRAW, PolyominoGame, SantoriniGame

CHECKOUT = os.environ.get("ALPHA_ZERO_GENERAL")
SANTORINI = SantoriniGame(3, True, seed=0)
PIECES = ["O1", "I2", "I3", "L3"]
POLYOMINO = {
    "duo": PolyominoGame("duo", size=5, pieces=PIECES, voluntary_pass=True),
    "duo_official": PolyominoGame("duo_official", size=5, pieces=PIECES),
    "tilewe": PolyominoGame("tilewe", size=5, pieces=PIECES),
    "classic_2": PolyominoGame("classic_2", size=5, pieces=["O1", "I2", "L3"]),
}
GAMES = {"santorini": SANTORINI, **POLYOMINO}


def test_santorini_follows_the_rules() -> None:
    random = np.random.default_rng(0)
    for _ in range(3):
        board, player = SANTORINI.getInitBoard(), 1
        while not (ended := SANTORINI.getGameEnded(board, player)):
            host = SantoriniBoard.from_array(board, player)
            valid = SANTORINI.getValidMoves(board, player)
            assert np.flatnonzero(valid).tolist() == host.legal_actions()
            canonical = SANTORINI.getCanonicalForm(board, player)
            np.testing.assert_array_equal(SANTORINI.getValidMoves(canonical, 1), valid)
            action = int(random.choice(np.flatnonzero(valid)))
            board, player = SANTORINI.getNextState(board, player, action)
            np.testing.assert_array_equal(board, host.after(action).to_array())
        assert host.after(action).is_terminal
        assert ended == -1  # the player to move has lost
        assert SANTORINI.getGameEnded(board, -player) in (1, 0)  # 0: the winner by a blockade is not to move


def test_initial_boards_of_santorini() -> None:
    default = SantoriniGame(5)
    assert (default.getBoardSize(), default.getActionSize()) == ((2, 5, 5), 128)
    board = default.getInitBoard()
    assert board.dtype == np.int8
    assert [tuple(np.argwhere(board[0] == piece)[0]) for piece in (1, 2, -1, -2)] == [(1, 2), (3, 2), (2, 1), (2, 3)]
    assert not board[1].any()
    starts = {SANTORINI.stringRepresentation(SANTORINI.getInitBoard()) for _ in range(8)}
    assert len(starts) > 4
    again = SantoriniGame(3, True, seed=5), SantoriniGame(3, True, seed=5)
    np.testing.assert_array_equal(again[0].getInitBoard(), again[1].getInitBoard())


@pytest.mark.parametrize("name", ["duo", "classic_2", slow("duo_official"), slow("tilewe")])
def test_polyomino_games_follow_the_rules(name: str) -> None:
    """Forced passes are actions here, but leave the position in plain Python unchanged."""
    azg = POLYOMINO[name]
    game, passes = azg.game, azg.getActionSize() - 1
    random = np.random.default_rng(0)
    for _ in range(2):
        position = game.host(game.init_from_deal(None))
        board, player = azg.getInitBoard(), 1
        assert board.shape == azg.getBoardSize()
        assert board.dtype == np.int8
        while not (ended := azg.getGameEnded(board, player)):
            valid = np.flatnonzero(azg.getValidMoves(board, player)).tolist()
            mover = 0 if player == 1 else 1
            if valid != [passes]:
                assert mover == position.current_player
                assert valid == position.legal_actions()
            action = int(random.choice(valid))
            if action != passes or (game.config.voluntary_pass and valid != [passes]):
                position = position.after(action)
            canonical = azg.getCanonicalForm(board, player)
            after, _ = azg.getNextState(canonical, 1, action)
            board, player = azg.getNextState(board, player, action)
            np.testing.assert_array_equal(azg.getCanonicalForm(after, -1), azg.getCanonicalForm(board, player))
        assert position.is_terminal
        scores = position.scores()
        margin = scores[0 if player == 1 else 1] - scores[1 if player == 1 else 0]
        assert ended == pytest.approx(np.sign(margin) if margin else DRAW)
        assert azg.getGameEnded(board, -player) == pytest.approx(-np.sign(margin) if margin else DRAW)


@pytest.mark.parametrize("name", ["santorini", "duo", "classic_2", slow("duo_official"), slow("tilewe")])
def test_symmetric_forms_have_symmetric_actions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Legal actions are transformed like the policy, and all forms and their keys differ."""
    azg = GAMES[name]
    board, player = azg.getInitBoard(), 1
    for _ in range(3):
        valid = np.flatnonzero(azg.getValidMoves(board, player))
        board, player = azg.getNextState(board, player, int(valid[len(valid) // 3]))
    board = azg.getCanonicalForm(board, player)
    valid = azg.getValidMoves(board, 1)
    pi = valid * np.arange(1, len(valid) + 1)
    forms = azg.getSymmetries(board, pi)
    np.testing.assert_array_equal(forms[0][0], board)
    np.testing.assert_array_equal(forms[0][1], pi)
    assert len(forms) == azg.game.num_symmetries
    for form, moved in forms:
        np.testing.assert_array_equal(moved > 0, azg.getValidMoves(form, 1) > 0)
        assert sorted(moved) == sorted(pi)
    assert len({azg.stringRepresentation(form) for form, _ in forms}) == len(forms)
    azg.display(board)
    assert capsys.readouterr().out


def test_invalid_games() -> None:
    with pytest.raises(ValueError, match="polyomino game"):
        PolyominoGame(tilewe_jax.make("tilewe"))
    with pytest.raises(ValueError, match="polyomino game"):
        PolyominoGame("santorini")
    with pytest.raises(ValueError, match="all different"):
        PolyominoGame("classic_2", start_cells=[[(0, 0)], [(0, 0)], [(1, 1)], [(2, 2)]])


class UniformNetwork:
    """A ``NeuralNet`` of alpha-zero-general with uniform priors and zero values."""

    def __init__(self, game: Any) -> None:
        self.size = game.getActionSize()
        self.examples: list[Any] = []

    def predict(self, board: np.ndarray) -> tuple[np.ndarray, float]:
        assert board.dtype == np.int8
        return np.full(self.size, 1 / self.size), 0.0

    def train(self, examples: list[Any]) -> None:
        self.examples += examples

    def save_checkpoint(self, folder: str, filename: str) -> None:
        Path(folder, filename).write_text("")

    def load_checkpoint(self, folder: str, filename: str) -> None:
        assert Path(folder, filename).exists()


@pytest.mark.skipif(CHECKOUT is None, reason="needs ALPHA_ZERO_GENERAL")
@pytest.mark.parametrize("name", GAMES)
def test_the_unmodified_program_learns_and_plays(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration of ``Coach``: self-play, training, and an ``Arena`` of both networks with ``MCTS``."""
    monkeypatch.syspath_prepend(CHECKOUT)
    from Arena import Arena
    from Coach import Coach
    from MCTS import MCTS

    azg = GAMES[name]
    network = UniformNetwork(azg)
    settings = {"numIters": 1, "numEps": 2, "tempThreshold": 5, "updateThreshold": 0.6, "maxlenOfQueue": 10_000}
    settings |= {"numMCTSSims": 8, "arenaCompare": 2, "cpuct": 1, "checkpoint": str(tmp_path)}
    args = SimpleNamespace(**settings, numItersForTrainExamplesHistory=2)
    Coach(azg, network, args).learn()
    assert network.examples
    for board, policy, value in network.examples:
        assert board.shape == azg.getBoardSize()
        assert np.sum(policy) == pytest.approx(1)
        assert abs(value) in (1, DRAW)

    def search(board: np.ndarray) -> int:
        return int(np.argmax(MCTS(azg, network, SimpleNamespace(numMCTSSims=40, cpuct=1)).getActionProb(board, temp=0)))

    def first(board: np.ndarray) -> int:
        return int(np.argmax(azg.getValidMoves(board, 1)))

    wins, losses, _ = Arena(search, first, azg).playGames(4)
    assert wins > losses
