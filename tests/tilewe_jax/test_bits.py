import random
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewe_jax import bits, lanes

words = st.integers(0, 2**32 - 1)
FORMS = (bits._sum_of_popcounts, bits._popcount_of_column_sums)
"""The forms of ``bits.popcount_sum`` for CPUs and GPUs."""


@settings(max_examples=50, deadline=None)
@given(st.lists(words, min_size=40, max_size=40))
def test_column_sums_count_every_column(rows: list[int]) -> None:
    digits, totals = _column_sums(np.array(rows, np.uint32))
    for column in range(32):
        assert sum((int(digit) >> column & 1) << i for i, digit in enumerate(digits)) == sum(row >> column & 1 for row in rows)
    assert totals == [sum(row.bit_count() for row in rows)] * 2


@jax.jit
def _column_sums(rows: jax.Array) -> tuple[list[jax.Array], list[jax.Array]]:
    return bits.column_sums(list(rows)), [form(list(rows)) for form in FORMS]


@pytest.mark.parametrize("form", [*FORMS, bits.popcount_sum])
def test_popcount_sums_of_few_rows(form: Callable[[list[jax.Array]], jax.Array]) -> None:
    for count in range(1, 6):
        rows = [jnp.uint32(0xFFFF0000 | i) for i in range(count)]
        assert int(form(rows)) == sum(int(row).bit_count() for row in rows)


def test_kth_set_bit_finds_every_bit() -> None:
    word = np.array([*np.random.default_rng(0).integers(0, 2**32, 20), 1, 2**31, 2**32 - 1], np.uint32)
    indices = np.asarray(bits.kth_set_bit(jnp.asarray(word)[:, None].repeat(32, 1), jnp.arange(32)[None].repeat(len(word), 0)))
    for value, row in zip(word.tolist(), indices.tolist(), strict=True):
        assert row[: value.bit_count()] == [i for i in range(32) if value >> i & 1]


def test_words_are_packed_and_unpacked_in_order() -> None:
    flags = np.isin(np.arange(40), [0, 31, 32, 33])
    packed = bits.pack_words(jnp.asarray(flags))
    assert packed.tolist() == [0x80000001, 0x3]
    np.testing.assert_array_equal(bits.unpack_words(packed, 40), flags)


@settings(max_examples=200, deadline=None)
@given(words, st.integers(1, 2**16))
def test_uniform_below_scales_the_word(word: int, bound: int) -> None:
    assert int(_uniform_below(np.uint32(word), np.uint32(bound))) == word * bound >> 32


_uniform_below = jax.jit(bits.uniform_below)
_systematic_sample = jax.jit(bits.systematic_sample, static_argnums=2)


@settings(max_examples=100, deadline=None)
@given(total=st.integers(0, 5000), count=st.sampled_from([1, 64]), word=words)
def test_sampled_numbers_are_different_and_in_range(total: int, count: int, word: int) -> None:
    numbers = np.asarray(_systematic_sample(np.uint32(word), np.int32(total), count))
    drawn = numbers[numbers >= 0].tolist()
    assert len(drawn) == len(set(drawn)) == min(total, count)
    assert all(number < total for number in drawn)
    assert total > count or drawn == list(range(total))


