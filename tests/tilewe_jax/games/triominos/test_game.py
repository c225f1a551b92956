"""Triominos against a slow reference and recorded rounds; hidden information; players; the host form."""

import copy
import dataclasses
import itertools
import random
import re
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import assert_same, rows, slow, traces
from tests.tilewe_jax.games.triominos import reference
from tilewe_jax.games.triominos import table
from tilewe_jax.games.triominos.config import Config
from tilewe_jax.games.triominos.figure import Figure
from tilewe_jax.games.triominos.host import Position, unwrap
from tilewe_jax.games.triominos.table import Placed
from tilewe_jax.games.triominos.tiles import (
    ORIENTATIONS,
    corners,
    neighbourhood,
    neighbours,
    parse_tile,
    tile_id,
    tiles,
    vertices,
)
from tilewe_jax.host import IllegalActionError

LANES = 20
# All numbers of players, both sets, all values of `start`, single rounds, games to a target, and truncated games.
VARIANTS = [
    {"players": 2, "tiles": 56, "start": "random"},
    slow({"players": 2, "tiles": 84, "start": "winner", "game": "target"}),
    slow({"players": 3, "tiles": 56, "start": "highest", "game": "target"}),
    slow({"players": 4, "tiles": 84, "start": "highest"}),
    slow({"players": 5, "tiles": 56, "start": "winner", "game": "target"}),
    slow({"players": 6, "tiles": 84, "start": "random", "game": "target"}),
    {"players": 6, "tiles": 56, "start": "highest", "hex_scores": (50, 60, 70)},
    {"players": 3, "tiles": 20, "tray": 4, "start": "winner", "game": "target", "max_rounds": 2},
]
PLAYERS = ["random", "random_stuck", "greedy_gain", "thrifty_stuck", "flexible_hoard", "block_gain"]
"""Players with all placing strategies and all drawing strategies."""


@lru_cache(maxsize=4)
def compiled(game: Any) -> SimpleNamespace:
    """Compiled functions of a batch of games."""

    def look(state: Any) -> tuple[Any, ...]:
        ends = game.is_terminal(state), game.is_truncated(state), game.returns(state)
        return game.compact_mask(state), game.compact_actions(state), *ends

    return SimpleNamespace(init=jax.jit(jax.vmap(game.init)), look=jax.jit(jax.vmap(look)), step=jax.jit(jax.vmap(game.step)))


def action_of(game: Any, played: reference.Round, placement: reference.Placement) -> int:
    """The action id of a placement, from the documentation."""
    config, (tile, orientation, cell) = game.config, placement
    if not played.board:
        return config.first + tile_id(tile)
    free = 2 if played.neighbour(cell, "left") else 0 if played.neighbour(cell, "right") else 1
    return config.wrapped(cell) * config.numbers + corners(tile, orientation)[free]


def legal(game: Any, played: reference.Round) -> dict[int, Any]:
    """The legal actions of the reference. The first tile is placed on (0, 0) as ABC; a triple has one action per cell."""
    named: dict[int, Any] = {
        action_of(game, played, placement): placement
        for placement in played.placements()
        if played.board or placement[1:] == (0, (0, 0))
    }
    if played.may_draw:
        named[game.config.draw] = "draw"
    if played.may_pass:
        named[game.config.pass_] = "pass"
    return named


def round_of(game: Any, state: Any, scores: list[int]) -> reference.Round:
    """The reference at the start of a round."""
    config = game.config
    order = [config.tile_list[tile] for tile in np.argsort(state.order)]
    hands = [order[i * config.dealt : (i + 1) * config.dealt] for i in range(config.players)]
    played = reference.Round(
        hands, order[: config.players * config.dealt - 1 : -1], int(state.starter), config.start == "highest", config.hex_scores
    )
    played.scores = list(scores)
    return played


def choose(game: Any, expected: dict[int, Any], lane: int, rng: random.Random) -> int:
    """Choose by lane: uniformly; mostly placements; or draw first, then make the figure as wide as possible."""
    placements = [action for action, what in expected.items() if not isinstance(what, str)]
    if lane % 4 == 0 or not placements:
        return rng.choice(list(expected))
    if lane % 4 < 3:
        return rng.choice(placements if rng.random() < 0.7 else list(expected))
    if game.config.draw in expected:
        return int(game.config.draw)
    return max(placements, key=lambda action: abs(expected[action][2][0]))


