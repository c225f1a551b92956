"""The memory that trees take, and the check before they are allocated."""

import jax
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tilewe_jax.search import PuctRule, Search, SearchSettings, bytes_per_node, uniform_evaluator
from tilewe_jax.search.memory import check_memory


def test_memory_is_checked_before_allocation() -> None:
    game = tilewe_jax.make("tilewe")
    check_memory(game, 65, 64, 100)
    with pytest.raises(MemoryError, match=r"1,000,000,000"):
        check_memory(game, 65, 64, 10**9)


def test_bytes_per_node() -> None:
    assert bytes_per_node(tilewe_jax.make("tilewe"), 64) <= 1500
    game = TicTacToe()
    search = Search(game, uniform_evaluator(game), PuctRule(), SearchSettings(4, 5))
    tree = jax.eval_shape(search, game.init(None), jax.random.key(0)).tree
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)) == 5 * bytes_per_node(game, 5) + 4
