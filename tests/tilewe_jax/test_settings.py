"""Nested settings: ranges, text, JSON, and changes of a resumed run."""

import json
from dataclasses import dataclass, field, replace

import pytest

from tilewe_jax import settings
from tilewe_jax.settings import setting
from tilewe_jax.training.config import GameConfig, SelfplayConfig, TrainConfig, changed


@dataclass(frozen=True)
class Inner:
    """An inner part."""

    rate: float = setting(0.5, minimum=0, maximum=1)
    """Rate of
    something."""
    words: tuple[str, ...] = setting(())
    """Some words."""


@dataclass(frozen=True)
class Outer:
    """A whole."""

    inner: Inner = field(default=Inner())
    """The part."""
    count: int = setting(3, positive=True, may_change=True)
    """Number of things."""
    limit: float = setting(2.0, maximum=4)
    """Limit of things."""

    def __post_init__(self) -> None:
        settings.validate(self)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inner": Inner(rate=1.5)}, r"inner\.rate must be between 0 and 1, not 1\.5"),
        ({"inner": Inner(rate="high")}, r"inner\.rate must be a number, not 'high'"),
        ({"count": 0}, "count must be positive, not 0"),
        ({"count": 2.0}, r"count must be an integer, not 2\.0"),
        ({"count": True}, "count must be an integer, not True"),
        ({"limit": 5}, "limit must be at most 4, not 5"),
        ({"limit": float("nan")}, "limit must be a number, not nan"),
    ],
)
def test_values_out_of_range_are_named_by_their_path(values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Outer(**values)


def test_text_json_and_values_agree() -> None:
    given = {"inner.rate": "0.25", "inner.words": "a b=c", "count": "7"}
    value = settings.changed(Outer(), given)
    assert value == Outer(Inner(0.25, ("a", "b=c")), 7)
    assert settings.from_json(Outer, json.loads(json.dumps(settings.to_json(value)))) == value
    assert settings.from_json(Outer, {"inner": {"rate": 1}}) == Outer(Inner(1))
    assert settings.changed(value, {"inner.words": ""}).inner.words == ()
    for wrong, message in (
        ({"inner": {"rat": 1}}, "inner.rat"),
        ({"inner": 3}, "inner must be a JSON object, not 3"),
        ({"inner": {"rate": 2}}, "inner.rate must be between 0 and 1, not 2"),
    ):
        with pytest.raises(ValueError, match=message):
            settings.from_json(Outer, wrong)
    assert settings.listing(value)[:2] == [
        {"name": "inner.rate", "default": 0.25, "description": "Rate of something."},
        {"name": "inner.words", "default": ("a", "b=c"), "description": "Some words."},
    ]


def test_differences_that_prevent_a_resumption() -> None:
    assert settings.differences(Outer(count=9), Outer(), resuming=True) == []
    assert settings.differences(Outer(count=9), Outer()) == ["count was 3 and is 9"]
    assert settings.differences(Outer(Inner(0.1)), Outer()) == ["inner.rate was 0.5 and is 0.1"]


def test_errors_of_search_settings_have_their_path() -> None:
    for given, message in (
        ({"selfplay.search.max_depth": "0"}, r"^selfplay\.search\.max_depth must be at least 1, not 0"),
        ({"selfplay.puct.dirichlet_fraction": "2"}, r"^selfplay\.puct\.dirichlet_fraction must be between 0 and 1, not 2"),
    ):
        with pytest.raises(ValueError, match=message):
            changed(TrainConfig(), given)
    with pytest.raises(ValueError, match=r"^selfplay\.search\.max_depth"):
        settings.from_json(TrainConfig, {"selfplay": {"search": {"max_depth": 0}}})


def test_options_of_the_game_are_set_as_text() -> None:
    config = changed(TrainConfig(), {"game.id": "tilewe", "game.options.pieces": "I2", "game.options.size": "5"})
    assert config.game == GameConfig("tilewe", {"pieces": ("I2",), "size": 5})
    assert config.game.make().options == {"size": 5, "pieces": ["I2"]}
    config = changed(config, {"game.options.size": "6"})
    assert dict(config.game.options) == {"pieces": ("I2",), "size": 6}
    hash(config)


def test_the_number_of_updates_follows_the_replay_ratio() -> None:
    config = TrainConfig()
    assert config.num_updates == 256 * 32 * 4 / 256
    fast = replace(config, selfplay=SelfplayConfig(fast_simulations=8, full_search_prob=0.25))
    assert fast.num_updates == config.num_updates / 4