def play(played: reference.Round, what: Any) -> None:
    if what == "draw":
        played.draw()
    elif what == "pass":
        played.pass_()
    else:
        played.place(what)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_games_match_reference(options: dict[str, Any]) -> None:
    """Legal actions, players, trays, scores, ends, and starts of rounds agree in every position."""
    game = tilewe_jax.make("triominos", **options)
    config, functions, rng = game.config, compiled(game), random.Random(0)
    state = functions.init(jax.random.split(jax.random.key(1), LANES))
    host = jax.device_get(state)
    games = [round_of(game, rows(host, lane), [0] * config.players) for lane in range(LANES)]
    numbers, over, positions, rounds = [0] * LANES, [False] * LANES, 0, 0
    while not all(over):
        masks, actions, ended, _, returns = jax.device_get(functions.look(state))
        host, chosen = jax.device_get(state), np.full(LANES, -1, np.int32)
        for lane, played in enumerate(games):
            assert host.scores[lane].tolist() == played.scores
            if over[lane]:
                assert ended[lane]
                assert not masks[lane].any()
                continue
            expected = legal(game, played)
            generated = actions[lane][masks[lane]].tolist()
            assert len(generated) == len(set(generated))
            assert set(generated) == set(expected)
            assert not ended[lane]
            assert not returns[lane].any()
            assert host.current_player[lane] == played.player
            assert sum(int(row).bit_count() for row in host.trays[lane].ravel()) == sum(map(len, played.hands))
            assert config.tiles - host.drawn[lane] == len(played.pile)
            positions += 1
            chosen[lane] = choose(game, expected, lane, rng)
            play(played, expected[int(chosen[lane])])
        state = functions.step(state, chosen)
        host, ended, truncated, returns = jax.device_get((state, *functions.look(state)[2:]))
        for lane, played in enumerate(games):
            if over[lane] or not played.reason:
                continue
            rounds += 1
            best = max(played.scores)
            over[lane] = config.game == "single" or best >= config.target or numbers[lane] == config.max_rounds - 1
            if over[lane]:
                assert ended[lane]
                assert truncated[lane] == (config.game == "target" and best < config.target)
                winners = [score == best for score in played.scores]
                np.testing.assert_allclose(returns[lane], np.array(winners) / sum(winners), rtol=1e-6)
                continue
            numbers[lane] += 1
            after = rows(host, lane)
            assert int(after.round) == numbers[lane]
            games[lane] = round_of(game, after, played.scores)
            if config.start != "random":
                may = played.winners if config.start == "winner" else reference.starters(games[lane].hands)
                assert games[lane].player in may
    assert positions > (100 if config.tiles < 56 else 1000)
    assert rounds >= (LANES if config.game == "single" else 2 * LANES)


def strip(highest: int, rng: random.Random) -> list[int]:
    """Numbers such that each three in a row form another tile, for tiles placed side by side from (0, 0) to the right."""

    def tile(numbers: list[int], i: int) -> tuple[int, ...]:
        a, b, c = numbers[i : i + 3] if i % 2 == 0 else (numbers[i], numbers[i + 2], numbers[i + 1])
        return next((turn for turn in ((a, b, c), (b, c, a), (c, a, b)) if list(turn) == sorted(turn)), ())

    best: list[int] = []
    for _ in range(300):
        numbers, used = [0, 0], set()
        while True:
            fits = [n for n in range(highest + 1) if (new := tile([*numbers, n], len(numbers) - 2)) and new not in used]
            if not fits:
                break
            numbers.append(rng.choice(fits))
            used.add(tile(numbers, len(numbers) - 3))
        best = max(best, numbers, key=len)
    return best


