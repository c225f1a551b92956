"""Positions as facts: any position that is reached by play, described and rebuilt, equals the played one."""

import json
from random import Random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tilewe_jax import make
from tilewe_jax.games.santorini.setup import notation
from tilewe_jax.host_games import make_host_game

GAMES = [
    ("tilewe", {"players": 3, "size": 10}),
    ("tilewe", {"players": 2, "size": 6, "pieces": ["O1", "I2", "I3", "L3"]}),
    ("duo", {"size": 8, "voluntary_pass": True}),
    ("duo_official", {}),
    ("duo_official", {"size": 6, "pieces": ["O1", "I2", "I3"]}),
    ("classic", {"size": 9}),
    ("classic_2", {"size": 10, "start_piece": "V5"}),
    ("santorini", {}),
    ("santorini", {"size": 4, "placement": "chosen"}),
    ("santorini", {"size": 3, "placement": "random"}),
    ("triominos", {}),
    ("triominos", {"players": 3, "tiles": 35, "start": "highest"}),
    ("triominos", {"players": 2, "tiles": 20, "tray": 4, "game": "target", "target": 100, "start": "winner"}),
]
IDS = [f"{name} {options}" for name, options in GAMES]


def played(host, seed):
    """Yield the positions of a random game."""
    chance = Random(seed)
    position = host.init_from_deal(host.new_deal(chance))
    while True:
        yield position
        legal = position.legal_actions()
        if not legal:
            return
        position = position.after(chance.choice(legal))


@pytest.mark.parametrize(("name", "options"), GAMES, ids=IDS)
def test_host_positions_are_described_completely(name, options):
    host = make_host_game(name, **options)
    for seed in range(2):
        for number, position in enumerate(played(host, seed)):
            facts = json.loads(json.dumps(host.positions.write(position)))
            rebuilt = host.init_from_deal({"position": facts})
            assert host.positions.write(rebuilt) == facts
            if number % 5 and not position.is_terminal:
                continue
            assert rebuilt.view(open=True) == position.view(open=True)
            assert rebuilt.legal_actions() == position.legal_actions()
            assert rebuilt.scores() == position.scores()
            assert host.returns(rebuilt) == host.returns(position) or not position.is_terminal
            for action in position.legal_actions()[:3]:
                assert rebuilt.after(action).view(open=True) == position.after(action).view(open=True)


@pytest.mark.parametrize(("name", "options"), GAMES, ids=IDS)
def test_rebuilt_positions_play_on_equally(name, options):
    host = make_host_game(name, **options)
    chance = Random(5)
    positions = list(played(host, 3))
    for start in chance.sample(positions, 3):
        position, rebuilt = start, host.init_from_deal({"position": host.positions.write(start)})
        while not position.is_terminal:
            action = chance.choice(position.legal_actions())
            position, rebuilt = position.after(action), rebuilt.after(action)
        assert rebuilt.view(open=True) == position.view(open=True)
        assert host.returns(rebuilt) == host.returns(position)


def canonical(state):
    """The leaves of a state, with the slots of the frontier of Triominos, which are unordered, in the order of their cells."""
    if not hasattr(state, "table"):
        return jax.tree.leaves(state)
    frontier = np.asarray(state.table.frontier)
    slots = [slot for slot in np.argsort(frontier) if frontier[slot] >= 0]
    table = state.table
    rows = [frontier[slots], *(np.asarray(row)[slots] for row in (*table.numbers, table.neighbour_mask))]
    order = np.where(np.asarray(state.order) >= int(state.drawn), np.asarray(state.order), -1)
    rest = [state.trays, state.drawn, state.scores, state.current_player, state.draws, state.passes, state.starter]
    return [*rows, order, table.placed_at, table.orientation, *rest, state.round, state.seed]


@pytest.mark.parametrize(("name", "options"), GAMES, ids=IDS)
def test_states_of_facts_equal_played_states(name, options):
    game, host = make(name, **options), make_host_game(name, **options)
    apply, mask, observe = map(jax.jit, (game.apply, game.legal_action_mask, game.observe))
    chance = Random(1)
    deal = host.new_deal(chance)
    position, state = host.init_from_deal(deal), game.init_from_deal(deal)
    number = 0
    while True:
        if number % 4 == 0 or position.is_terminal:
            rebuilt = game.init_from_deal({"position": host.positions.write(position)})
            for ours, theirs in zip(canonical(rebuilt), canonical(state), strict=True):
                assert np.asarray(ours).dtype == np.asarray(theirs).dtype
                np.testing.assert_array_equal(ours, theirs)
            assert jax.tree.map(jnp.shape, rebuilt) == jax.tree.map(jnp.shape, state)
            legal = [int(action) for action in np.flatnonzero(mask(rebuilt))]
            assert legal == position.legal_actions()
            if name != "triominos":  # its observations list the frontier, which is unordered
                np.testing.assert_array_equal(*(observe(each, jnp.int32(0)) for each in (rebuilt, state)))
            assert game.positions.write(game.host(rebuilt)) == host.positions.write(position)
        if position.is_terminal:
            return
        action = chance.choice(position.legal_actions())
        position, state, number = position.after(action), apply(state, jnp.int32(action)), number + 1


