"""Santorini against traces of other programs, published perft counts, and a slow reference implementation."""

import random
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewe_jax
from tests.support import assert_same, batched, positions, rows, sampled_and_full, slow, traces
from tests.tilewe_jax.games.santorini import reference
from tilewe_jax.cli.benchmarks.perft import Perft
from tilewe_jax.games.santorini import rules
from tilewe_jax.games.santorini.config import DIRECTIONS, TURN_162, Config
from tilewe_jax.games.santorini.host import Place, SantoriniBoard, Turn
from tilewe_jax.host import IllegalActionError

GAME = tilewe_jax.make("santorini")
CHOSEN = tilewe_jax.make("santorini", size=4, placement="chosen")
EMPTY = np.zeros((2, 5, 5), np.int8)
PLACED = {1: (0, 0), 2: (1, 1), -1: (2, 2), -2: (3, 3)}


@cache
def boards_of(game: Any) -> Any:
    return jax.jit(jax.vmap(game.board_of))


@cache
def states_of(config: Config) -> Any:
    """Compiled conversion of canonical boards to states."""
    return jax.jit(jax.vmap(partial(rules.state_of, config)))


def number(board: np.ndarray, turn: tuple[int, ...]) -> int:
    """The action id of a turn, from the specification."""
    row, column, r, c, a, b = turn
    worker = abs(int(board[0, row, column])) - 1
    return 64 * worker + 8 * DIRECTIONS.index((r - row, c - column)) + DIRECTIONS.index((a - r, b - c))


def board(pieces: dict[int, tuple[int, int]], heights: dict[tuple[int, int], int] | None = None, size: int = 5) -> np.ndarray:
    array = np.zeros((2, size, size), np.int8)
    for piece, cell in pieces.items():
        array[0][cell] = piece
    for cell, height in (heights or {}).items():
        array[1][cell] = height
    return array


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        (3, [18, 304, 4700, 73392]),
        slow(4, [38, 1724, 73820]),
        (5, [68, 5156, 350208]),
        slow(5, [68, 5156, 350208, 24545388]),
        slow(6, [72, 5572, 475620]),
        slow(7, [86, 8180, 790204]),
    ],
)
def test_perft(size: int, counts: list[int]) -> None:
    game = tilewe_jax.make("santorini", size=size)
    counter, root = Perft(game), game.init(jax.random.key(0))
    assert [counter.leaves(root, depth, lambda _: None) for depth in range(1, len(counts) + 1)] == counts


@sampled_and_full
@pytest.mark.parametrize("source", ["agz", "cpp"])
def test_traces(source: str, full: bool) -> None:
    """Boards, legal turns, and ends of games. In agz, builds after a climb, and so their results, are wrong."""
    games = [game for game in traces(f"santorini/traces_{source}.jsonl.gz", full) if game["n"] > 2]
    num_positions = climbing = 0
    sizes = sorted({game["n"] for game in games})
    for size in sizes if full else sizes[:: max(1, len(sizes) - 1)]:
        plies = [ply for game in games if game["n"] == size for ply in game["plies"]]
        game, config = tilewe_jax.make("santorini", size=size), Config(size)
        absolute, player = np.array([ply["b"] for ply in plies], np.int8), np.array([ply["p"] for ply in plies])
        canonical = absolute.copy()
        canonical[:, 0] *= player[:, None, None].astype(np.int8)
        states = states_of(config)(canonical, (player < 0).astype(np.int32))
        np.testing.assert_array_equal(boards_of(game)(states), absolute)
        actions = np.array([TURN_162.index(ply["a"]) if source == "cpp" else ply["a"] for ply in plies], np.int32)
        masks = np.asarray(batched(game).legal_action_mask(states))
        after = batched(game).apply(states, actions)
        boards, over = np.asarray(boards_of(game)(after)), np.asarray(batched(game).is_terminal(after))
        for ply, before, mask, action, board_after, ended in zip(plies, absolute, masks, actions, boards, over, strict=True):
            expected = {number(before, turn): tuple(turn) for turn in ply["legal"]}
            legal = set(np.flatnonzero(mask).tolist())
            climbs = {a for a in legal | expected.keys() if before[1][_target(before, ply["p"], a)] == 3}
            if source == "agz" and climbs:
                climbing += 1
                assert legal - climbs == expected.keys() - climbs
                assert {a >> 3 for a in legal} == {a >> 3 for a in expected}
            else:
                assert legal == expected.keys()
                assert action in legal
            if action in legal:
                assert expected.get(int(action), tuple(ply["act"])) == tuple(ply["act"])
                assert board_after.tolist() == ply["next"]
                assert ended == (ply["end"] != 0)
                assert ply["end"] in (0, -1)
            num_positions += 1
    assert num_positions > (6000 if full else 100)
    assert (climbing > 0) == (source == "agz")


