"""Tile-placing board games in JAX, thousands of games at once.

JAX is imported with the first name that needs it: ``from tilewe_jax import tilewe``, the host API, never does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewe_jax import env
    from tilewe_jax.game import Game
    from tilewe_jax.registry import make

__all__ = ["Game", "env", "make"]


def __getattr__(name: str) -> Any:
    modules = {"Game": "tilewe_jax.game", "env": "tilewe_jax.env", "make": "tilewe_jax.registry"}
    if name not in modules:
        raise AttributeError(f"module 'tilewe_jax' has no attribute {name!r}")
    module = import_module(modules[name])
    return module if name == "env" else getattr(module, name)