def refusal(name, facts, **options):
    with pytest.raises(ValueError, match=r"\w") as caught:
        make_host_game(name, **options).init_from_deal({"position": facts})
    return str(caught.value)


BLUE = "e10,f10,f9"
DUO = {"placed": {"blue": [BLUE]}, "current_color": "yellow"}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (None, "a position must be an object with placed, current_color, got None"),
        ({"placed": {}}, "the position lacks current_color"),
        ({**DUO, "plced": 1}, "unknown fields of the position: plced; known are placed, current_color, out, monomino_last"),
        ({**DUO, "placed": {"red": []}}, "unknown colours in placed: red; the colours are blue, yellow"),
        ({**DUO, "current_color": "red"}, "current_color must be one of blue, yellow, got red"),
        ({**DUO, "placed": {"blue": [7]}}, "a piece of blue must be a text with its cells, like e8,e9,f9, got 7"),
        ({**DUO, "placed": {"blue": ["e10,g10"]}}, "these cells do not form a piece on the board"),
        ({**DUO, "placed": {"blue": ["e10,f99"]}}, "these cells do not form a piece on the board"),
        ({**DUO, "placed": {"blue": ["a1"]}}, "a piece of blue must cover e10: the first piece starts there"),
        ({**DUO, "placed": {"blue": [BLUE, BLUE]}}, "blue has placed L3 twice: f9,e10,f10 and f9,e10,f10"),
        (
            {**DUO, "placed": {"blue": [BLUE], "yellow": ["j5,j6", "f9"]}},
            "L3 of blue (f9,e10,f10) and O1 of yellow (f9) cover the same cell, f9",
        ),
        (
            {**DUO, "placed": {"blue": [BLUE, "g10"]}},
            "L3 of blue (f9,e10,f10) and O1 of blue (g10) share an edge; pieces of one colour touch at corners only",
        ),
        ({**DUO, "placed": {"blue": [BLUE, "h12"]}}, "O1 of blue (h12) is not connected to the start by corners of its colour"),
        ({**DUO, "out": ["green"]}, "out must be a list of colours among blue, yellow, got ['green']"),
        ({**DUO, "monomino_last": ["blue"]}, "blue is in monomino_last, but has not placed O1"),
    ],
)
def test_wrong_facts_of_polyominoes_are_named(facts, message):
    assert message in refusal("duo_official", facts)


def test_a_start_piece_and_open_starts_are_checked():
    options = {"size": 10, "start_piece": "V5"}
    facts = {"placed": {"blue": ["a10"]}, "current_color": "yellow"}
    assert "V5 starts there" in refusal("classic_2", facts, **options)
    facts["placed"]["blue"] = ["a10,a9,a8,b10,c10", "d9"]
    assert make_host_game("classic_2", **options).init_from_deal({"position": facts}).scores() == (6, 0)
    open_starts = {"placed": {"blue": ["a14", "n14,n13"]}, "current_color": "yellow"}
    assert make_host_game("duo").init_from_deal({"position": open_starts}).scores() == (3, 0)
    assert "is not connected" in refusal("tilewe", {"placed": {"blue": ["a1", "t20,t19"]}, "current_color": "yellow"})


def test_numbers_of_pieces_are_free_and_blocked_colours_pass():
    host = make_host_game("duo_official")
    handicap = {"placed": {"blue": [], "yellow": ["j5", "k6,k7"]}, "current_color": "yellow"}
    position = host.init_from_deal({"position": handicap})
    assert position.scores() == (0, 3)
    assert position.current_player == 1
    small = make_host_game("tilewe", players=2, size=5, pieces=["O1"])
    blocked = small.init_from_deal({"position": {"placed": {"blue": ["a1"]}, "current_color": "blue"}})
    assert blocked.current_player == 1
    assert not blocked.is_terminal
    over = small.init_from_deal({"position": {"placed": {"blue": ["a1"], "yellow": ["e5"]}, "current_color": "blue"}})
    assert over.is_terminal