def _target(before: np.ndarray, player: int, action: int) -> tuple[int, int]:
    (start,) = np.argwhere(before[0] == player * (1 + (action >> 6)))
    row, column = start + DIRECTIONS[action >> 3 & 7]
    return int(row), int(column)


@pytest.mark.parametrize(("size", "every"), [(3, 2), slow(4, 4), slow(5, 6), slow(6, 6), (7, 8), slow(8, 10), slow(9, 12)])
def test_rules_match_reference(size: int, every: int) -> None:
    """Device and host agree with the reference on legal turns, positions and results in whole games."""
    game = tilewe_jax.make("santorini", size=size, placement="random")
    num_positions = 0
    for step, (states, actions) in enumerate(positions(game, 192, seed=size)):
        boards, masks = np.asarray(boards_of(game)(states)), np.asarray(batched(game).legal_action_mask(states))
        player = 1 - 2 * np.asarray(states.current_player)
        after = np.asarray(boards_of(game)(batched(game).step(states, actions)))
        winners = np.asarray(batched(game).returns(states)) @ np.array([1, -1], np.float32)
        for lane in range(step % every, 192, every):
            board, mover = boards[lane], int(player[lane])
            host = SantoriniBoard.from_array(board, mover)
            winner = reference.winner(board, mover)
            assert winners[lane] == winner
            assert (host.winner or 0) == winner
            if winner:
                assert not masks[lane].any()
                continue
            turns = {number(board, turn): turn for turn in reference.legal(board, mover)}
            assert sorted(turns) == np.flatnonzero(masks[lane]).tolist()
            action = int(actions[lane])
            np.testing.assert_array_equal(after[lane], reference.play(board, turns[action]))
            if num_positions % 8 == 0:
                assert [host.action(move) for move in host.legal_moves] == sorted(turns)
                np.testing.assert_array_equal(host.push(host.move(action)).to_array(), after[lane])
            num_positions += 1
    assert num_positions > 1250


def test_random_placement_is_uniform_and_has_a_deal() -> None:
    game = tilewe_jax.make("santorini", size=3, placement="random")
    start = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), 20_000))
    pieces = np.asarray(boards_of(game)(start))[:, 0].reshape(-1, 9)
    assert np.all(np.sort(pieces, axis=1)[:, [0, 1, -2, -1]] == [-2, -1, 1, 2])
    for piece in (1, 2, -1, -2):
        share = (pieces == piece).mean(axis=0)
        assert np.all(np.abs(share - 1 / 9) < 4.5 * np.sqrt(8 / 81 / 20_000))
    state = rows(start, 7)
    assert game.deal(state) == [list(cell) for cell in game.host(state).workers]
    assert_same(game.init_from_deal(game.deal(state)), state)
    for deal in (None, [[0, 0]], [[0, 0], [0, 0], [1, 1], [2, 2]], [[0, 3], [0, 0], [1, 1], [2, 2]], "abcd"):
        with pytest.raises(ValueError, match=r"deal|two workers|off the board"):
            game.init_from_deal(deal)


