"""Agents: everything that plays, by text; JAX is imported with the first name that needs it, and never for ``levels``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewe_jax.agents.base import Agent, agent
    from tilewe_jax.agents.host_player import ForfeitError, HostGame, HostPlayer
    from tilewe_jax.agents.spec import AgentSpec

__all__ = ["Agent", "AgentSpec", "ForfeitError", "HostGame", "HostPlayer", "agent"]

_MODULES = {
    "Agent": "base",
    "AgentSpec": "spec",
    "ForfeitError": "host_player",
    "HostGame": "host_player",
    "HostPlayer": "host_player",
    "agent": "base",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tilewe_jax.agents' has no attribute {name!r}")
    return getattr(import_module(f"tilewe_jax.agents.{_MODULES[name]}"), name)
