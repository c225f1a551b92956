import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewe_jax import bits, lanes

words = st.integers(0, 2**32 - 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(words, min_size=40, max_size=40))
def test_column_sums_count_every_column(rows: list[int]) -> None:
    boards = [jnp.uint32(row) for row in rows]
    digits = bits.column_sums(boards)
    for column in range(32):
        total = sum((int(digit) >> column & 1) << i for i, digit in enumerate(digits))
        assert total == sum(row >> column & 1 for row in rows)
    assert int(bits.popcount_sum(boards)) == sum(row.bit_count() for row in rows)


def test_column_sums_of_few_rows() -> None:
    for count in range(1, 9):
        rows = [jnp.uint32(0xFFFF0000 | i) for i in range(count)]
        assert int(bits.popcount_sum(rows)) == sum(int(row).bit_count() for row in rows)


def test_kth_set_bit_finds_every_bit() -> None:
    rng = np.random.default_rng(0)
    for word in [*rng.integers(0, 2**32, 20), 1, 2**31, 2**32 - 1]:
        set_bits = [i for i in range(32) if int(word) >> i & 1]
        indices = bits.kth_set_bit(jnp.full(len(set_bits), word, jnp.uint32), jnp.arange(len(set_bits)))
        assert indices.tolist() == set_bits


def test_unpack_words_inverts_packing() -> None:
    board = np.array([0x80000001, 0x3], np.uint32)
    flags = np.asarray(bits.unpack_words(jnp.asarray(board), 40))
    assert np.flatnonzero(flags).tolist() == [0, 31, 32, 33]


@settings(max_examples=200, deadline=None)
@given(words, st.integers(1, 2**16))
def test_uniform_below_is_the_scaled_number(random: int, bound: int) -> None:
    assert int(bits.uniform_below(jnp.uint32(random), jnp.uint32(bound))) == random * bound >> 32


_systematic_sample = jax.jit(bits.systematic_sample, static_argnums=2)


@settings(max_examples=200, deadline=None)
@given(total=st.integers(0, 5000), count=st.sampled_from([1, 5, 64]), word=words)
def test_sampled_numbers_are_different_and_in_range(total: int, count: int, word: int) -> None:
    numbers = np.asarray(_systematic_sample(np.uint32(word), np.int32(total), count))
    real = numbers[numbers >= 0]
    assert len(real) == len(set(real.tolist())) == min(total, count)
    assert ((real >= 0) & (real < total)).all()
    if total <= count:
        assert real.tolist() == list(range(total))


@pytest.mark.parametrize(("total", "count"), [(7, 3), (10, 4), (9, 8)])
def test_each_number_is_as_likely(total: int, count: int) -> None:
    starts = ((np.arange(total) * 2**32 + 2**31) // total).astype(np.uint32)
    numbers = jax.vmap(lambda word: bits.systematic_sample(word, jnp.int32(total), count))(jnp.asarray(starts))
    assert (np.bincount(np.asarray(numbers).ravel(), minlength=total) == count).all()


def test_some_set_gives_distinct_set_flags() -> None:
    rng = np.random.default_rng(1)
    find = jax.jit(lanes.some_set, static_argnums=1)
    for size in (1, 5, 32, 33, 200):
        for fraction in (0.0, 0.1, 1.0):
            for count in (1, 7, 64):
                flags = rng.random(size) < fraction
                indices = np.asarray(find(jnp.asarray(flags), count))
                real = indices[indices < size]
                assert len(real) == len(set(real.tolist())) == min(count, flags.sum())
                assert flags[real].all()
                assert (indices[len(real) :] == size).all() or len(real) == count


def test_while_any_goes_on_in_each_lane_for_itself() -> None:
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
    assert [int(count_down(jnp.int32(1), r)) for r in rounds] == rounds.tolist()
    grid = jax.jit(jax.vmap(jax.vmap(count_down, in_axes=(None, 0))))(ones[:2], rounds.reshape(2, 3))
    assert grid.ravel().tolist() == rounds.tolist()


def test_moved_bits_stand_where_they_belong() -> None:
    rng = np.random.default_rng(1)
    places = [(int(source), to) for to, source in enumerate(rng.integers(0, 32, 32)) if to % 3]
    for word in rng.integers(0, 2**32, 20):
        moved = int(bits.move_bits(jnp.uint32(word), places))
        assert moved == sum((int(word) >> source & 1) << to for source, to in places)


def test_random_words_of_neighbouring_keys_are_uniform() -> None:
    """Keys 0, 1, 2, ... as people make them: every bit is set half of the time, and no two are alike more often than chance."""
    keys = jax.vmap(jax.random.key)(jnp.arange(8192))
    for words in (jax.vmap(lambda key: lanes.random_words(key, 2))(keys), lanes.random_words(keys[0], 8192)):
        flags = np.unpackbits(np.asarray(words, np.uint32).reshape(-1, 1).view(np.uint8), axis=1).astype(float)
        error = 0.5 / np.sqrt(len(flags))
        assert np.all(np.abs(flags.mean(axis=0) - 0.5) < 4.5 * error)
        correlations = np.corrcoef(flags.T) - np.eye(32)
        assert np.all(np.abs(correlations) < 5 / np.sqrt(len(flags)))
        following = np.mean(flags[1:] == flags[:-1], axis=0)
        assert np.all(np.abs(following - 0.5) < 5 * error)


def test_pretty_shows_the_cells_of_a_board() -> None:
    """Every way to hold words; rows upwards and downwards; bits between rows and behind the board are not shown."""
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
def test_pretty_shows_every_cell(width: int, height: int, gap: int, rng: random.Random) -> None:
    flags = np.array([[rng.random() < 0.4 for _ in range(width + gap)] for _ in range(height)])
    text = bits.pretty(bits.pack_words(jnp.asarray(flags.ravel())), width, height, width + gap, origin="upper")
    assert [[mark == "#" for mark in line] for line in text.split("\n")] == flags[:, :width].tolist()


@pytest.mark.parametrize(
    ("words", "arguments", "message"),
    [
        (np.zeros((2, 3), np.uint32), {"width": 5, "height": 5}, r"one board, of shape \(words,\), not of \(2, 3\)"),
        ([0], {"width": 6, "height": 6}, "6 rows of 6 cells, 6 bits apart, do not fit 1 words"),
        ([0], {"width": 5, "height": 5, "stride": 4}, "5 x 5 cells cannot have 4 bits a row"),
        ([0], {"width": 5, "height": 5, "origin": "left"}, "origin must be"),
    ],
)
def test_pretty_refuses_what_is_no_board(words: object, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bits.pretty(words, **arguments)