@pytest.mark.parametrize(("total", "count"), [(7, 3), (9, 8)])
def test_numbers_are_equally_likely(total: int, count: int) -> None:
    starts = ((np.arange(total) * 2**32 + 2**31) // total).astype(np.uint32)
    numbers = jax.vmap(lambda word: bits.systematic_sample(word, jnp.int32(total), count))(jnp.asarray(starts))
    assert (np.bincount(np.asarray(numbers).ravel(), minlength=total) == count).all()


def test_some_set_returns_distinct_set_flags() -> None:
    rng = np.random.default_rng(1)
    find = jax.jit(lanes.some_set, static_argnums=1)
    for size, count in ((1, 7), (32, 1), (33, 64), (200, 7)):
        for fraction in (0.0, 0.1, 1.0):
            flags = rng.random(size) < fraction
            indices = np.asarray(find(jnp.asarray(flags), count))
            drawn = indices[indices < size]
            assert len(drawn) == len(set(drawn.tolist())) == min(count, flags.sum())
            assert flags[drawn].all()
            assert (indices[len(drawn) :] == size).all() or len(drawn) == count


def test_while_any_runs_each_lane_independently() -> None:
    rounds = jnp.array([0, 3, 1, 7, 0, 20], jnp.int32)

    @lanes.per_lane
    def count_down(step: jax.Array, left: jax.Array) -> jax.Array:
        left, done = lanes.while_any(
            lambda carry: carry[0] > 0,
            lambda step, carry: (carry[0] - step, carry[1] + 1),
            step,
            (left, jnp.zeros_like(left)),
        )
        return left * 100 + done

    ones = jnp.ones(6, jnp.int32)
    assert jax.vmap(count_down)(ones, rounds).tolist() == rounds.tolist()
    assert [int(count_down(jnp.int32(1), r)) for r in rounds[:2]] == rounds[:2].tolist()
    grid = jax.jit(jax.vmap(jax.vmap(count_down, in_axes=(None, 0))))(ones[:2], rounds.reshape(2, 3))
    assert grid.ravel().tolist() == rounds.tolist()


def test_move_bits_moves_every_bit() -> None:
    rng = np.random.default_rng(1)
    places = [(int(source), to) for to, source in enumerate(rng.integers(0, 32, 32)) if to % 3]
    word = rng.integers(0, 2**32, 20, np.uint32)
    for value, moved in zip(word.tolist(), jax.jit(lambda word: bits.move_bits(word, places))(word).tolist(), strict=True):
        assert moved == sum((value >> source & 1) << to for source, to in places)


def test_random_words_of_neighbouring_keys_are_uniform() -> None:
    """Bits of the words of keys 0, 1, 2, ..., and of subkeys, are balanced and uncorrelated."""
    numbers = jnp.arange(8192, dtype=jnp.int32)
    keys = jax.vmap(jax.random.key)(numbers)
    subkeys = jax.vmap(partial(lanes.subkey, keys[0]))(numbers)
    of_subkeys = jax.vmap(lambda key: lanes.random_words(lanes.subkey(key, 1), 2))(subkeys)
    for words in (
        jax.vmap(lambda key: lanes.random_words(key, 2))(keys),
        lanes.random_words(keys[0], 8192),
        jax.random.key_data(subkeys)[:, 0],
        jax.random.key_data(subkeys)[:, 1],
        of_subkeys[:, 0],
    ):
        flags = np.unpackbits(np.asarray(words, np.uint32).reshape(-1, 1).view(np.uint8), axis=1).astype(float)
        error = 0.5 / np.sqrt(len(flags))
        assert np.all(np.abs(flags.mean(axis=0) - 0.5) < 4.5 * error)
        correlations = np.corrcoef(flags.T) - np.eye(32)
        assert np.all(np.abs(correlations) < 5 / np.sqrt(len(flags)))
        following = np.mean(flags[1:] == flags[:-1], axis=0)
        assert np.all(np.abs(following - 0.5) < 5 * error)


def test_pretty_accepts_all_types_of_words() -> None:
    """Rows run upwards or downwards; bits between rows and beyond the board are not shown."""
    board = jnp.array([0x80000001, 0xFFFFFFF3], jnp.uint32)  # bits 0, 31, 32, 33 and those from 36 on
    expected = bits.pretty(board, 6, 6)
    lines = expected.split("\n")
    assert [(x, y) for y in range(6) for x in range(6) if lines[5 - y][x] == "#"] == [(0, 0), (1, 5), (2, 5), (3, 5)]
    assert set(expected) == {"#", ".", "\n"}
    assert bits.pretty(np.asarray(board), 6, 6, origin="upper").split("\n") == lines[::-1]
    assert bits.pretty([0x80000001, -13], 6, 6) == bits.pretty(tuple(board), 6, 6) == expected
    assert bits.pretty([0b1100_0110_1101], 3, 3, stride=4) == "..#\n.##\n#.#"


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 9), st.randoms())
def test_pretty_shows_every_cell_of_random_boards(width: int, height: int, gap: int, rng: random.Random) -> None:
    flags = np.array([[rng.random() < 0.4 for _ in range(width + gap)] for _ in range(height)])
    packed = np.packbits(np.pad(flags.ravel(), (0, -flags.size % 32)), bitorder="little").view(np.uint32)
    text = bits.pretty(packed, width, height, width + gap, origin="upper")
    assert [[mark == "#" for mark in line] for line in text.split("\n")] == flags[:, :width].tolist()


@pytest.mark.parametrize(
    ("words", "arguments", "message"),
    [
        (np.zeros((2, 3), np.uint32), {"width": 5, "height": 5}, r"\(2, 3\)"),
        ([0], {"width": 6, "height": 6}, "1 words"),
        ([0], {"width": 5, "height": 5, "stride": 4}, "stride"),
        ([0], {"width": 5, "height": 5, "origin": "left"}, "origin"),
    ],
)
def test_pretty_rejects_invalid_boards(words: object, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bits.pretty(words, **arguments)


def test_functions_of_lanes_are_traced_once_for_the_expected_number_of_lanes() -> None:
    traced: list[int] = []

    @lanes.per_lane
    def total(numbers: jax.Array) -> jax.Array:
        traced.append(numbers.shape[-1])
        return jnp.sum(numbers, axis=0, dtype=jnp.int32)

    def loop(numbers: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 2, lambda _, sums: sums + total(numbers), jnp.int32(0))

    numbers = jnp.arange(12, dtype=jnp.int32).reshape(4, 3)
    assert jax.jit(lanes.expecting_lanes(4, jax.vmap(loop)))(numbers).tolist() == [6, 24, 42, 60]
    assert traced == [4]
    # Without vmap, and with another number of lanes, the results are the same.
    assert jax.jit(lanes.expecting_lanes(5, loop))(numbers[1]) == 24
    assert jax.jit(lanes.expecting_lanes(5, jax.vmap(loop)))(numbers[:2]).tolist() == [6, 24]
    assert set(traced) == {4, 5, 1, 2}
