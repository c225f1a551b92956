"""Facts of moves against slow computations from views, and on positions made by hand."""

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES
from tilewe_jax.games.santorini.host import SantoriniBoard
from tilewe_jax.host_games import OFFERS, make_host_game

Cells = frozenset[tuple[int, int]]


def position_of(name: str, seed: int, plies: int, **options: Any) -> Any:
    """Return a position after random moves that is not terminal."""
    chance = Random(seed)
    game = make_host_game(name, **options)
    position = game.init_from_deal(game.new_deal(chance))
    for _ in range(plies):
        after = position.after(chance.choice(position.legal_actions()))
        if after.is_terminal:
            break
        position = after
    return position


class Board:
    """The board of a polyomino view, with the legal placements of each colour by trying all of them."""

    def __init__(self, position: Any) -> None:
        view = position.view()
        self.size, config = view["size"], position.config
        cells = {(x, y): view["cells"][y * self.size + x] for x in range(self.size) for y in range(self.size)}
        self.placements: list[list[tuple[str, Cells]]] = []
        self.corners: list[Cells] = []
        for color, values in enumerate(view["colors"]):
            own = {cell for cell, mark in cells.items() if mark == str(color)}
            diagonal = {(x + i, y + j) for x, y in own for i in (-1, 1) for j in (-1, 1)}
            beside = {(x + i, y + j) for x, y in own for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))}
            starts = set(config.start_cells[color]) if config.starts_stay_open or not own else set()
            free = {cell for cell, mark in cells.items() if mark == "."} - beside
            contacts = (diagonal | starts) & free
            found = []
            for shape, x, y in product(ORIENTATIONS, range(self.size), range(self.size)):
                covered = frozenset((x + i, y + j) for i, j in shape.cells)
                name = PIECE_NAMES[shape.piece]
                if name in values["pieces"] and covered <= free and covered & contacts and not values["out"]:
                    found.append((name, covered))
            self.placements.append(found)
            self.corners.append(frozenset(cell for _, covered in found for cell in covered & contacts))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([("duo", {"size": 8}), ("tilewe", {"size": 7, "players": 3}), ("classic_2", {"size": 8})]), st.data())
def test_facts_of_polyominoes_equal_trying_all_placements(game: Any, data: Any) -> None:
    name, options = game
    position = position_of(name, data.draw(st.integers(0, 99)), data.draw(st.integers(0, 16)), **options)
    action = data.draw(st.sampled_from(position.legal_actions()))
    facts = OFFERS[name].coach.facts(position, action)  # type: ignore[union-attr]
    before, last = Board(position), position.after(action)
    after, covered = Board(last), frozenset(map(tuple, position.action_view(action)["cells"]))
    assert facts["squares"] == len(covered)
    for prefix, is_own in (("", True), ("opponent_", False)):
        colors = [
            color
            for color in range(position.config.colors)
            if (position.config.owner(color) == position.current_player) == is_own
        ]
        assert facts[prefix + "corners"] == sum(len(after.corners[color]) for color in colors)
        lost = [before.corners[color] - after.corners[color] - covered for color in colors]
        assert facts[prefix + "corners_closed"] == sum(map(len, lost))
        room = [frozenset().union(*(cells for _, cells in after.placements[color])) for color in colors]
        assert facts[prefix + "room"] == sum(map(len, room))
        stuck: list[str] = []
        for color in colors:
            fitted, fits = ({name for name, _ in board.placements[color]} for board in (before, after))
            stuck += fitted - fits - (set() if color != position.current_color else {position.action_view(action)["piece"]})
        assert Counter(facts[prefix + "stuck"]) == Counter(stuck)


def test_a_pass_is_a_mistake_while_a_piece_fits() -> None:
    position = position_of("duo", 1, 4, voluntary_pass=True)
    *placements, passing = position.legal_actions()
    coach = OFFERS["duo"].coach
    assert coach
    played, better = coach.facts(position, passing), coach.facts(position, placements[0])
    assert played["squares"] == played["corners"] == played["room"] == 0
    assert max(coach.reasons(played, better))[1] == "It passes, although a piece fits."


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.integers(0, 40), st.integers(3, 5), st.data())
def test_facts_of_santorini_equal_playing_all_turns(seed: int, plies: int, size: int, data: Any) -> None:
    board = position_of("santorini", seed, plies, size=size, placement="random")
    action = data.draw(st.sampled_from(board.legal_actions()))
    facts = OFFERS["santorini"].coach.facts(board, action)  # type: ignore[union-attr]
    move, after = board.move(action), board.after(action)
    assert (facts["level"], facts["climb"]) == (after.height(move.to), after.height(move.to) - board.height(move.start))
    replies = [after.after(reply) for reply in after.legal_actions()]
    if after.is_terminal:
        assert facts["wins_in"] == 1
        return
    winning = [name for name, reply in zip(after.legal_moves, replies, strict=True) if reply.winner == after.player]
    assert facts["loses_to"] == (after.name(winning[0]) if winning else None)
    climbs = [{turn.to for turn in reply.legal_moves if reply.height(turn.to) == 3} for reply in replies]
    mine = SantoriniBoard(after.heights, after.workers, board.player)
    assert facts["threats"] == len({turn.to for turn in mine.legal_moves if mine.height(turn.to) == 3})
    assert facts["wins_in"] == (2 if facts["threats"] and all(climbs) else 0)
    assert (facts["turns"], facts["opponent_turns"]) == (len(mine.legal_moves), len(after.legal_moves))
    built = after.height(move.build)
    gives = any(turn.to == move.build and after.height(turn.start) + 1 == built for turn in after.legal_moves)
    assert facts["gives"] == (built if gives else 0)
    own, others = (board.workers[:2], board.workers[2:]) if board.player == 1 else (board.workers[2:], board.workers[:2])
    own = (after.workers[:2], after.workers[2:])[board.player != 1]
    cells = [(row, column) for row in range(size) for column in range(size)]
    busy = {*others, *(cell for cell in cells if 1 <= after.height(cell) <= 3)}
    far = [worker for worker in own if all(max(abs(worker[0] - r), abs(worker[1] - c)) > 2 for r, c in busy - {worker})]
    assert facts["idle"] == [f"{'abcde'[column]}{size - row}" for row, column in far]


