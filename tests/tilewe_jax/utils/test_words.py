"""Words of messages: the nearest name, and numbers with nouns."""

import string

import pytest

from tilewe_jax.utils.words import counted, did_you_mean, nearest

NAMES = ("duo", "duo_official", "classic", "classic_2", "santorini", "selfplay.num_games", "selfplay.search.seconds", "game.id")


@pytest.mark.parametrize("name", NAMES)
def test_one_wrong_letter_is_understood(name: str) -> None:
    for place in range(len(name)):
        for letter in string.ascii_lowercase[::5]:
            given = name[:place] + letter + name[place + 1 :]
            assert nearest(given, NAMES) in (name, given)
            assert nearest(name[:place] + letter + name[place:], NAMES)
        swapped = name[:place] + name[place : place + 2][::-1] + name[place + 2 :]
        assert nearest(swapped, NAMES) == name or nearest(swapped, NAMES) == swapped


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("DUO", "duo"),
        ("Duo-Official", "duo_official"),
        ("classic 2", "classic_2"),
        (" santorini ", "santorini"),
        ("sant", "santorini"),
        ("num_games", "selfplay.num_games"),
        ("num_gmaes", "selfplay.num_games"),
        ("games", "selfplay.num_games"),
        ("game", "game.id"),
        ("chess", None),
        ("", None),
        ("x", None),
        ("a" * 100_000, None),
    ],
)
def test_names_in_other_spellings(given: str, meant: str | None) -> None:
    assert nearest(given, NAMES) == meant
    assert did_you_mean(given, NAMES) == (f" (did you mean {meant}?)" if meant else "")


def test_numbers_with_nouns() -> None:
    assert [counted(number, "games") for number in (0, 1, 2, 1_000)] == ["0 games", "1 game", "2 games", "1,000 games"]
    assert counted(1, "leaves") == "1 leaf"
    assert counted(1, "hashes") == "1 hash"