@pytest.mark.parametrize("count", [4, 56])
def test_widest_figures_do_not_wrap_around(count: int) -> None:
    """The frontier of a long strip on the torus equals the frontier on the unbounded plane."""
    config = Config(tiles=count, tray=1)
    place = jax.jit(lambda board, placed: table.place(config, board, placed))
    numbers = strip(config.highest, random.Random(1))
    board, figure = table.empty(config), Figure()
    assert len(numbers) - 2 > config.tiles * 0.6
    for x in range(min(len(numbers) - 2, config.tiles - 1)):
        shown = tuple(numbers[x : x + 3])
        tile = parse_tile("".join(map(str, sorted(shown))))
        orientation = next(o for o in range(x % 2, 6, 2) if corners(tile, o) == shown)
        cell = jnp.int16(config.wrapped((x, 0)))
        board = place(
            board,
            Placed(jnp.int32(tile_id(tile)), jnp.int8(orientation), cell, tuple(map(jnp.int8, shown))),
        )
        figure.place(tile, orientation, (x, 0))
        beside = {cell for taken in figure.tiles for cell in neighbours(taken)} - set(figure.tiles)
        host = jax.device_get(board)
        slots = {int(cell): i for i, cell in enumerate(host.frontier) if cell >= 0}
        assert set(slots) == {config.wrapped(cell) for cell in beside}
        for free in beside:
            i = slots[config.wrapped(free)]
            assert [int(row[i]) for row in host.numbers] == [figure.numbers.get(vertex, -1) for vertex in vertices(free)]
            assert int(host.neighbour_mask[i]) == sum(
                1 << bit for bit, cell in enumerate(neighbourhood(free)) if cell in figure.tiles
            )
            assert unwrap(config, config.wrapped(free), [config.wrapped(cell) for cell in figure.tiles]) == free


def turned(cell: reference.Cell, steps: int, shift: tuple[int, int]) -> reference.Cell:
    """Rotate a cell clockwise by ``steps`` sixths around vertex (0, 1), then shift it."""
    corners_after = []
    for x, y in vertices(cell):
        a, b = (x - (y - 1)) // 2, y - 1  # coordinates along the edges to the right and down right
        for _ in range(steps):
            a, b = -b, a + b
        corners_after.append((2 * a + b + shift[0], b + 1 + shift[1]))
    return min(x for x, _ in corners_after), min(y for _, y in corners_after)


@pytest.mark.parametrize("start", ["random", "highest"])
@pytest.mark.parametrize("players", [2, slow(3), slow(4), slow(5), 6])
def test_recorded_rounds(players: int, start: str) -> None:
    """Numbers of legal placements, scores after every action, and winners agree with the traces."""
    records = [r for r in traces("triominos/rounds.jsonl.gz") if (r["n"], r["start"]) == (players, start)]
    game = tilewe_jax.make("triominos", players=players, start=start)
    functions, config = compiled(game), game.config
    assert len(records) == LANES
    deals = [
        {"tiles": [*itertools.chain(*r["hands"]), *r["pile"][::-1]], "starter": r["starter"], "seed": [0, 0]} for r in records
    ]
    state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.init_from_deal, deals))
    games = [round_of(game, rows(jax.device_get(state), lane), [0] * players) for lane in range(LANES)]
    turns: list[tuple[int, tuple[int, int]] | None] = [None] * LANES
    for step in range(max(len(r["log"]) for r in records)):
        masks, actions, *_ = jax.device_get(functions.look(state))
        mover, chosen = np.asarray(state.current_player), np.full(LANES, -1, np.int32)
        for lane, (record, played) in enumerate(zip(records, games, strict=True)):
            if step >= len(record["log"]):
                continue
            player, what, count, _ = record["log"][step]
            legal = actions[lane][masks[lane]]
            placements = legal[legal < config.draw]
            # The traces count all distinct first placements: two for a triple, six for other tiles.
            begun = [config.tile_list[action - config.first] for action in placements if action >= config.first]
            assert count == len(placements) + sum(1 if len(set(tile)) == 1 else 5 for tile in begun)
            assert player == mover[lane]
            if not isinstance(what, str):
                tile, orientation, x, y = what
                if (turn := turns[lane]) is None:  # the traces allow all first placements, the game only one
                    steps = -orientation % 6
                    at = turned((x, y), steps, (0, 0))
                    turn = turns[lane] = steps, (-at[0], -at[1])
                orientation = (orientation + turn[0]) % 6
                triple = len(set(tile)) == 1
                what = parse_tile(tile), orientation % 2 if triple else orientation, turned((x, y), *turn)
            chosen[lane] = {"draw": config.draw, "pass": config.pass_}.get(what) or action_of(game, played, what)
            assert chosen[lane] in legal
            play(played, what)
        state = functions.step(state, chosen)
        scores = np.asarray(state.scores)
        for lane, record in enumerate(records):
            assert scores[lane].tolist() == record["log"][min(step, len(record["log"]) - 1)][3]
    _, _, ended, _, returns = jax.device_get(functions.look(state))
    assert ended.all()
    for lane, record in enumerate(records):
        best = max(record["log"][-1][3])
        assert [score == best for score in record["log"][-1][3]] == (returns[lane] > 0).tolist()


