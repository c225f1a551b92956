"""The generator for GPUs, compiled for the CPU, against the generator for CPUs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import slow
from tests.tilewe_jax.games.polyomino.reference import FEW_PIECES
from tilewe_jax import batching
from tilewe_jax.bits import kth_set_bit, popcount
from tilewe_jax.games.polyomino import movegen, movegen_conv, movegen_gpu, rules
from tilewe_jax.games.polyomino.boards import planes
from tilewe_jax.utils import loops

VARIANTS = [
    slow("duo", {"size": 7, "pieces": ("O1", "I2", "L3")}, 200),
    ("classic_2", {"size": 7, "start_piece": "L3", "pieces": FEW_PIECES}, 200),
    slow("tilewe", {"players": 3, "size": 5}, 200),
    slow("tilewe", {"size": 32, "players": 2}, 100_000),
    *(slow(name, {}, 100_000) for name in ("tilewe", "duo", "duo_official", "classic", "classic_2")),
]
"""Variants with a number of positions."""
RANKS = 3


@pytest.mark.parametrize(("name", "options", "positions"), VARIANTS, ids=str)
def test_both_generators_agree(name: str, options: dict, positions: int) -> None:
    game = tilewe_jax.make(name, **options)
    config, batch = game.config, 32 if positions < 1_000 else 1_024

    def compare(state: rules.State, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        occupied, hands, color = state.occupied, state.hands, state.current_color
        boards = planes(config, occupied, hands, color)
        packed = movegen.placements(config, *boards)
        by_word = jnp.sum(popcount(packed), axis=0)
        counts, total = by_word.astype(jnp.uint16), jnp.sum(by_word, axis=0)
        wrong = jnp.any(movegen_gpu.counts(config, occupied, hands, color) != by_word, axis=0)
        wrong = wrong | jnp.any(movegen_gpu.placements(config, *boards) != packed, axis=(0, 1))
        anchors = popcount(jnp.bitwise_or.reduce(packed, axis=0))
        wrong = wrong | jnp.any(movegen_gpu.anchors(config, occupied, hands, color) != anchors, axis=0)
        rank = (jax.random.bits(key, (RANKS, batch)) % jnp.maximum(total, 1).astype(jnp.uint32)[None]).astype(jnp.int32)
        action = movegen_gpu.nth_placement(config, counts, occupied, hands, color, rank)
        first = movegen_gpu.nth_placement(config, counts, occupied, hands, color, rank[0])
        expected = nth(packed, rank)
        word = rank[0] % len(by_word)
        in_word = movegen_gpu.placements_at(config, occupied, hands, color, word)
        for orientation, mask in in_word.items():
            wrong = wrong | (mask != jnp.take_along_axis(packed[orientation], word[None], axis=0)[0])
        turn = color, state.out, state.legal_counts
        looped, at_once = (passes(config, occupied, hands, turn) for passes in (rules.passes_by_loop, rules.passes_at_once))
        for by_loop, by_counts in zip(looped, at_once, strict=True):
            wrong = wrong | jnp.any(jnp.atleast_2d(by_loop != by_counts), axis=0)
        wrong_action = jnp.any(action != expected, axis=0) | (first != expected[0])
        return wrong | ((total > 0) & wrong_action), total > 0

    def nth(packed: jax.Array, rank: jax.Array) -> jax.Array:
        """Find placements by rank in the order of growth, from the masks."""
        order = jnp.asarray(
            list(movegen.by_orientation(config, *[jnp.zeros((40, 1), jnp.uint32)] * 2, jnp.zeros(1, jnp.uint32)))
        )
        masks = jnp.moveaxis(packed[order], 0, 1).reshape(-1, batch)  # words, then orientations
        ends = jnp.cumsum(popcount(masks), axis=0)
        place = jnp.sum(ends[None] <= rank[:, None], axis=1)
        mask = jnp.take_along_axis(masks, place, axis=0)
        before = jnp.take_along_axis(ends, place, axis=0) - popcount(mask)
        word, orientation = place // len(order), order[place % len(order)]
        return orientation * config.cells + word * 32 + kth_set_bit(mask, rank - before)

    @jax.jit
    def play_and_compare(stream, key):
        stream, _ = batching.run_stream(game, stream, 3)
        wrong, compared = compare(stream._deferred, key)
        return stream, jnp.sum(wrong), jnp.sum(compared)

    stream = batching.init_stream(game, jax.random.key(1), batch, 1 << 20)
    compared = span = 0
    while compared < positions:
        stream, wrong, more = play_and_compare(stream, jax.random.key(span))
        assert int(wrong) == 0
        compared, span = compared + int(more), span + 1


def test_convolutions_in_bfloat16_and_float32_agree() -> None:
    key_blocked, key_corners = jax.random.split(jax.random.key(5))
    blocked = jax.random.bernoulli(key_blocked, 0.3, (16, 9, 9))
    corners = jax.random.bernoulli(key_corners, 0.2, (16, 9, 9))
    fits = jax.jit(movegen_conv._fits)(blocked, corners)
    assert 0 < int(jnp.sum(fits)) < fits.size
    np.testing.assert_array_equal(jax.jit(movegen_conv._fits_on_gpu)(blocked, corners), fits)


@pytest.mark.parametrize("has_compiler", [False, True])
def test_programs_contain_the_form_for_their_platform(monkeypatch: pytest.MonkeyPatch, has_compiler: bool) -> None:
    monkeypatch.setattr(loops, "compiles_for_gpus", lambda: has_compiler)
    double = jax.jit(lambda x: loops.by_platform(lambda x: x + x, lambda x: x * 2, x))
    traced = double.trace(jnp.int32(1))
    assert "stablehlo.add" in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "stablehlo.multiply" not in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert ("mul" in str(traced.jaxpr)) == has_compiler
    assert ("stablehlo.multiply" in traced.lower(lowering_platforms=("cuda",)).as_text()) == has_compiler
    assert np.asarray(double(jnp.int32(3))) == 6
