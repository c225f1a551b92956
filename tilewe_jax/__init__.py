"""Tile-placing board games in JAX, batched by the thousand.

Public names::

    make(name, **options)   make a game by name, see ``available_games()``
    register(name, factory) register a custom game
    Game                    the interface of every game
    rollout(game, key, n)   play n games to the end in one compiled call
    Environment(game)       step a batch of games, with auto-reset
    agent(text, game)       make an agent: "best", "level:3", a search with settings, an engine
    Agent                   the interface of agents: act, search, name, and a host form
    IllegalActionError      raised by the host forms for illegal actions

JAX is imported with the first name that needs it; ``from tilewe_jax import tilewe``, the host API, does not import it.
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
