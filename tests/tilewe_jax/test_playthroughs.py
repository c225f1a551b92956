"""Whoever changes a rule, an action id, an observation or a name sees it in a diff."""

import pytest

import tilewe_jax
from tests.tilewe_jax.playthroughs import FOLDER, GAMES, path_of, replayed


def test_every_game_has_one() -> None:
    """A new version of the rules has a new file."""
    assert set(GAMES) == set(tilewe_jax.available_games())
    assert sorted(path.name for path in FOLDER.glob("*.txt")) == sorted(path_of(name).name for name in GAMES)


@pytest.mark.parametrize("name", GAMES)
def test_playthroughs_are_the_golden_ones(name: str) -> None:
    """Read what has changed. If it is meant, raise the version of the rules where actions now lead elsewhere, and run
    ``python -m tests.tilewe_jax.playthroughs``."""
    text = path_of(name).read_text("utf-8")
    assert f"version: {tilewe_jax.make(name).version}\n" in text
    assert replayed(name, text).splitlines() == text.splitlines()