@pytest.mark.parametrize("size", [3, slow(5), slow(6)])
def test_rules_commute_with_symmetries(size: int) -> None:
    game = tilewe_jax.make("santorini", size=size)
    table, symmetries = jnp.asarray(game.action_symmetries), jnp.arange(game.num_symmetries)

    @jax.jit
    @jax.vmap
    def commute(state: Any, action: Any) -> Any:
        def commutes(symmetry: Any) -> Any:
            transformed = game.transform(state, symmetry)
            # After the turn the players have exchanged their roles.
            symmetry_after = (symmetry & 7) | ((symmetry & 8) << 1) | ((symmetry & 16) >> 1)
            left = game.step(transformed, table[symmetry, action])
            right = game.transform(game.step(state, action), symmetry_after)
            same = jax.tree.map(lambda a, b: a == b, left, right)
            masks = jnp.all(game.legal_action_mask(transformed)[table[symmetry]] == game.legal_action_mask(state))
            return jnp.all(jnp.stack(jax.tree.leaves(same))) & masks

        return jnp.all(jax.vmap(commutes)(symmetries))

    num_positions = 0
    for states, actions in positions(game, 192, seed=size):
        is_playing = actions >= 0
        assert np.all(np.asarray(commute(states, jnp.maximum(actions, 0)))[is_playing])
        num_positions += is_playing.sum()
    assert num_positions >= 1000


def test_symmetries_of_the_square() -> None:
    position = SantoriniBoard.start().push("c4-b4*b5").push("b3-a2*a1").push("c2-d1*e1")
    state = GAME.state_of(position)
    board = np.asarray(GAME.canonical_board_of(state))
    transformed = jax.jit(jax.vmap(lambda index: GAME.canonical_board_of(GAME.transform(state, index))))(jnp.arange(32))
    for symmetry in range(8):
        rotated = np.rot90(board, symmetry % 4, axes=(1, 2))
        np.testing.assert_array_equal(transformed[symmetry], rotated[:, :, ::-1] if symmetry >= 4 else rotated)
    swapped = np.select([board[0] != 0], [np.sign(board[0]) * (3 - abs(board[0]))])
    np.testing.assert_array_equal(transformed[24, 0], swapped)
    table = GAME.action_symmetries
    assert table.shape == (32, 128)
    assert len({tuple(row) for row in np.sort(table)}) == 1
    # The tables of alpha-zero-general, which map each direction to its preimage.
    assert [table[1, 8 * before] // 8 for before in (2, 4, 7, 1, 6, 0, 3, 5)] == list(range(8))
    assert [table[4, before] % 8 for before in (2, 1, 0, 4, 3, 7, 6, 5)] == list(range(8))
    places = CHOSEN.action_symmetries[:, 128:]
    assert np.all(np.sort(places) == np.arange(128, 144))


def test_placement_of_workers() -> None:
    state, step = CHOSEN.init(jax.random.key(0)), jax.jit(CHOSEN.step)
    board = SantoriniBoard.start(4, "chosen")
    for cell in ((0, 0), (3, 3), (1, 2), (2, 2)):
        assert CHOSEN.host(state) == board
        action = CHOSEN.action_of(cell, state=state)
        assert action == 128 + 4 * cell[0] + cell[1] == board.action([cell])
        assert CHOSEN.describe(state, action) == Place(cell)
        assert CHOSEN.action_of_name(CHOSEN.action_name(action, state), state) == action
        state, board = step(state, jnp.int32(action)), board.push([cell])
    assert board.workers == ((0, 0), (1, 2), (3, 3), (2, 2))
    assert CHOSEN.host(state) == board
    assert not np.asarray(CHOSEN.legal_action_mask(state))[128:].any()
    assert_same(CHOSEN.state_of(board), state)
    with pytest.raises(IllegalActionError, match="all workers"):
        CHOSEN.action_of((3, 0), state=state)


def test_names_cells_and_ids_of_turns() -> None:
    state = GAME.init(jax.random.key(0))
    action = GAME.action_of((1, 2), (1, 3), (2, 4), state=state)
    assert action == 8 * 4 + 7
    assert GAME.describe(state, action) == Turn((1, 2), (1, 3), (2, 4))
    assert GAME.action_name(action, state) == "c4-d4*e3"
    assert GAME.action_of_name("c4-d4*e3", state) == action
    after = GAME.step(state, jnp.int32(action))
    assert GAME.board_of(after)[1, 2, 4] == 1
    assert GAME.board_of(after)[0, 1, 3] == 1
    np.testing.assert_array_equal(GAME.board_of(after)[0], -GAME.canonical_board_of(after)[0])
    assert len(set(TURN_162)) == 128
    assert TURN_162[:6] == (0, 1, 2, 3, 5, 6)
    assert TURN_162[127] == 161


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 10), st.sampled_from(["default", "random", "chosen"]), st.randoms(use_true_random=False))
def test_laws_of_host_games(size: int, placement: Any, rng: random.Random) -> None:
    board = SantoriniBoard.start(size, placement, rng)
    for ply in range(Config(size, placement).max_steps + 1):
        assert SantoriniBoard.from_array(board.to_array(), board.player) == board
        if board.winner is not None:
            assert board.winner == -board.player
            with pytest.raises(IllegalActionError):
                board.push(Turn((0, 0), (0, 1), (0, 0)))
            return
        move = rng.choice(board.legal_moves)
        assert board.move(board.action(move)) == move
        after = board.push(move)
        assert after == board.push(board.name(move)) == board.push(list(move))
        placed = isinstance(move, Place)
        assert after.to_array()[1].sum() == board.to_array()[1].sum() + (not placed)
        assert after.player == -board.player
        board = after
        if ply > 12:
            return
    raise AssertionError("too long")


