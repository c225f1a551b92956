"""Positions in plain Python against the reference: legal actions, and the rules that illegal actions break."""

import random
from collections.abc import Callable

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.support import batched, positions, rows
from tests.tilewe_jax.games.polyomino.reference import FEW_PIECES, SMALL, Board
from tilewe_jax import IllegalActionError
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES

VARIANTS = [
    SMALL,
    ("tilewe", {"players": 1, "size": 5}),
    ("duo", {"size": 7, "pieces": FEW_PIECES, "voluntary_pass": True}),
    ("duo_official", {"size": 8, "pieces": ("O1", "I2", "L3", "T4", "X5")}),
    ("classic_2", {"size": 7, "pieces": ("O1", "I3", "Z5"), "start_piece": "I3"}),
]


def rules_of(board: Board) -> Callable[[int, tuple[int, int]], str | None]:
    """Return a function that names the first rule that a placement breaks by a phrase of the message."""
    config, player, own = board.config, board.color, board.cells[board.color]
    cells_on_board = {(x, y) for x in range(config.size) for y in range(config.size)}
    taken, legal = set().union(*board.cells), board.placements(player)
    beside = {(x + dx, y + dy) for x, y in own for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}

    def broken_rule(orientation: int, anchor: tuple[int, int]) -> str | None:
        piece = ORIENTATIONS[orientation].piece
        cells = frozenset((anchor[0] + x, anchor[1] + y) for x, y in ORIENTATIONS[orientation].cells)
        rules = [
            (piece in config.pieces, "in play"),
            (piece in board.hands[player], "already placed"),
            (own or config.start_piece in (None, PIECE_NAMES[piece]), "must be"),
            (cells <= cells_on_board, "beyond the board"),
            (not cells & taken, "taken"),
            (not cells & beside, "an edge"),
            (cells in legal, "corner to corner" if own else "must cover"),
        ]
        return next((phrase for is_kept, phrase in rules if not is_kept), None)

    return broken_rule


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_illegal_actions_break_the_reported_rule(name: str, options: dict) -> None:
    game = tilewe_jax.make(name, **options)
    config, rng = game.config, random.Random(0)
    position, board = game.host(game.init(jax.random.key(0))), Board(game.config)
    phrases = set()
    while not position.is_terminal:
        assert (position.current_player, position.current_color) == (board.color % config.players, board.color)
        legal, broken_rule = [], rules_of(board)
        for action in range(config.num_placements):
            orientation, bit = divmod(action, config.cells)
            phrase, rule = broken_rule(orientation, (bit % config.size, bit // config.size)), position.explain(action)
            assert (phrase is None) if rule is None else (phrase is not None and phrase in rule), (action, rule, phrase)
            legal += [action] if rule is None else []
            phrases.add(phrase)
        assert (position.explain(config.num_placements) is None) == config.voluntary_pass
        legal += [config.num_placements] if config.voluntary_pass else []
        assert position.legal_actions() == legal
        assert list(position.scores()) == board.scores()
        action = legal[-1] if config.voluntary_pass and rng.random() < 0.1 else rng.choice(legal)
        if action == config.num_placements:
            board.give_up()
        else:
            board.place(PIECE_NAMES.index(game.piece_of(action)), frozenset(game.cells_of(action)))
        position = position.after(action)
    assert len(board.out) == config.colors
    assert list(position.scores()) == board.scores()
    assert position.legal_actions() == []
    assert position.explain(0) == position.explain(config.num_placements) == "the game is over"
    expected = {None, "already placed", "beyond the board", "taken", "an edge", "must cover"}
    expected |= {"must be"} if config.start_piece else set()
    assert phrases >= expected | ({"corner to corner"} if config.players > 1 else set())


def test_illegal_actions_raise_and_change_nothing() -> None:
    game = tilewe_jax.make("tilewe", players=2)
    position = game.host(game.init(jax.random.key(0)))
    second = position.after(game.action_of_name("W5n-a1a1")).after(game.action_of_name("O1n-a1t20"))
    text = second.text()
    for name in ("W5n-a1c3", "O1n-a1t20"):
        with pytest.raises(IllegalActionError, match=name[:3]):
            second.after(game.action_of_name(name))
    with pytest.raises(IllegalActionError, match="a20"):
        position.after(game.action_of_name("O1n-a1b1"))
    with pytest.raises(IllegalActionError, match=f"{game.num_actions} .* blue"):
        second.after(game.num_actions)
    with pytest.raises(IllegalActionError, match="36399"):
        second.after(-1)
    assert second.text() == text


@pytest.mark.parametrize(("name", "options"), [VARIANTS[0], VARIANTS[-1]], ids=str)
def test_host_and_device_agree(name: str, options: dict) -> None:
    game = tilewe_jax.make(name, **options)
    position = game.host(game.init(jax.random.key(0)))
    for states, actions in positions(game, 4):
        state, mask = rows(states, 0), np.asarray(batched(game).legal_action_mask(states))[0]
        for view in (position, game.host(state)):
            assert view.legal_actions() == np.flatnonzero(mask).tolist()
            assert (view.current_player, view.is_terminal) == (int(game.current_player(state)), bool(game.is_terminal(state)))
            assert list(view.scores()) == game.scores(state).tolist()
            assert view.text() == game.text(state)
        if not position.is_terminal:
            position = position.after(int(actions[0]))
    assert position.is_terminal