def reference_of(position: Position) -> reference.Round:
    """The reference in a host position."""
    hands, pile = [list(tray) for tray in position.trays], list(position.pile[::-1])
    played = reference.Round(
        hands, pile, position.current_player, position.config.start == "highest", position.config.hex_scores
    )
    for tile, orientation, cell in position.placements:
        played.board[cell] = played._numbers(tile, orientation)
    played.draws = position.draws
    return played


def as_placement(what: tuple[str, str, reference.Cell]) -> reference.Placement:
    return parse_tile(what[0]), ORIENTATIONS.index(what[1]), what[2]


def after(played: reference.Round, placement: reference.Placement, hand: list[reference.Tile]) -> reference.Round:
    """The table after a placement, for a player with this hand."""
    board = {**played.board, placement[2]: played._numbers(placement[0], placement[1])}
    return reference.Round([hand], [], 0, board=board)


def best_score(played: reference.Round, tile: reference.Tile) -> int:
    """The best score of a tile; 0 if it has no placement."""
    round_ = reference.Round([[tile]], [], 0, board=played.board)
    return max(map(round_.score, round_.placements()), default=0)


@cache
def some_positions(players: int) -> tuple[Any, Any]:
    """A game and a batch of positions from all phases of it."""
    game = tilewe_jax.make("triominos", players=players)
    functions, rng = compiled(game), np.random.default_rng(players)
    state = functions.init(jax.random.split(jax.random.key(5), LANES))
    for step in range(12 * players):
        masks, actions, *_ = jax.device_get(functions.look(state))
        going = masks.any(axis=1) & (np.arange(LANES) % 12 >= step // players)
        chosen = [rng.choice(actions[lane][masks[lane]]) if going[lane] else -1 for lane in range(LANES)]
        state = functions.step(state, np.array(chosen, np.int32))
    return game, state


@pytest.fixture(scope="module")
def answers() -> Any:
    """Compiled actions of all ``PLAYERS``, ``[batch, players]``."""
    game, _ = some_positions(3)
    chosen = [game.policies()[name] for name in PLAYERS]
    return jax.jit(jax.vmap(lambda state, key: jnp.stack([policy(state, key) for policy in chosen])))


def test_hidden_information_is_not_used(answers: Any) -> None:
    """Observations and actions of players do not depend on the other trays and the pile."""
    game, state = some_positions(3)
    config, rng = game.config, np.random.default_rng(1)
    keys = jax.random.split(jax.random.key(6), LANES)
    observe = jax.jit(jax.vmap(game.observe, in_axes=(0, None)))
    for seat in range(game.num_players):
        host = jax.device_get(state)
        redealt = copy.deepcopy(host)
        for lane in range(LANES):
            held = np.array([[row[t // 32] >> np.uint32(t % 32) & 1 for t in range(config.tiles)] for row in host.trays[lane]])
            unseen = np.flatnonzero((held[seat] == 0) & (host.table.placed_at[lane] < 0))
            mixed = rng.permutation(unseen)
            held[:, mixed] = held[:, unseen]
            redealt.order[lane, mixed] = host.order[lane, unseen]
            for player, row in enumerate(held):
                for word in range(redealt.trays.shape[2]):
                    bits = row[32 * word : 32 * word + 32].tolist()
                    redealt.trays[lane, player, word] = sum(int(bit) << i for i, bit in enumerate(bits))
        redealt = dataclasses.replace(redealt, seed=host.seed ^ np.uint32(12345))
        assert (redealt.trays != host.trays).any()
        assert_same(observe(redealt, jnp.int32(seat)), observe(host, jnp.int32(seat)))
        mover = host.current_player == seat
        assert mover.any()
        np.testing.assert_array_equal(np.asarray(answers(redealt, keys))[mover], np.asarray(answers(host, keys))[mover])
        assert not np.array_equal(observe(host, jnp.int32(seat)), observe(host, jnp.int32((seat + 1) % 3)))


def test_determinizations_are_uniform() -> None:
    """Every unseen tile is equally likely in all hidden places."""
    game, states = some_positions(3)
    state, draws, config = rows(states, 3), 20_000, game.config
    worlds = jax.jit(jax.vmap(game.determinize, in_axes=(None, None, 0)))(
        state, jnp.int32(1), jax.random.split(jax.random.key(7), draws)
    )
    bits = np.asarray(worlds.trays)[..., None] >> np.arange(32, dtype=np.uint32) & 1
    bits = bits.reshape(draws, 3, -1)[..., : config.tiles]
    own, placed = np.asarray(bits[0, 1], bool), np.asarray(state.table.placed_at) >= 0
    assert (bits[:, 1] == own).all()
    unseen = ~own & ~placed
    places = [bits[:, 0], bits[:, 2], *(np.asarray(worlds.order) == at for at in range(int(state.drawn), config.tiles))]
    sizes = [int(place[0].sum()) for place in places]
    assert sum(sizes) == unseen.sum()
    assert all((place.sum(axis=1) == size).all() for place, size in zip(places, sizes, strict=True))
    statistic = 0.0
    for place, size in zip(places, sizes, strict=True):
        counts, share = place.sum(axis=0), size / unseen.sum()
        assert not counts[~unseen].any()
        deviations = (counts[unseen] - draws * share) / (draws * share * (1 - share)) ** 0.5
        assert np.abs(deviations).max() < 5
        statistic += (deviations**2).sum()
    assert 0.8 < statistic / (len(places) * unseen.sum()) < 1.2


def test_players_match_their_descriptions(answers: Any) -> None:
    """Draws, scores, kept tiles, and counted places agree with the reference."""
    game, states = some_positions(3)
    config = game.config
    keys = jax.random.split(jax.random.key(8), LANES)
    masks, actions, *_ = jax.device_get(compiled(game).look(states))
    decided = np.asarray(answers(states, keys))
    compared = 0
    for lane in range(LANES):
        position = game.host(rows(states, lane))
        if position.is_terminal:
            continue
        played, placed = reference_of(position), [tile for tile, *_ in position.placements]
        legal_here = {int(action): position.describe(int(action)) for action in actions[lane][masks[lane]]}
        by_name = dict(zip(PLAYERS, decided[lane].tolist(), strict=True))
        assert set(by_name.values()) <= set(legal_here)
        placements = {a: as_placement(what) for a, what in legal_here.items() if not isinstance(what, str)}
        if not placements:
            continue
        draws = config.draw in legal_here
        assert by_name["random_stuck"] in placements
        assert (by_name["flexible_hoard"] == config.draw) == draws
        unseen = [
            tile for tile in config.tile_list if tile not in position.trays[position.current_player] and tile not in placed
        ]
        best = max(map(played.score, placements.values()))
        more = [max(0, best_score(played, tile) - best) for tile in unseen]
        wants = draws and bool(played.board) and sum(more) > 5 * len(unseen)
        assert (by_name["greedy_gain"] == config.draw) == wants
        assert (by_name["block_gain"] == config.draw) == wants
        if not wants:
            assert played.score(placements[by_name["greedy_gain"]]) == best
            values = {a: played.score(p) - 2 * len(after(played, p, unseen).placements()) for a, p in placements.items()}
            assert values[by_name["block_gain"]] == max(values.values())
            compared += len(values) > 1
        kept = {a: played.score(p) - (0, 0, 3, 6)[4 - len(set(p[0]))] for a, p in placements.items()}
        assert kept[by_name["thrifty_stuck"]] == max(kept.values())
        if not draws:
            values = {}
            for a, p in placements.items():
                rest = [tile for tile in position.trays[position.current_player] if tile != p[0]]
                expected = 32 * len(after(played, p, unseen).placements()) // max(1, len(unseen))
                values[a] = 4 * played.score(p) + 32 * len(after(played, p, rest).placements()) + expected
            assert values[by_name["flexible_hoard"]] == max(values.values())
    assert compared > 3


def test_names_and_descriptions_of_actions() -> None:
    game, states = some_positions(3)
    masks, actions, *_ = jax.device_get(compiled(game).look(states))
    legal_list = jax.jit(lambda state: game.legal_list(state, 64))
    for lane in range(0, LANES, 3):
        state = rows(states, lane)
        position = game.host(state)
        listed = legal_list(state).tolist()
        assert sorted(action for action in listed if action >= 0) == sorted(actions[lane][masks[lane]].tolist())
        expected = legal(game, reference_of(position)) if not position.is_terminal else {}
        for action in actions[lane][masks[lane]].tolist():
            what = position.describe(action)
            assert (what if isinstance(what, str) else as_placement(what)) == expected.pop(action)
            assert position.action(what) == position.action_of_name(position.action_name(action)) == action
            if not isinstance(what, str) and len(set(what[0])) == 1:  # all orientations of a triple are equivalent
                for orientation in range(ORIENTATIONS.index(what[1]), 6, 2):
                    assert position.action((what[0], ORIENTATIONS[orientation], what[2])) == action
        assert not expected
        assert position.text().count("\n") >= 3
        assert position.svg().count("data-cell=") == len(position.placements)


def test_illegal_actions_name_the_rule() -> None:
    tiles_ = ["055", "155", "255", "012", "013", "014", "023", "024", "034", "555", "000", "111", "222", "333", "444"]
    rest = ["".join(map(str, tile)) for tile in tiles(5) if "".join(map(str, tile)) not in tiles_]
    game = tilewe_jax.make("triominos")
    deal = {"tiles": tiles_ + rest, "starter": 0, "seed": [1, 2]}
    state = game.init_from_deal(deal)
    assert game.deal(state) == deal
    step = jax.jit(game.step)

    def rejected(what: Any, words: str) -> None:
        with pytest.raises(IllegalActionError, match=words):
            game.action_of(what, state)

    rejected("pass", "0 of 3 .* 38")
    rejected(("055", "ACB", (1, 0)), r"first tile .*\(0, 0\) as ABC")
    rejected(("555", "ABC", (0, 0)), "5-5-5 is not on the tray of player 1")
    rejected(("016", "ABC", (0, 0)), "0-1-6 is not among the 56")
    state = step(state, game.action_of(("055", "ABC", (0, 0)), state))
    assert game.scores(state).tolist() == [10, 0]
    rejected(("555", "ABC", (0, 0)), "taken by the tile 0-5-5")
    rejected(("555", "ABC", (2, 0)), "no tile shares an edge")
    rejected(("555", "ABC", (1, 0)), "ABC faces the other way")
    rejected(("000", "ACB", (1, 0)), r"left corner of \(1, 0\) must be 5 .* got 0")
    for drawn in range(3):
        assert int(state.draws) == drawn
        state = step(state, game.action_of("draw", state))
    rejected("draw", "3 tiles were drawn")
    state = step(state, game.action_of(("555", "ACB", (1, 0)), state))
    assert game.scores(state).tolist() == [10, 0]
    for name in ("125-ABC@1", "nothing"):
        with pytest.raises(ValueError, match=f"invalid action '{name}'"):
            game.action_of_name(name, state)
    with pytest.raises(IllegalActionError, match="12345"):
        game.describe(state, 12345)
    assert "player 2 to move" not in game.text(state)
    assert "player 1: 10 points" in game.text(state)

    forced = tilewe_jax.make("triominos", start="highest")
    with pytest.raises(ValueError, match="highest tile"):
        forced.init_from_deal(deal)
    state = forced.init_from_deal({**deal, "starter": 1})
    with pytest.raises(IllegalActionError, match="0-0-0"):
        forced.action_of("draw", state)
    with pytest.raises(IllegalActionError, match="0-0-0"):
        forced.action_of(("111", "ABC", (0, 0)), state)
    assert forced.scores(step_of(forced, state, ("000", "ABC", (0, 0)))).tolist() == [0, 40]
    assert forced.scores(step_of(forced, state, ("555", "ABC", (0, 0)))).tolist() == [0, 25]


@pytest.mark.parametrize(
    "options",
    [
        {"players": 3, "tiles": 35, "tray": 4, "start": "highest", "game": "target", "target": 200, "max_rounds": 3},
        slow({"players": 2, "tiles": 20, "tray": 5, "start": "winner", "game": "target", "target": 150, "max_rounds": 3}),
        {"players": 4, "tiles": 20, "tray": 2, "start": "random", "game": "target", "max_rounds": 3},
        slow({"tiles": 56, "start": "random"}),
    ],
    ids=str,
)
def test_host_positions_match_the_device(options: dict[str, Any]) -> None:
    """Legal actions and positions of host and device agree in whole games, including the deals of later rounds."""
    game, lanes = tilewe_jax.make("triominos", **options), 6
    functions, rng = compiled(game), random.Random(1)
    state = functions.init(jax.random.split(jax.random.key(2), lanes))
    games = [game.host(rows(state, lane)) for lane in range(lanes)]
    assert games == [Position.start(game.config, seed=tuple(np.asarray(state.seed[lane]).tolist())) for lane in range(lanes)]
    rounds, compared = 0, 0
    while not all(position.is_terminal for position in games):
        masks, actions, *_ = jax.device_get(functions.look(state))
        chosen = np.full(lanes, -1, np.int32)
        for lane, position in enumerate(games):
            assert position.legal_actions() == sorted(actions[lane][masks[lane]].tolist())
            if position.is_terminal:
                assert position.explain(game.config.draw) == "the game is over"
                continue
            chosen[lane] = rng.choice(position.legal_actions())
            games[lane] = position.after(int(chosen[lane]))
            rounds += games[lane].round > position.round
            compared += 1
        state = functions.step(state, chosen)
        host = jax.device_get(state)
        assert games == [game.host(rows(host, lane)) for lane in range(lanes)]
    assert compared > 100
    assert (rounds > lanes // 2) == (game.config.game == "target")


def test_the_host_explains_every_illegal_action() -> None:
    """``explain`` names a rule exactly for the actions that are illegal on the device."""
    game, states = some_positions(2)
    masks, actions, *_ = jax.device_get(compiled(game).look(states))
    rules = set()
    for lane in (0, 5, 8, 11):
        position = game.host(rows(states, lane))
        legal = set(actions[lane][masks[lane]].tolist())
        taken = {game.config.wrapped(cell) for *_, cell in position.placements}
        near = {game.config.wrapped(cell) for *_, cell in position.placements for cell in neighbourhood(cell)}
        ids = [cell * game.config.numbers + third for cell in taken | near | {777} for third in range(game.config.numbers)]
        for action in [-1, *ids, *range(game.config.first, game.num_actions + 1)]:
            rule = position.explain(action)
            assert (rule is None) == (action in legal), action
            if rule is not None:
                rules.add(re.sub(r"\W*\d[\d ,()-]*", " # ", rule))
                with pytest.raises(IllegalActionError, match=re.escape(f"action {action} is illegal: {rule}")):
                    position.after(action)
    said = " | ".join(sorted(rules))
    for words in (
        "is taken by",
        "no tile shares an edge",
        "corner of",
        "no tile has the numbers",
        "is not on the tray",
        "no such action",
    ):
        assert words in said, said


def step_of(game: Any, state: Any, what: Any) -> Any:
    return game.step(state, game.action_of(what, state))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"players": 7}, "players must be 2 to 6, got 7"),
        ({"tiles": 55}, "84, got 55"),
        ({"start": "lowest"}, "random, highest, winner"),
        ({"tiles": 10}, "at most 5 with 10 tiles, got 9"),
        ({"tray": 0}, "tray must"),
        ({"hex_scores": (50, 60)}, "hex_scores"),
        ({"target": 0}, "1 to 10000"),
        ({"max_rounds": 0}, "1 to 100"),
        ({"hexscores": (50, 60, 70)}, "hexscores .*hex_scores"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tilewe_jax.make("triominos", **options)


@pytest.mark.parametrize(
    "change",
    [{"tiles": ["000"] * 56}, {"tiles": None}, {"starter": 2}, {"starter": None}, {"seed": [1]}, {"seed": [-1, 0]}],
    ids=str,
)
def test_invalid_deals_are_rejected(change: dict[str, Any]) -> None:
    deal = {"tiles": ["".join(map(str, tile)) for tile in tiles(5)], "starter": 0, "seed": [1, 2]}
    Position.from_deal(Config(), deal)
    with pytest.raises(ValueError, match="56"):
        Position.from_deal(Config(), {**deal, **change})