SANTORINI = {"heights": ["00000"] * 5, "workers": [["c4", "c2"], ["b3", "d3"]], "current_player": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heights": ["00000"] * 4}, "heights must be 5 rows of 5 digits, the top row first"),
        ({"heights": ["00005"] + ["00000"] * 4}, "heights must be 0 to 4, got 5"),
        ({"heights": ["00000", "00400", *["00000"] * 3]}, "a worker of player 1 stands on a dome, at c4"),
        (
            {"heights": ["00000", "00300", *["00000"] * 3]},
            "player 1 has a worker on level 3, at c4, and has won; the other player must be to move",
        ),
        ({"workers": [["c4", "c2"], ["b3"]]}, "player 2 must have two workers"),
        ({"workers": [["c4", "c2"], ["b3", "c4"]]}, "two workers stand on c4"),
        ({"workers": [["c4", "c9"], ["b3", "d3"]]}, "a worker must stand on a cell from a1 to e5, got 'c9'"),
        ({"workers": [["c4", "c2", "a1"], ["b3", "d3"]]}, "workers must be two lists of at most two cells"),
        ({"current_player": 2}, "current_player must be an integer from 0 to 1, got 2"),
    ],
)
def test_wrong_facts_of_santorini_are_named(change, message):
    assert message in refusal("santorini", {**SANTORINI, **change})


def test_santorini_reads_and_writes_the_notation_of_engines():
    host = make_host_game("santorini")
    text = "4101202110011400102000100/2/mortal:A3,C3/mortal:E4,A1"
    position = host.init_from_deal({"position": text})
    assert position.heights == ((4, 1, 0, 1, 2), (0, 2, 1, 1, 0), (0, 1, 1, 4, 0), (0, 1, 0, 2, 0), (0, 0, 1, 0, 0))
    assert position.workers == ((2, 0), (2, 2), (1, 4), (4, 0))
    assert notation(position) == text
    for seed in range(3):
        for position in played(host, seed):
            assert host.init_from_deal({"position": notation(position)}) == position
    assert notation(position).count("#") == 1
    assert "gods are not supported, got artemis" in refusal("santorini", text.replace("mortal:E4", "artemis:E4"))
    assert "is marked as the winner, but has not won" in refusal("santorini", text.replace("mortal:E4", "mortal#:E4"))
    assert "a position as text must be like" in refusal("santorini", "hello")
    assert "the heights must be 16 digits, got 25" in refusal("santorini", text, size=4)


TRIOMINOS = {"placed": ["555-ABC@0,0"], "trays": [[], []], "current_player": 0}


def trays(*hands):
    return {"trays": [hand.split() for hand in hands]}


HANDS = trays("000 001 002 003 004 005 011 012 013", "111 112 113 114 115 122 123 124")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"placed": ["555"]}, "a placed tile must be like 125-CAB@2,-1, got '555'"),
        ({"placed": ["666-ABC@0,0"]}, "the tile 6-6-6 is not among the 56 of this game"),
        ({"placed": ["555-ABC@0,0", "555-ACB@1,0"]}, "the tile 5-5-5 is already placed"),
        ({"placed": ["555-ABC@0,0", "445-ACB@1,0"]}, "the left corner of (1, 0) must be 5 to match its neighbours, got 4"),
        ({"placed": ["555-ABC@2,0"]}, "the tile on (2, 0) is not connected by edges with a tile on (0, 0)"),
        ({"placed": ["555-ABC@1,0"]}, "(1, 0) faces down, but ABC faces the other way"),
        (trays("555", "001"), "the tile 5-5-5 is on the table and on the tray of player 1"),
        (trays("001", "001"), "the tile 0-0-1 is on the tray of player 1 and on the tray of player 2"),
        (trays("001 001", "002"), "the tile 0-0-1 is twice on the tray of player 1"),
        (trays("001"), "trays must be 2 lists of tiles"),
        ({}, "the pile must have at most 38 tiles, as at the start of a round, got 55"),
        ({"pile": ["001"]}, "the pile must contain all other tiles; missing are 0-0-0, "),
        ({**HANDS, "points": [1]}, "points must be 2 integers, got [1]"),
        ({**HANDS, "draws": 4}, "draws must be an integer from 0 to 3, got 4"),
        ({**HANDS, "seed": [1]}, "seed must be two integers from 0 to 4294967295, got [1]"),
    ],
)
def test_wrong_facts_of_triominos_are_named(change, message):
    assert message in refusal("triominos", {**TRIOMINOS, **change})