def santorini(heights: str, workers: str, move: str) -> dict[str, Any]:
    """Facts of a move of player 1; rows of heights from the top, cells of the workers by name."""
    rows = heights.split()
    cells = [(len(rows) - int(name[1]), "abcde".index(name[0])) for name in workers.split()]
    board = SantoriniBoard(tuple(tuple(map(int, row)) for row in rows), tuple(cells))  # type: ignore[arg-type]
    return OFFERS["santorini"].coach.facts(board, board.action(move))  # type: ignore[union-attr]


def test_reasons_in_santorini() -> None:
    coach = OFFERS["santorini"].coach
    assert coach
    place = "02300 00000 00000 00100 00000", "b5 d2 e1 a1"
    wins, misses = santorini(*place, "b5-c5*d5"), santorini(*place, "b5-a4*a5")
    assert (wins["wins_in"], misses["wins_in"]) == (1, 0)
    assert max(coach.reasons(misses, wins))[1] == "The better move wins immediately; this move misses it."
    place = "03000 20000 00000 00000 00000", "b3 e1 a4 e5"
    lets, stops = santorini(*place, "e1-d1*e1"), santorini(*place, "b3-b4*b5")
    assert lets["loses_to"] == "a4-b5*a5"
    assert stops["loses_to"] is None
    assert "lets the opponent win with a4-b5*a5" in max(coach.reasons(lets, stops))[1]
    gives = santorini("00000 01000 01000 00000 00000", "a3 e1 b4 c5", "a3-a4*b3")
    assert (gives["gives"], gives["gives_at"]) == (2, "b3")
    assert gives["idle"] == ["e1"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.integers(0, 40), st.data())
def test_facts_of_triominos_equal_counting_corners_of_views(seed: int, plies: int, data: Any) -> None:
    position = position_of("triominos", seed, plies)
    action = data.draw(st.sampled_from(position.legal_actions()))
    facts = OFFERS["triominos"].coach.facts(position, action)  # type: ignore[union-attr]
    view, played = position.view(open=True), position.action_view(action)
    tray = list(view["trays"][position.current_player])
    tiles = list(view["tiles"])
    if played["kind"] == "place":
        tiles.append(played)
        tray.remove(played["tile"])
    assert (facts["kind"], facts["gain"]) == (played["kind"], played["gain"])
    assert facts["tray"] == len(tray) + (played["kind"] == "draw")
    assert facts["tray_points"] == sum(int(digit) for tile in tray for digit in tile)
    placed = {tuple(tile["cell"]): tile for tile in tiles}
    corners = Counter(tuple(point) for tile in tiles for point in tile["points"])
    numbers = {tuple(point): number for tile in tiles for point, number in zip(tile["points"], tile["numbers"], strict=True)}
    after = position.after(action) if played["kind"] == "place" else position
    if after.round != position.round or after.is_terminal:
        return  # the view after the move is not of this round
    hexagons, open_cells = 0, 0
    for free in after.view(open=True)["frontier"] if tiles else ():
        assert tuple(free["cell"]) not in placed
        hexagons += any(corners[tuple(point)] == 5 for point in free["points"])
        known = [numbers.get(tuple(point)) for point in free["points"]]
        if free["points"][1][1] > free["points"][0][1]:
            known.reverse()  # clockwise on a cell that faces down
        open_cells += any(
            all(need in (None, int(turned[i])) for i, need in enumerate(known))
            for tile in tray
            for turned in (tile, tile[1:] + tile[:1], tile[2:] + tile[:2])
        )
    assert facts["hexagon_cells"] == hexagons
    if tiles:
        assert (facts["playable"] > 0) == (open_cells > 0)
    views = map(position.action_view, position.legal_actions())
    assert facts["largest_gain"] == max((view["gain"] for view in views if view["kind"] == "place"), default=None)


def test_a_missed_hexagon() -> None:
    coach = OFFERS["triominos"].coach
    assert coach
    for seed in range(100):
        position = position_of("triominos", seed, 25)
        views = {action: position.action_view(action) for action in position.legal_actions()}
        hexagon = next((action for action, view in views.items() if (view.get("reason") or "").startswith("hexagon")), None)
        others = [action for action, view in views.items() if view["kind"] == "place" and not view["reason"]]
        if hexagon is not None and others:
            break
    assert hexagon is not None
    better, played = coach.facts(position, hexagon), coach.facts(position, others[0])
    assert (better["hexagons"], played["hexagons"]) == (1, 0)
    gains = views[hexagon]["gain"], views[others[0]]["gain"]
    assert max(coach.reasons(played, better))[1] == f"It misses a hexagon: {gains[0]} points instead of {gains[1]}."


@pytest.mark.parametrize("name", list(OFFERS))
def test_facts_are_independent_of_hidden_information(name: str) -> None:
    offer = OFFERS[name]
    assert offer.coach
    assert offer.heuristics
    if not offer.heuristics.determinize:
        return
    position = position_of(name, 3, 30)
    for seed in range(5):
        other = offer.heuristics.determinize(position, Random(seed))
        for action in position.legal_actions():
            assert offer.coach.facts(position, action) == offer.coach.facts(other, action)
