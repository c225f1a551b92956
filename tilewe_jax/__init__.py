"""Tile-placing board games in JAX, thousands of games at once.

The public names::

    make(name, **options)   a game by name, see ``available_games()``
    register(name, factory) a game of your own
    Game                    the contract of every game
    rollout(game, key, n)   n games played to their ends in one compiled call
    Environment(game)       games stepped from outside, with auto-reset
    agent(text, game)       what plays a game: "best", "level:3", a search with its settings, an engine
    Agent                   what agent gives: act, search, name, and its host form
    IllegalActionError      what the host forms raise

JAX is imported with the first name that needs it: ``from tilewe_jax import tilewe``, the host API, never does.
"""

from importlib import import_module
from os.path import dirname, isfile, join
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewe_jax.agents.base import Agent, agent
    from tilewe_jax.batching import Environment, rollout
    from tilewe_jax.game import Game
    from tilewe_jax.host import IllegalActionError
    from tilewe_jax.registry import available_games, make, register

__all__ = ["Agent", "Environment", "Game", "IllegalActionError", "agent", "available_games", "make", "register", "rollout"]

_MODULES = {
    "Agent": "tilewe_jax.agents",
    "Environment": "tilewe_jax.batching",
    "Game": "tilewe_jax.game",
    "IllegalActionError": "tilewe_jax.host",
    "agent": "tilewe_jax.agents",
    "available_games": "tilewe_jax.registry",
    "make": "tilewe_jax.registry",
    "register": "tilewe_jax.registry",
    "rollout": "tilewe_jax.batching",
}

if isfile(join(dirname(__file__), "search")):
    raise ImportError(
        "tilewe_jax/search must be a link to the folder search, but git has written a text file; run:"
        " git config core.symlinks true && git checkout -- tilewe_jax/search (on Windows in developer mode)"
    )


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tilewe_jax' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
