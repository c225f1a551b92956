import pytest

import tilewe_jax
from tilewe_jax import conformance
from tilewe_jax.registry import available_games

STATE_BYTES = {"tilewe": 400, "classic": 400, "duo": 200, "duo_official": 200, "santorini": 64, "triominos": 720}

VARIATIONS = [
    pytest.param("tilewe", {"players": 1}, marks=pytest.mark.slow),
    ("tilewe", {"players": 2, "size": 5, "pieces": ("O1", "I2", "L3", "X5")}),
    ("duo", {"voluntary_pass": True, "size": 7}),
    ("santorini", {"size": 4, "placement": "chosen"}),
    ("santorini", {"size": 3, "placement": "random"}),
    ("triominos", {"players": 3, "tiles": 10, "tray": 2, "start": "highest"}),
]


# The slow ones are the same rules engine as `tilewe` and `duo_official`, which the traces and perft counts hold to the truth.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in ("duo", "classic") else name for name in available_games()]
)
def test_every_registered_game_conforms(name: str) -> None:
    # One game of each engine without `jit` too.
    eager = name in ("tilewe", "santorini", "triominos")
    conformance.check(tilewe_jax.make(name), max_state_bytes=STATE_BYTES[name], eager=eager)


@pytest.mark.parametrize(("name", "options"), VARIATIONS, ids=str)
def test_variations_conform(name: str, options: dict) -> None:
    conformance.check(tilewe_jax.make(name, **options), max_state_bytes=STATE_BYTES[name], eager=False)
