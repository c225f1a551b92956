"""Programs in files: found by everything that determines them, loaded without tracing, and replaced if damaged."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tilewe_jax import agents, arena
from tilewe_jax.utils import programs
from tilewe_jax.utils.programs import Kept, Program, compile_all

SMALL = tilewe_jax.make("santorini", size=3)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the programs. The cache of JAX is empty."""
    monkeypatch.setenv(programs.FOLDER, str(tmp_path / "programs"))
    monkeypatch.setattr(programs, "_is_one_cpu", lambda: True)
    with own_cache(tmp_path / "jax"):
        yield tmp_path / "programs"


@contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """Use another folder for the cache of JAX, which keeps small programs, too."""
    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = [jax.config.values[name] for name in names]

    def use(values: Iterable[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            jax.config.update(name, value)
        compilation_cache.reset_cache()

    use((str(folder), 0.0))
    try:
        yield
    finally:
        use(before)


def count(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0


traces: list[Any] = []


def program(identity: str | None = "double") -> Program:
    """A program of a new function, so that JAX traces it again."""

    def double(pair: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
        traces.append(pair)
        return {"first": 2 * pair[0], "second": pair[1]}

    pair = jax.ShapeDtypeStruct((3,), jnp.int32), jax.eval_shape(lambda: jax.random.key(0))
    return Program("doubling", double, (pair,), (0,), identity)


def test_a_program_is_loaded_without_tracing(files: Path) -> None:
    before = len(traces)
    for _ in range(3):
        (compiled,) = compile_all([program()])
        first, key = jnp.arange(3, dtype=jnp.int32), jax.random.key(5)
        out = compiled((first, key))
        assert out["first"].tolist() == [0, 2, 4]
        assert jax.random.key_data(out["second"]).tolist() == jax.random.key_data(jax.random.key(5)).tolist()
        assert first.is_deleted(), "the argument is not donated"
    assert (len(traces) - before, count(files)) == (1, 1)


def test_a_damaged_file_is_replaced(files: Path, tmp_path: Path) -> None:
    compile_all([program()])
    (path,) = files.iterdir()
    size = path.stat().st_size
    for index, content in enumerate((b"", path.read_bytes()[:200], b"other")):
        path.write_bytes(content)
        with own_cache(tmp_path / str(index)):
            (compiled,) = compile_all([program()])
        assert compiled((jnp.ones(3, jnp.int32), jax.random.key(0)))["first"].tolist() == [2, 2, 2]
        assert path.stat().st_size > size - 100


def test_the_key_contains_everything_that_determines_a_program(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = jax.ShapeDtypeStruct((4,), jnp.int32), jnp.int32(0)
    others = [replace(program(), title="halving"), replace(program(), donated=()), replace(program(), arguments=(pair,))]
    names = {programs._file(each) for each in (program(), program(), program("other"), *others)}
    assert len(names) == 5
    assert programs._file(program(None)) is None
    for name, value in (("XLA_FLAGS", "--none"), ("JAX_ENABLE_X64", "1")):
        programs._environment.cache_clear()
        monkeypatch.setenv(name, value)
        names.add(programs._file(program()))
    programs._environment.cache_clear()
    assert len(names) == 7


def test_a_program_from_the_cache_of_jax_is_not_kept(files: Path) -> None:
    """XLA would write it without some of its functions."""
    for identity in ("double", "again"):
        (compiled,) = compile_all([program(identity)])
        assert compiled((jnp.ones(3, jnp.int32), jax.random.key(0)))["first"].tolist() == [2, 2, 2]
        assert count(files) == 1


def test_without_a_folder_nothing_is_kept(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_all([program(None)])
    monkeypatch.setenv(programs.FOLDER, "")
    compile_all([program()])
    assert count(files) == 0


def test_the_oldest_files_are_deleted(files: Path) -> None:
    files.mkdir()
    for index in range(4):
        path = files / str(index)
        path.write_bytes(bytes(10))
        programs.os.utime(path, (index, index))
    programs._make_space(files, 25)
    assert sorted(path.name for path in files.iterdir()) == ["2", "3"]


def test_a_kept_function(files: Path) -> None:
    for identity, traced, kept in (("plus", 2, 2), ("plus", 0, 2), (None, 2, 2)):
        calls: list[Any] = []

        def plus(number: jax.Array, more: jax.Array, calls: list[Any] = calls) -> jax.Array:
            calls.append(number)
            return number + more

        function = Kept("the sum", plus, lambda _, identity=identity: identity)
        assert [int(function(jnp.int32(1), np.int32(more))) for more in (2, 3)] == [3, 4]
        assert function(jnp.ones(2), jnp.ones(2)).tolist() == [2, 2]
        assert (len(calls), count(files)) == (traced, kept)


def test_identities_of_agents() -> None:
    texts = "puct:num_simulations=8", "puct:num_simulations=9", "gumbel:num_simulations=8", "random"
    named = [agents.agent(text, SMALL).identity for text in texts]
    assert None not in named
    assert len(set(named)) == len(texts)
    assert named[0] == agents.agent(texts[0], SMALL).identity
    assert named[0] != agents.agent(texts[0], tilewe_jax.make("santorini", size=4)).identity
    assert agents.agent("best", tilewe_jax.make("santorini")).identity is not None


def test_third_party_code_has_no_identity() -> None:
    def network(observation: jax.Array) -> Any:
        return jnp.zeros(SMALL.num_actions), jnp.full(2, 0.5)

    assert agents.agent("puct:num_simulations=8", TicTacToe()).identity is None
    assert agents.agent(SMALL.sample_action, SMALL).identity is None
    assert agents.agent("puct:num_simulations=8,network=own", SMALL, network=network).identity is None


@pytest.mark.parametrize(("on_host", "number", "with_opening"), [(False, 7, 8), (True, 5, 5)])
def test_a_match_loads_its_programs(
    files: Path, monkeypatch: pytest.MonkeyPatch, on_host: bool, number: int, with_opening: int
) -> None:
    def games(opening: int = 0) -> list[tuple[int, ...]]:
        players = [agents.agent(text, SMALL) for text in ("puct:num_simulations=2,num_candidates=4", "random")]
        return [record.actions for record in arena.play_match(SMALL, players, 3, 8, 0, keep=True, opening=opening).records]

    monkeypatch.setattr(arena.match, "MAX_HOST_GAMES", 3 if on_host else 0)
    first = games()
    assert count(files) == number
    with monkeypatch.context() as patched:
        patched.setattr(jax, "jit", None)
        assert games() == first
    assert games(1) != first
    assert count(files) == with_opening, "the policies on the device depend on the opening"
