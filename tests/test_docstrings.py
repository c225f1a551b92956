"""The examples in docstrings are correct."""

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import experiments
import tilewe_jax
from tilewe_jax import search
from tilewe_jax.utils.extras import MissingExtraError


def modules() -> Iterator[str]:
    for package in (tilewe_jax, search, experiments):
        yield package.__name__
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield module.name


def examples(name: str) -> list[doctest.DocTest]:
    try:
        module = importlib.import_module(name)
    except MissingExtraError:  # an adapter to a missing package
        return []
    tests = doctest.DocTestFinder(exclude_empty=True).find(module)
    return [test for test in tests if test.examples]


EXAMPLES = {test.name: test for name in modules() if ".presets." not in name for test in examples(name)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    result = runner.run(EXAMPLES[name])
    assert result.attempted
    assert not result.failed
