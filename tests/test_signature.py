"""Behaviour is unchanged.

After an intended change, ``tilewe-jax bench signature --json > tilewe_jax/cli/benchmarks/signature.json`` updates the
table, and the commit message says why.
"""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax.cli.benchmarks import signature

TABLE = json.loads(signature.TABLE.read_text())
FAST = {(name, "random") for name in ("tilewe_2_players", "duo_official", "santorini")}
"""Cells that take less than about 10 seconds with an empty compilation cache."""


def _cells() -> list[Any]:
    every = [(name, column) for name in signature.SETUPS for column in signature.columns_of(name)]
    return [pytest.param(*cell, marks=() if cell in FAST else pytest.mark.slow) for cell in every]


@pytest.mark.parametrize(("name", "column"), _cells())
def test_behaviour_is_unchanged(name: str, column: str) -> None:
    assert signature.signature(name, [column]) == {column: TABLE[name][column]}


def test_the_table_has_all_games_and_columns() -> None:
    columns = {name: list(signature.columns_of(name)) for name in signature.SETUPS}
    assert {name: list(row) for name, row in TABLE.items()} == columns
    assert {setup.game for setup in signature.SETUPS.values()} == set(tilewe_jax.available_games())
    hashes = [value for row in TABLE.values() for value in row.values()]
    assert len(set(hashes)) == len(hashes)


def test_digest_depends_only_on_values_dtypes_and_shapes() -> None:
    first = {"a": np.arange(6, dtype=np.int32), "b": np.array([True, False])}
    assert signature.digest(first) == "03267e04829d"
    renamed = {"z": jnp.arange(6, dtype=jnp.int32), "c": jnp.array([True, False]), "d": jnp.float32(0.5)}
    assert signature.digest(renamed) == signature.digest(first)
    others = [
        {**first, "a": np.array([0, 1, 2, 3, 5, 4], np.int32)},
        {**first, "a": np.arange(6, dtype=np.uint32)},
        {**first, "a": np.arange(6, dtype=np.int32).reshape(2, 3)},
        {"a": first["a"]},
    ]
    assert len({signature.digest(tree) for tree in [first, *others]}) == 1 + len(others)


def test_positions_run_from_the_start_to_near_the_end() -> None:
    game = tilewe_jax.make("santorini")
    states, lengths = signature._positions(game), signature._random_games(game).rollout.lengths.tolist()
    over = np.asarray(jax.vmap(game.is_terminal)(states))
    assert not over.any()
    levels = np.asarray(jax.vmap(game.board_of)(states))[:, 1].sum(axis=(1, 2))
    assert levels.tolist() == [lengths[i] * i // signature.POSITIONS for i in range(signature.POSITIONS)]


def test_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    names = []

    def known(name: str) -> dict[str, str]:
        names.append(name)
        return TABLE[name]

    monkeypatch.setattr(signature, "signature", known)
    code, out, err = run(capsys, "bench", "--signature", "--json")
    assert (code, err) == (0, "")
    assert out == signature.TABLE.read_text()
    assert names == list(signature.SETUPS)
    code, out, err = run(capsys, "bench", "--signature", "--game", "tilewe")
    assert (code, err) == (0, "")
    assert all(value in out for name in ("tilewe", "tilewe_2_players") for value in TABLE[name].values())
    assert TABLE["duo"]["random"] not in out
    for arguments, message in (
        (["--game", "chess"], "'chess'"),
        (["--players", "2"], "--players"),
    ):
        code, out, err = run(capsys, "bench", "--signature", *arguments)
        assert (code, out) == (2, "")
        assert message in err
