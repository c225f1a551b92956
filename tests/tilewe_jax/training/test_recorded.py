"""Training on recorded games."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.support import batched
from tests.toy import GAME, TOY
from tilewe_jax import agents, arena, records
from tilewe_jax.host_games import make_host_game
from tilewe_jax.training import Program, loss, recorded
from tilewe_jax.training.replay import UNKNOWN

PLAYED = 70
"""Number of games, larger than the batch in which games are replayed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random games in two files, one of them in a subfolder."""
    folder = tmp_path_factory.mktemp("recorded")
    players = [agents.agent("random", GAME)] * 2
    games = arena.play_match(GAME, players, PLAYED, PLAYED, seed=1, opening=0, keep=True).records
    (folder / "more").mkdir()
    records.write(folder / "a.jsonl", GAME, games[:66])
    records.write(folder / "more" / "b.jsonl", GAME, games[66:])
    return folder


def test_positions_agree_with_the_games(folder: Path) -> None:
    positions = recorded.read(GAME, folder, 10_000, 3, final_states=True)
    games = [*records.read(folder / "a.jsonl")[1], *records.read(folder / "more" / "b.jsonl")[1]]
    assert len(games) == PLAYED
    # The same positions by the rules of the host, in another order.
    expected, host = [], make_host_game(GAME.id, **GAME.options)
    for game in games:
        position = host.init_from_deal(game.deal)
        for action in game.actions:
            expected.append((position.current_player, action, game.returns, len(position.legal_actions())))
            position = position.after(action)
    functions = batched(GAME)
    current = np.asarray(functions.current_player(positions.state))
    legal = np.asarray(functions.legal_action_mask(positions.state))
    actions = np.asarray(positions.candidates)[:, 0]
    returns = map(tuple, positions.returns.tolist())
    replayed = zip(current.tolist(), actions.tolist(), returns, legal.sum(1).tolist(), strict=True)
    assert sorted(replayed) == sorted(expected)
    assert legal[np.arange(len(actions)), actions].all()
    assert np.asarray(functions.is_terminal(positions.final)).all()
    assert np.array_equal(functions.returns(positions.final), positions.returns)


def test_only_values_are_learned(folder: Path) -> None:
    few = folder / "more" / "b.jsonl"
    config = replace(TOY, replay=replace(TOY.replay, records=str(few), records_fraction=0.5))
    program = Program(config, 1)
    state = program.init(0)
    positions = recorded.read(GAME, few, 10_000, TOY.selfplay.search.num_candidates)

    @jax.jit
    def losses_of(model: Any) -> Any:
        keys = jax.random.split(jax.random.key(0), len(positions.finished))
        _, parts = jax.vmap(partial(loss.position_loss, config.loss, GAME, model))(positions, keys)
        return parts.outcome.mean(), parts.policy.max()

    before, _ = losses_of(state.learner.model)
    for _ in range(60):  # with an empty replay buffer
        state, losses = program.learn(state)
    after, policy = losses_of(state.learner.model)
    assert after < 0.5 * before
    assert policy == 0
    assert losses.policy == 0


def test_values_of_records_are_targets(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = records.read(folder / "a.jsonl")[1][0]
    values: list[Any] = [None, *([0.25, 0.75] for _ in game.actions[1:])]
    records.write(tmp_path / "valued.jsonl", GAME, [replace(game, extra={"values": values}), game])
    positions = recorded.read(GAME, tmp_path, 10_000, 3)
    expected = sorted([(UNKNOWN, UNKNOWN)] * (1 + len(game.actions)) + [(0.25, 0.75)] * (len(game.actions) - 1))
    assert sorted(map(tuple, positions.root_value.tolist())) == expected
    assert not capsys.readouterr().err  # nothing is ignored
    for wrong in ([], values[:-1], [0.5] * len(values), [[0.5, 1.5]] * len(values), [["a", "b"]] * len(values), 3):
        records.write(tmp_path / "valued.jsonl", GAME, [replace(game, extra={"values": wrong})])
        with pytest.raises(ValueError, match="values"):
            recorded.read(GAME, tmp_path, 10_000, 3)


def test_invalid_records_are_rejected(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other_pieces = tilewe_jax.make("tilewe", players=2, size=4, pieces=("I2", "I3"))
    with pytest.raises(ValueError, match=r"a\.jsonl"):
        recorded.read(other_pieces, folder, 10_000, 3)
    with pytest.raises(ValueError, match=r"2\d\d"):
        recorded.read(GAME, folder, 100, 3)
    with pytest.raises(ValueError, match=r"no positions"):
        recorded.read(GAME, tmp_path, 100, 3)
    with pytest.raises(ValueError, match=r"^replay\.records: .*nowhere: No such file"):
        Program(replace(TOY, replay=replace(TOY.replay, records=str(tmp_path / "nowhere"))), 1)
    game = records.read(folder / "a.jsonl")[1][0]
    records.write(tmp_path / "wrong.jsonl", GAME, [replace(game, returns=game.returns[::-1], scores=(99, 0))])
    with pytest.raises(ValueError, match=r"wrong\.jsonl"):
        recorded.read(GAME, tmp_path, 100, 3)
    records.write(tmp_path / "wrong.jsonl", GAME, [replace(game, returns=(), scores=())])
    with pytest.raises(ValueError, match=r"wrong\.jsonl"):
        recorded.read(GAME, tmp_path, 100, 3)
    (tmp_path / "wrong.jsonl").unlink()
    (tmp_path / "book.SGF").write_text("(;GM[Blokus Duo];B[e10](;W[j5])(;W[i5,j5]))")
    with pytest.raises(ValueError, match=r"book\.SGF has games of duo_official"):
        recorded.read(GAME, tmp_path, 100, 3)
    assert "book.SGF: 1 variation is not read" in capsys.readouterr().err