WALLED = board(
    {1: (0, 0), 2: (4, 4), -1: (2, 2), -2: (2, 3)},
    {(0, 1): 2, (1, 0): 4, (1, 1): 1, (3, 3): 1, (3, 4): 4},
)


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        ([(0, 0), (0, -1), (0, 0)], r"\(0, -1\) is off the board"),
        ([(2, 2), (1, 1), (0, 0)], "player 1 .*: worker -1"),
        ([(3, 0), (3, 1), (3, 0)], "player 1 .*: nobody"),
        ([(0, 0), (2, 2), (0, 0)], r"eight cells .*\(2, 2\)"),
        ([(0, 0), (1, 1), (1, 1)], r"eight cells .*\(1, 1\)"),
        ([(0, 0), (0, 1), (0, 2)], r"climbs .*\(0, 0\) \(0\) to \(0, 1\) \(2\)"),
        ([(0, 0), (1, 0), (0, 0)], "move to .*: there is a dome"),
        ([(0, 0), (1, 1), (1, 0)], "build on .*: there is a dome"),
        ([(0, 0), (1, 1), (2, 2)], "build on .*: worker -1"),
        ([(0, 0)], "all workers are placed"),
        ([(0, 0), (1, 1)], "invalid move"),
        ("a5-b4", "invalid move"),
        ("a5-b4*a9", "off the board"),
        (3, "invalid move"),
    ],
    ids=str,
)
def test_illegal_moves_name_the_rule(cells: Any, rule: str) -> None:
    host = SantoriniBoard.from_array(WALLED)
    with pytest.raises(IllegalActionError, match=rule):
        host.push(cells)
    assert host == SantoriniBoard.from_array(WALLED)
    state = GAME.state_of(WALLED)
    if isinstance(cells, list) and len(cells) == 3:
        with pytest.raises(IllegalActionError, match=rule):
            GAME.action_of(*cells, state=state)


