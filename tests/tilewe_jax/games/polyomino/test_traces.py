"""Replays of whole games of other implementations, with all values that they recorded.

Of the legal moves in the Tilewe traces, these tests check the placements: ``u`` (their number) and ``L`` (their names). The
tests of the drop-in check the moves.
"""

from dataclasses import replace
from functools import cache
from hashlib import sha1
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import rows, sampled_and_full, slow, traces
from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.games.polyomino.boards import planes
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.notation import cells_of
from tilewe_jax.host_games import make_host_game
from tilewe_jax.lanes import per_lane
from tilewe_jax.tilewe.convert import state_of_position


def replayed(game: PolyominoGame, actions: list[int]) -> Any:
    """Return the states before each action and after the last; check that the actions are legal."""
    run = _replay(game)
    padded = jnp.array(actions + [-1] * (game.max_steps - len(actions)), jnp.int32)
    last, states, legal = run(padded)
    assert np.asarray(legal)[: len(actions)].all()
    return jax.device_get(jax.tree.map(lambda a, b: jnp.concatenate([a[: len(actions)], b[None]]), states, last))


@cache
def _replay(game: PolyominoGame) -> Any:
    def step(state, action):
        return game.step(state, action), (state, game.is_legal(state, action))

    @jax.jit
    def run(actions):
        last, (states, legal) = jax.lax.scan(step, game.init(jax.random.key(0)), actions)
        return last, states, legal

    return run


@cache
def _views(game: PolyominoGame) -> Any:
    """Return a function of a batch of states: the legal placements and the open corners of each player."""

    def of_player(state, player):
        free, corners, _ = per_lane(lambda *args: planes(game.config, *args))(state.occupied, state.hands, player)
        asked = replace(state, current_color=player, out=jnp.zeros_like(state.out))
        return game.placements(asked), free & corners

    players = jnp.arange(game.num_players)
    both = jax.vmap(jax.vmap(of_player, in_axes=(None, 0)), in_axes=(0, None))
    return jax.jit(lambda states: both(states, players))


def views(game: PolyominoGame, states: Any) -> tuple[np.ndarray, np.ndarray]:
    """``_views`` in batches of one size."""
    size, count = 32, len(states.current_color)
    parts = []
    for start in range(0, count, size):
        index = np.minimum(np.arange(start, start + size), count - 1)
        parts.append(jax.device_get(_views(game)(rows(states, index))))
    legal, corners = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    return legal, corners


def placements(game: PolyominoGame, legal: np.ndarray) -> list[tuple[int, ...]]:
    """List placements as sorted bits ``y * size + x``."""
    bits = np.unpackbits(legal.view(np.uint8), axis=-1, bitorder="little")
    result = []
    for orientation, anchor in np.argwhere(bits[:, : game.config.cells]).tolist():
        cells = game.cells_of(orientation * game.config.cells + anchor)
        result.append(tuple(sorted(game.config.bit(cell) for cell in cells)))
    return result


def playable(game: PolyominoGame, corners: np.ndarray, legal: list[tuple[int, ...]]) -> list[int]:
    """List the open corners that a placement covers."""
    bits = np.unpackbits(corners.view(np.uint8), bitorder="little")[: game.config.cells]
    covered = {cell for cells in legal for cell in cells}
    return [cell for cell in np.flatnonzero(bits).tolist() if cell in covered]


@sampled_and_full
@pytest.mark.parametrize("players", [slow(1), slow(3), 4])
def test_tilewe(players: int, full: bool) -> None:
    header, *games = traces(f"tilewe/games_{players}p.jsonl.gz", full)
    assert header["n_players"] == players
    game = tilewe_jax.make("tilewe", players=players)
    for trace in games:
        plies = trace["plies"]
        actions = [game.action_of_name(ply["m"]) for ply in plies if "m" in ply]
        states = replayed(game, actions)
        legal, corners = views(game, states)
        scores = np.asarray(jax.vmap(game.scores)(states))
        for i, ply in enumerate(plies):
            over = bool(np.all(states.out[i]))
            assert over == ("m" not in ply)
            sets = [placements(game, legal[i, player]) for player in range(players)]
            if not over:
                assert int(states.current_color[i]) == ply["p"]
                assert len(sets[ply["p"]]) == ply["u"] == int(states.legal_counts[i].sum())
            assert [bool(moves) for moves in sets] == [bool(can) for can in ply["c"]]
            assert [playable(game, corners[i, player], sets[player]) for player in range(players)] == ply["k"]
            assert scores[i].tolist() == ply["s"]
            assert states.hands[i].tolist() == ply["r"]
            assert np.flatnonzero(scores[i] == scores[i].max()).tolist() == ply["w"]
            if "L" in ply:
                named = {game.action_of_name(name) for name in ply["L"]}
                mine = {game.action_of([divmod(c, 20)[::-1] for c in cells]) for cells in sets[ply["p"]]}
                assert named == mine
        last = jax.device_put(rows(states, -1))
        returns = np.asarray(game.returns(last))
        assert bool(game.is_terminal(last))
        if players > 1:
            winners = scores[-1] == scores[-1].max()
            np.testing.assert_allclose(returns, winners / winners.sum())


