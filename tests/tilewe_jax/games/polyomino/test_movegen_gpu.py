"""The form of the generator that GPUs run, compiled for the CPU, against the one that CPUs run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.support import slow
from tilewe_jax import batching, lanes
from tilewe_jax.bits import kth_set_bit, popcount
from tilewe_jax.games.polyomino import movegen, movegen_conv, movegen_gpu, rules
from tilewe_jax.games.polyomino.boards import planes

SETUPS = [
    slow("tilewe", {}),
    ("duo", {"voluntary_pass": True}),
    ("classic_2", {"size": 9, "start_piece": "L3", "pieces": ("O1", "I2", "L3", "T4", "W5")}),
    slow("tilewe", {"players": 3, "size": 5}),
]
MORE_SETUPS = [
    ("tilewe", {}),
    ("tilewe", {"size": 32, "players": 2}),
    ("duo", {}),
    ("duo_official", {}),
    ("classic", {}),
    ("classic_2", {}),
]
RANKS = 3


def disagreements(name: str, options: dict, batch: int, spans: int) -> tuple[int, int]:
    """Over random games: how many positions were compared, and in how many any of the views differ."""
    game = tilewe_jax.make(name, **options)
    config = game.config

    def compare(state: rules.State, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        occupied, hands, color = state.occupied, state.hands, state.current_color
        boards = planes(config, occupied, hands, color)
        packed = movegen.placements(config, *boards)
        by_word = jnp.sum(popcount(packed), axis=0)
        total = jnp.sum(by_word, axis=0)
        wrong = jnp.any(movegen_gpu.counts(config, occupied, hands, color) != by_word, axis=0)
        wrong = wrong | jnp.any(movegen_gpu.placements(config, *boards) != packed, axis=(0, 1))
        rank = (jax.random.bits(key, (RANKS, batch)) % jnp.maximum(total, 1).astype(jnp.uint32)[None]).astype(jnp.int32)
        action = movegen_gpu.nth_placement(config, list(by_word), occupied, hands, color, rank)
        first = movegen_gpu.nth_placement(config, list(by_word), occupied, hands, color, rank[0])
        expected = nth(packed, rank)
        turn = color, state.out, state.legal_counts
        looped, at_once = (passes(config, occupied, hands, turn) for passes in (rules.passes_by_loop, rules.passes_at_once))
        for by_loop, by_counts in zip(looped, at_once, strict=True):
            wrong = wrong | jnp.any(jnp.atleast_2d(by_loop != by_counts), axis=0)
        wrong_action = jnp.any(action != expected, axis=0) | (first != expected[0])
        return wrong | ((total > 0) & wrong_action), total > 0

    def nth(packed: jax.Array, rank: jax.Array) -> jax.Array:
        """The placement of a rank, by the order of growth, from the masks."""
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
    wrong = compared = 0
    for span in range(spans):
        stream, more_wrong, more_compared = play_and_compare(stream, jax.random.key(span))
        wrong, compared = wrong + int(more_wrong), compared + int(more_compared)
    return compared, wrong


@pytest.mark.parametrize(("name", "options"), SETUPS, ids=str)
def test_views_agree_with_those_for_cpus(name: str, options: dict) -> None:
    compared, wrong = disagreements(name, options, batch=32, spans=12)
    assert wrong == 0
    assert compared >= 200


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), MORE_SETUPS, ids=str)
def test_views_agree_with_those_for_cpus_on_many_positions(name: str, options: dict) -> None:
    compared, wrong = disagreements(name, options, batch=1024, spans=120)
    assert wrong == 0
    assert compared >= 100_000


def test_one_convolution_in_bfloat16_finds_what_two_in_float32_do() -> None:
    key_blocked, key_corners = jax.random.split(jax.random.key(5))
    blocked = jax.random.bernoulli(key_blocked, 0.3, (16, 9, 9))
    corners = jax.random.bernoulli(key_corners, 0.2, (16, 9, 9))
    fits = jax.jit(movegen_conv._fits)(blocked, corners)
    assert 0 < int(jnp.sum(fits)) < fits.size
    np.testing.assert_array_equal(jax.jit(movegen_conv._fits_on_gpu)(blocked, corners), fits)


def test_programs_for_a_gpu_have_its_form_and_others_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "compiles_for_gpus", lambda: True)
    double = jax.jit(lambda x: lanes.by_platform(lambda x: x + x, lambda x: x * 2, x))
    traced = double.trace(jnp.int32(1))
    assert "stablehlo.add" in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "stablehlo.multiply" not in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "stablehlo.multiply" in traced.lower(lowering_platforms=("cuda",)).as_text()
    assert np.asarray(double(jnp.int32(3))) == 6


def test_without_a_compiler_for_gpus_one_form_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "compiles_for_gpus", lambda: False)
    text = str(jax.make_jaxpr(lambda x: lanes.by_platform(lambda x: x + x, lambda x: x * 2, x))(jnp.int32(1)))
    assert "add" in text
    assert "mul" not in text