@pytest.mark.parametrize(
    ("array", "player", "message"),
    [
        (board({1: (0, 0), 2: (1, 1), -1: (2, 2)}), 1, "worker -2 is missing"),
        (board({1: (0, 0), 2: (1, 1), -1: (2, 2)}), -1, "four workers, got 3"),
        (board({1: (0, 0), 2: (1, 1), -1: (2, 2)}, {(3, 3): 1}), -1, "worker -2 is missing"),
        (board(PLACED, {(4, 4): 5}), 1, r"\(4, 4\) must be 0 to 4, got 5"),
        (board(PLACED, {(0, 0): 4}), 1, "worker 1 stands on a dome"),
        (board(PLACED, {(0, 0): 3}), 1, "worker 1 stands on level 3"),
        (board(PLACED), 2, "1 or -1, got 2"),
        (board({**PLACED, 3: (4, 4)}), 1, "pieces .* got 3"),
        (EMPTY + 1, 1, "worker 1 stands on 25 cells"),
        (EMPTY, -1, "worker 1, 2, -1, -2 is missing"),
        (EMPTY[0], 1, r"\(2, n, n\)"),
        (EMPTY.astype(float), 1, "float64"),
        (np.zeros((2, 2, 2), int), 1, "3 to 10 rows"),
        (board(PLACED, size=6), 1, "must be 5, got 6"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_boards_are_rejected(array: Any, player: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GAME.state_of(array, player)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 2}, "3 to 10, got 2"),
        ({"size": 11}, "3 to 10, got 11"),
        ({"placement": "anywhere"}, "default, random, chosen"),
        ({"gods": "Apollo"}, "gods"),
        ({"size": "5"}, "size must be an integer"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tilewe_jax.make("santorini", **options)


def test_action_ids_of_host_boards() -> None:
    """Every id is either legal, and leads to the position after its move, or breaks a rule that is named."""
    for host in (SantoriniBoard.from_array(WALLED), SantoriniBoard.start(3, "chosen").push([(0, 0)])):
        legal = host.legal_actions()
        assert legal == sorted(legal) == [host.action(move) for move in host.legal_moves]
        assert host.scores() == (0, 0)
        assert not host.is_terminal
        for action in range(-2, 128 + host.size**2 + 2):
            rule = host.explain(action)
            assert (rule is None) == (action in legal)
            if rule is None:
                assert host.after(action) == host.push(host.move(action))
                assert host.after(action).current_player == 1 - host.current_player
                continue
            with pytest.raises(IllegalActionError, match=f"action {action} is illegal: ") as error:
                host.after(action)
            assert str(error.value).endswith(rule)
    for board, action, word in ((SantoriniBoard.start(), 128, "placed"), (SantoriniBoard.start(), -1, "152")):
        assert word in (board.explain(action) or "")
    assert "128" in (SantoriniBoard.start(4, "chosen").explain(0) or "")


def test_ends_of_games() -> None:
    """A climb and a player without a turn end the game; final states convert to boards and back."""
    climb = board({1: (0, 0), 2: (4, 4), -1: (2, 2), -2: (2, 3)}, {(0, 0): 2, (0, 1): 3})
    state = GAME.state_of(climb)
    assert int(GAME.num_legal(state)) == len(reference.legal(climb, 1))
    over = GAME.step(state, jnp.int32(GAME.action_of((0, 0), (0, 1), (0, 0), state=state)))
    assert GAME.board_of(over)[1, 0, 0] == 3
    assert GAME.returns(over).tolist() == [1, 0]
    assert_same(GAME.state_of(GAME.board_of(over), -1), over)
    assert "player 1 (O U) wins: stands on level 3" in GAME.text(over)
    with pytest.raises(IllegalActionError, match="the game"):
        GAME.host(over).push([(2, 2), (3, 3), (2, 2)])
    assert GAME.host(over).is_terminal
    assert GAME.host(over).scores() == (1, 0)
    assert GAME.host(over).legal_actions() == []
    assert "player 1" in GAME.host(over).explain(0)
    stuck = board(
        {1: (0, 0), 2: (0, 1), -1: (4, 4), -2: (4, 3)},
        {(1, 0): 2, (1, 1): 2, (0, 2): 2, (1, 2): 2},
    )
    state = GAME.state_of(stuck)
    assert bool(GAME.is_terminal(state))
    assert GAME.returns(state).tolist() == [0, 1]
    assert GAME.host(state).winner == -1
    assert "player 2 (X Y) wins: player 1 (O U) cannot move" in GAME.text(state)


def test_text_and_picture() -> None:
    state = GAME.state_of(WALLED)
    assert GAME.text(state).splitlines() == [
        " 5  O   .2  .   .   . ",
        " 4  .4  .1  .   .   . ",
        " 3  .   .   X   Y   . ",
        " 2  .   .   .   .1  .4",
        " 1  .   .   .   .   U ",
        "    a   b   c   d   e",
        "player 1 (O U) to move",
    ]
    assert GAME.text(state, symbols="1234").splitlines()[2] == " 3  .   .   3   4   . "
    with pytest.raises(ValueError, match="4 characters"):
        GAME.text(state, symbols="AB")
    assert "\x1b[" in GAME.text(state, color=True)
    picture = GAME.svg(state)
    assert picture.count('class="tilewe-worker') == 4
    assert 'class="tilewe-tower tilewe-height-4"' in picture


def test_observations_of_both_players() -> None:
    state = GAME.state_of(WALLED)
    mover, opponent = (np.asarray(GAME.observe(state, jnp.int32(seat))) for seat in (0, 1))
    assert mover.shape == (len(GAME.channel_names), 5, 5)
    assert [tuple(np.argwhere(plane)[0]) for plane in mover[:4]] == [(0, 0), (4, 4), (2, 2), (2, 3)]
    np.testing.assert_array_equal(opponent[:4], mover[[2, 3, 0, 1]])
    np.testing.assert_array_equal(mover[4:8].sum(axis=0), WALLED[1])
    assert mover[8].all()
    assert not opponent[8].any()


def test_players_win_and_prevent_wins() -> None:
    names = ("greedy", "one_ply")
    policies = [GAME.policies()[name] for name in names]
    choose = jax.jit(jax.vmap(lambda state, key: jnp.stack([policy(state, key) for policy in policies])))

    def can_climb(host: SantoriniBoard) -> bool:
        return any(host.height(move[1]) == 3 for move in host.legal_moves)

    wins = saves = 0
    for step, (states, _) in enumerate(positions(GAME, 64, seed=3)):
        if step % 8 or step < 16:
            continue
        chosen = np.asarray(choose(states, jax.random.split(jax.random.key(step), 64)))
        for lane in range(0, 64, 2):
            host = GAME.host(rows(states, lane))
            for action in chosen[lane].tolist():
                if host.is_terminal:
                    assert action == -1
                    continue
                after = host.after(action)
                if can_climb(host):
                    assert after.winner == host.player
                    wins += 1
                elif not after.winner and can_climb(after):
                    assert all(can_climb(host.push(move)) for move in host.legal_moves)
                else:
                    saves += 1
    assert wins > 10
    assert saves > 10


@pytest.mark.slow
def test_players_by_strength() -> None:
    from tilewe_jax.agents import agent
    from tilewe_jax.arena import play_match

    results = play_match(GAME, [agent(name, GAME) for name in ("random", "greedy", "one_ply")], 300, 300, 0)
    win_rate = {row["agent"]: row["win_rate"] for row in results.summary()["agents"]}
    assert win_rate["random"] < 0.2 < win_rate["greedy"] < win_rate["one_ply"]