def test_defaults_of_triominos_are_complete():
    host = make_host_game("triominos")
    position = host.init_from_deal({"position": {**TRIOMINOS, **HANDS}})
    assert len(position.pile) == 38
    assert position.starter == 0
    other = host.init_from_deal({"position": {**TRIOMINOS, **HANDS, "seed": [1, 2]}})
    assert sorted(other.pile) == sorted(position.pile)
    assert other.pile != position.pile
    options = {"game": "target", "target": 100}
    over = {**TRIOMINOS, **HANDS, "passes": 2}
    assert host.init_from_deal({"position": over}).is_terminal
    assert "the round is over" in refusal("triominos", over, **options)


def test_deals_with_further_fields_and_games_without_positions_are_refused():
    with pytest.raises(ValueError, match="a deal with a position must have only this field, got also seed"):
        make_host_game("duo").init_from_deal({"position": DUO, "seed": 1})
    with pytest.raises(ValueError, match="does not start from positions"):
        TicTacToe().init_from_deal({"position": DUO})


@pytest.mark.parametrize(("name", "options"), GAMES[1:3] + GAMES[8:11], ids=str)
def test_records_start_from_positions(name, options, tmp_path):
    from tilewe_jax import records

    game, host, chance = make(name, **options), make_host_game(name, **options), Random(2)
    positions = list(played(host, 4))
    start = {"position": host.positions.write(positions[len(positions) // 2])}
    position, actions = host.init_from_deal(start), []
    while not position.is_terminal:
        actions.append(chance.choice(position.legal_actions()))
        position = position.after(actions[-1])
    record = records.Record(start, tuple(actions), position.scores(), tuple(map(float, host.returns(position))))
    path = tmp_path / "games.jsonl"
    records.write(path, host, [record])
    _, (again,) = records.read(path)
    assert again == record
    assert records.replay(game, [again]) == [None]
    broken = path.read_text().replace('"position": {', '"position": {"x": 1, ')
    path.write_text(broken)
    with pytest.raises(records.RecordError, match="unknown fields of the position: x"):
        records.read_on_host(path)


def mutated(value, chance):
    """Return a JSON value with one part replaced, removed or repeated."""
    junk = [
        None,
        True,
        -1,
        7,
        10**30,
        1.5,
        "",
        "x",
        "a1",
        "e10,f10",
        "555-ABC@0,0",
        "112-CAB@9,9",
        [],
        {},
        [[]],
        {"blue": 1},
        "\u0661",
        "4" * 25,
    ]
    if isinstance(value, (dict, list)) and value and chance.random() < 0.85:
        value = value.copy()
        at = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        action = chance.random()
        if action < 0.1:
            del value[at]
        elif action < 0.2 and isinstance(value, list):
            value.append(value[at])
        else:
            value[at] = mutated(value[at], chance)
        return value
    if isinstance(value, str) and value and chance.random() < 0.5:
        index = chance.randrange(len(value))
        return value[:index] + chance.choice("0123456789abcdefxyzABC,-@/#: ") + value[index + 1 :]
    return chance.choice(junk)


@pytest.mark.parametrize(("name", "options"), GAMES, ids=IDS)
def test_malformed_positions_are_refused_or_playable(name, options):
    host, chance = make_host_game(name, **options), Random(9)
    facts = [host.positions.write(position) for position in played(host, 6)]
    texts = [notation(host.init_from_deal({"position": each})) for each in facts] if name == "santorini" else []
    refusals = []
    for _ in range(300):
        wrong = chance.choice([*facts, *texts])
        for _ in range(chance.choice([1, 1, 2, 3])):
            wrong = mutated(wrong, chance)
        try:
            position = host.init_from_deal({"position": wrong})
        except ValueError as error:
            refusals.append(str(error))
            continue
        assert host.positions.write(host.init_from_deal({"position": host.positions.write(position)})) == host.positions.write(
            position
        )
        position.view(open=True)
        for action in position.legal_actions()[:2]:
            position.after(action)
    assert len(refusals) > 100
    assert all(0 < len(message) < 1000 for message in refusals)


@pytest.mark.parametrize(("name", "options"), [GAMES[1], GAMES[8]], ids=str)
def test_agents_play_on_from_positions(name, options):
    game, host = make(name, **options), make_host_game(name, **options)
    start = list(played(host, 8))[4]
    player = tilewe_jax.agent("random", game).host()
    position, actions = start, []
    player.new_game({"position": host.positions.write(start)})
    while not position.is_terminal:
        actions.append(player.choose(actions))
        position = position.after(actions[-1])
    player.new_game()
    assert host.init_from_deal(host.new_deal(Random(0))).explain(player.choose(())) is None