@sampled_and_full
@pytest.mark.parametrize(("file", "name"), [("duo_modified", "duo"), ("duo_official", "duo_official")])
def test_duo(file: str, name: str, full: bool) -> None:
    """On the host, which other tests compare with the device."""
    header, *games = traces(f"duo/{file}.jsonl.gz", full)
    game = tilewe_jax.make(name)
    config = game.config
    assert [[config.bit(cell) for cell in cells] for cells in config.start_cells] == [
        sorted(cells) for cells in header["start"]
    ]
    assert [config.bonus_all, config.bonus_monomino_last] == header["bonus"]
    assert config.starts_stay_open == header["start_persists"]
    for trace in games:
        position = game.host(game.init(jax.random.key(0)))
        for ply in trace["plies"]:
            engine, view = position.position, position.view()
            cells = [[sorted(map(config.bit, game.cells_of(action))) for action in engine.actions(color)] for color in range(2)]
            assert [len(placements) for placements in cells] == ply["n"]
            corners = [sorted(config.bit(engine.geometry.cell(bit)) for bit in legal) for legal in engine.legal]
            assert corners == ply["k"]
            assert list(position.scores()) == ply["s"]
            assert engine.hands == ply["r"]
            assert view["empty"] == ply["e"]
            assert [color["void"] for color in view["colors"]] == ply["v"]
            if not ply.get("m"):
                continue
            piece, tiles = ply["m"].split(":")
            action = game.action_of([divmod(int(tile), 14)[::-1] for tile in tiles.split(".")])
            assert game.piece_of(action) == piece
            if "h" in ply:
                assert position.current_color == ply["p"]
                texts = sorted(".".join(map(str, placement)) for placement in cells[ply["p"]])
                assert sha1(",".join(texts).encode()).hexdigest() == ply["h"]
            position = position.after(action)
        assert position.is_terminal
        state, view = state_of_position(position.position), position.view()
        assert int(game.empty_tiles(state)) == view["empty"]
        assert [int(game.void_tiles(state, color)) for color in range(2)] == [color["void"] for color in view["colors"]]


def test_pentobi_with_two_colors_a_player() -> None:
    """On the host, which other tests compare with the device."""
    start = blokus_game(make_host_game("classic_2")).start()
    config, games = start.config, traces("classic/pentobi_classic_2.jsonl.gz")
    assert len(games) == 6
    for trace in games:
        position = start
        for ply in trace["plies"]:
            color = position.current_color
            assert (color, position.current_player) == (ply["c"], ply["c"] % 2)
            legal = {
                ".".join(str(config.bit(cell)) for cell in cells_of(config, action)): action
                for action in position.legal_actions()
            }
            assert len(legal) == ply["n"]
            assert sha1(",".join(sorted(legal)).encode()).hexdigest()[:12] == ply["h"]
            position = position.after(legal[ply["m"]])
        assert position.is_terminal
        assert [position.position.score(color) for color in range(4)] == trace["points"]
        margin = position.scores()[0] - position.scores()[1]
        assert trace["final_score"] == f"{'B' if margin > 0 else 'W'}+{abs(margin)}"


@sampled_and_full
@pytest.mark.parametrize(
    ("file", "name", "on_device"),
    [
        ("duo/pentobi_duo", "duo_official", True),
        ("classic/pentobi_classic", "classic", False),
        slow("classic/pentobi_classic", "classic", True),
    ],
)
def test_pentobi(file: str, name: str, on_device: bool, full: bool) -> None:
    game = tilewe_jax.make(name)
    for trace in traces(f"{file}.jsonl.gz", full):
        plies = [ply for ply in trace["plies"] if ply["move"] is not None]
        actions = [game.action_of(map(tuple, ply["legal"][ply["move"]])) for ply in plies]
        states = replayed(game, actions) if on_device else None
        legal = views(game, states)[0] if on_device else None
        position = game.host(game.init(jax.random.key(0)))
        for i, (ply, action) in enumerate(zip(plies, actions, strict=True)):
            expected = sorted(tuple(sorted(game.config.bit((x, y)) for x, y in cells)) for cells in ply["legal"])
            assert position.current_color == ply["c"]
            cells = map(game.cells_of, position.legal_actions())
            assert sorted(tuple(sorted(map(game.config.bit, placement))) for placement in cells) == expected
            if on_device:
                assert int(states.current_color[i]) == ply["c"]
                assert sorted(placements(game, legal[i, ply["c"]])) == expected
            position = position.after(action)
        last = jax.device_put(rows(states, -1)) if on_device else state_of_position(position.position)
        assert bool(game.is_terminal(last))
        assert np.asarray(game.scores(last)).tolist() == list(position.scores()) == trace["points"]
        tiles = np.asarray(jax.lax.population_count(jnp.asarray(last.occupied))).sum(axis=1)
        assert tiles.tolist() == trace["tiles"]
        best = max(trace["points"])
        outcomes = [(points == best) / trace["points"].count(best) for points in trace["points"]]
        np.testing.assert_allclose(np.asarray(game.returns(last)), outcomes)
