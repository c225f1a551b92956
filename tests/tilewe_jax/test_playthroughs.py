"""Golden playthroughs: changes of rules, action ids, observations and names show up in a diff."""

import pytest

import tilewe_jax
from tests.support import slow
from tests.tilewe_jax.playthroughs import FOLDER, GAMES, path_of, replayed


def test_every_game_has_a_playthrough() -> None:
    """A new version of the rules needs a new file."""
    assert set(GAMES) == set(tilewe_jax.available_games())
    assert sorted(path.name for path in FOLDER.glob("*.txt")) == sorted(path_of(name).name for name in GAMES)


FAST = ("duo", "santorini", "triominos")
"""One game of each rules engine."""


@pytest.mark.parametrize("name", [name if name in FAST else slow(name) for name in GAMES])
def test_playthroughs_are_unchanged(name: str) -> None:
    """After an intended change, increase the version of the rules if actions have other effects, and run
    ``python -m tests.tilewe_jax.playthroughs``."""
    text = path_of(name).read_text("utf-8")
    assert f"version: {tilewe_jax.make(name).version}\n" in text
    assert replayed(name, text).splitlines() == text.splitlines()
