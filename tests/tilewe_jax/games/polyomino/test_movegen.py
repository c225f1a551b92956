"""The generators of legal placements against each other and against the reference implementation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import batched, rows, slow
from tests.tilewe_jax.games.polyomino.reference import FEW_PIECES, SMALL, Board
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES

VARIANTS = [
    ("tilewe", {"players": 3, "size": 6, "pieces": FEW_PIECES}, 1_000),
    slow("tilewe", {"players": 3, "size": 5}, 2_000),
    ("duo", {"size": 3, "pieces": ("O1", "I2", "L3")}, 500),
    ("duo", {"size": 9, "pieces": ("X5", "O4")}, 100),  # no placement starts in the last word
    slow("tilewe", {"size": 32}, 5_000),
    slow("classic", {"size": 11}, 5_000),
    *(slow(name, {}, 1_000_000) for name in ("tilewe", "duo", "duo_official", "classic")),
]
"""Variants with a number of positions."""


@pytest.mark.optimized
@pytest.mark.parametrize(("name", "options", "positions"), VARIANTS, ids=str)
def test_convolution_and_growth_agree(name: str, options: dict, positions: int) -> None:
    packed, dense = (tilewe_jax.make(name, movegen=movegen, **options) for movegen in ("bitboard", "conv"))
    batch = 128

    def compare(state, action):
        conv, grown = dense.placements(state), packed.placements(state)
        counts = jnp.sum(jax.lax.population_count(conv), axis=0).astype(jnp.uint16)
        cells = jnp.arange(packed.config.cells, dtype=jnp.uint32)
        inside = conv[jnp.maximum(action, 0) // packed.config.cells, (action % packed.config.cells) // 32]
        member = (inside >> (cells[action % packed.config.cells] % 32)) & 1 != 0
        anchors = jax.lax.population_count(jnp.bitwise_or.reduce(conv, axis=0)).astype(jnp.uint16)
        in_playouts = [game.apply_in_playout(state, jnp.int32(-1)).legal_counts for game in (packed, dense)]
        wrong_counts = jnp.any(counts != state.legal_counts) | jnp.any(jnp.stack(in_playouts) != anchors[None])
        return jnp.any(conv != grown) | wrong_counts | ((action >= 0) & ~member)

    def play(carry, key):
        state, wrong, compared = carry
        action = jax.vmap(packed.sample_action)(state, jax.random.split(key, batch))
        live = action >= 0
        wrong = wrong + jnp.sum(jax.vmap(compare)(state, action), dtype=jnp.int32)
        return (jax.vmap(packed.apply)(state, action), wrong, compared + jnp.sum(live, dtype=jnp.int32)), None

    @jax.jit
    def games(key):
        start = jax.vmap(packed.init)(jax.random.split(key, batch))
        keys = jax.random.split(key, packed.max_steps + 1)
        (_, wrong, compared), _ = jax.lax.scan(play, (start, jnp.int32(0), jnp.int32(0)), keys)
        return wrong, compared

    wrong = compared = index = 0
    while compared < positions:
        more_wrong, more_compared = games(jax.random.key(index))
        wrong, compared, index = wrong + int(more_wrong), compared + int(more_compared), index + 1
    assert wrong == 0


@pytest.mark.parametrize(
    ("name", "options", "batch"),
    [
        (*SMALL, 4),
        ("duo", {"voluntary_pass": True, "size": 7, "pieces": FEW_PIECES}, 4),
        slow("tilewe", {"players": 3, "size": 8}, 8),
        slow("duo_official", {"pieces": FEW_PIECES}, 12),
        slow("classic", {}, 2),
        slow("classic_2", {"size": 9}, 8),
        slow("tilewe", {"size": 32, "pieces": ("I5", "V5", "O1", "Z5")}, 2),
    ],
    ids=str,
)
def test_whole_games_agree_with_the_reference(name: str, options: dict, batch: int) -> None:
    game = tilewe_jax.make(name, **options)
    play = batched(game)
    key = jax.random.key(7)
    state = play.init(jax.random.split(key, batch))
    boards = [Board(game.config) for _ in range(batch)]
    for step in range(game.max_steps + 1):
        masks = np.asarray(play.legal_action_mask(state))
        for lane, board in enumerate(boards):
            compare(game, board, rows(state, lane), masks[lane])
        action = play.sample_action(state, jax.random.split(jax.random.fold_in(key, step), batch))
        for board, chosen in zip(boards, np.asarray(action).tolist(), strict=True):
            if chosen == game.config.num_placements:
                board.give_up()
            elif chosen >= 0:
                cells = frozenset(game.cells_of(chosen))
                board.place(PIECE_NAMES.index(game.piece_of(chosen)), cells)
        state = play.step(state, action)
    assert bool(jnp.all(play.is_terminal(state)))


def compare(game: PolyominoGame, board: Board, state, mask: np.ndarray) -> None:
    over = bool(np.all(state.out))
    assert over == (len(board.out) == game.config.colors)
    assert np.asarray(game.scores(state)).tolist() == board.scores()
    if over:
        assert not mask.any()
        return
    assert int(state.current_color) == board.color
    placements = board.placements(board.color)
    mine = {frozenset(game.cells_of(action)) for action in np.flatnonzero(mask[: game.config.num_placements]).tolist()}
    assert mine == placements
    assert bool(mask[-1]) or not game.config.voluntary_pass


@pytest.mark.parametrize("movegen", ["bitboard", "conv"])
def test_playouts_place_the_largest_pieces_near_a_random_placement(movegen: str) -> None:
    game = tilewe_jax.make("tilewe", movegen=movegen, players=2, size=7, pieces=("O1", "I2", "L3", "I3", "T4", "V5"))
    draw = jax.jit(jax.vmap(jax.vmap(game.playout_action, in_axes=(None, 0)), in_axes=(0, None)))
    sizes = np.repeat([len(orientation.cells) for orientation in ORIENTATIONS], game.config.cells)
    anchor_words = np.arange(game.config.num_placements) % game.config.cells // 32
    state = batched(game).init(jax.random.split(jax.random.key(0), 4))
    while not bool(jnp.all(batched(game).is_terminal(state))):
        actions = np.asarray(draw(state, jax.random.split(jax.random.key(1), 200)))
        for mask, drawn in zip(np.asarray(batched(game).legal_action_mask(state)), actions, strict=True):
            placements = np.flatnonzero(mask[: len(sizes)])
            by_word = [placements[anchor_words[placements] == word] for word in np.unique(anchor_words[placements])]
            largest = [near[sizes[near] == sizes[near].max()] for near in by_word]
            assert set(drawn.tolist()) <= set(np.concatenate([*largest, [-1] * (not by_word)]).tolist())
            assert len(set(drawn.tolist())) >= min(8, sum(map(len, largest)))
        state = batched(game).step(state, jnp.asarray(actions[:, 0]))


def test_convolution_samples_several_legal_actions() -> None:
    game = tilewe_jax.make("tilewe", movegen="conv", players=2, size=5, pieces=("O1", "I2", "L3"))
    sample = jax.jit(jax.vmap(partial(game.sample_actions, k=7)))
    state = batched(game).init(jax.random.split(jax.random.key(0), 8))
    for ply in range(4):
        actions = sample(state, jax.random.split(jax.random.key(ply), 8))
        for mask, chosen in zip(np.asarray(batched(game).legal_action_mask(state)), np.asarray(actions), strict=True):
            legal = chosen[chosen >= 0]
            assert len(set(legal.tolist())) == len(legal) == min(7, mask.sum())
            assert mask[legal].all()
        state = batched(game).step(state, actions[:, 0])
