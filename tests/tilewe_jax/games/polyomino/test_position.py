"""Positions in plain Python against the rules on sets of cells: legal actions, and the rule that each illegal action breaks."""

import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.tilewe_jax.games.polyomino.reference import Board
from tilewe_jax import IllegalActionError
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES

VARIANTS = [
    ("tilewe", {"players": 3, "size": 6, "pieces": ("O1", "I2", "L3", "T4", "W5")}),
    ("tilewe", {"players": 1, "size": 5}),
    ("duo", {"size": 7, "voluntary_pass": True}),
    ("duo_official", {"size": 8, "pieces": ("O1", "I2", "L3", "T4", "X5")}),
    ("classic", {"size": 9, "pieces": ("O1", "I3", "Z5")}),
    ("classic_2", {"size": 7, "pieces": ("O1", "I3", "Z5"), "start_piece": "I3"}),
]


def rules_of(board: Board) -> Callable[[int, tuple[int, int]], str | None]:
    """A function that gives a phrase of the first rule that a placement breaks, on sets of cells."""
    config, player, own = board.config, board.color, board.cells[board.color]
    cells_on_board = {(x, y) for x in range(config.size) for y in range(config.size)}
    taken, legal = set().union(*board.cells), board.placements(player)
    beside = {(x + dx, y + dy) for x, y in own for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}

    def broken_rule(orientation: int, anchor: tuple[int, int]) -> str | None:
        piece = ORIENTATIONS[orientation].piece
        cells = frozenset((anchor[0] + x, anchor[1] + y) for x, y in ORIENTATIONS[orientation].cells)
        rules = [
            (piece in config.pieces, "not among the pieces in play"),
            (piece in board.hands[player], "placed already"),
            (own or config.start_piece in (None, PIECE_NAMES[piece]), "the first piece must be"),
            (cells <= cells_on_board, "lie on the board"),
            (not cells & taken, "taken"),
            (not cells & beside, "an edge in common"),
            (cells in legal, "corner to corner" if own else "first piece must cover"),
        ]
        return next((phrase for is_kept, phrase in rules if not is_kept), None)

    return broken_rule


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_every_action_is_legal_or_breaks_the_rule_named(name: str, options: dict) -> None:
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
        assert position.explain(config.num_placements) == (
            None if config.voluntary_pass else "passing is not allowed; blocked players are passed over"
        )
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
    few = {"not among the pieces in play", "corner to corner"} if config.players == 1 else {"not among the pieces in play"}
    wanted = {None, "placed already", "lie on the board", "taken", "an edge in common"}
    wanted |= {"corner to corner", "first piece must cover", *(["the first piece must be"] if config.start_piece else [])}
    assert phrases >= wanted - few


def test_an_illegal_action_raises_the_rule_and_changes_nothing() -> None:
    game = tilewe_jax.make("tilewe", players=2)
    position = game.host(game.init(jax.random.key(0)))
    first = position.after(game.action_of_name("W5n-a1a1"))
    second = first.after(game.action_of_name("O1n-a1t20"))
    text = second.text()
    with pytest.raises(IllegalActionError, match=r"W5n"):
        second.after(game.action_of_name("W5n-a1c3"))
    with pytest.raises(IllegalActionError, match=r"O1n"):
        second.after(game.action_of_name("O1n-a1t20"))
    with pytest.raises(IllegalActionError, match=r"a20"):
        position.after(game.action_of_name("O1n-a1b1"))
    with pytest.raises(IllegalActionError, match=f"action {game.num_actions} is illegal for blue: passing is not allowed"):
        second.after(game.num_actions)
    with pytest.raises(IllegalActionError, match="actions are 0 to 36399"):
        second.after(-1)
    assert second.text() == text
    assert "blue to move" in position.text()
    assert position.legal_actions() == np.flatnonzero(game.legal_action_mask(game.init(jax.random.key(0)))).tolist()


@pytest.mark.parametrize(("name", "options"), [VARIANTS[0], VARIANTS[2], VARIANTS[5]], ids=str)
def test_host_and_device_go_side_by_side(name: str, options: dict) -> None:
    game = tilewe_jax.make(name, **options)
    step, legal, sample = jax.jit(game.step), jax.jit(game.legal_action_mask), jax.jit(game.sample_action)
    state = game.init(jax.random.key(0))
    position = game.host(state)
    for ply in range(game.max_steps + 1):
        for view in (position, game.host(state)):
            assert view.legal_actions() == np.flatnonzero(legal(state)).tolist()
            assert (view.current_player, view.is_terminal) == (int(game.current_player(state)), bool(game.is_terminal(state)))
            assert list(view.scores()) == game.scores(state).tolist()
            assert view.text() == game.text(state)
        if position.is_terminal:
            return
        action = int(sample(state, jax.random.key(ply)))
        state, position = step(state, jnp.int32(action)), position.after(action)
    raise AssertionError("the game did not end")
