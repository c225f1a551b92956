"""Agents: policies, searches, engines and players on the host, created from text; JAX is imported when a name needs it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewe_jax.agents.base import Agent, agent
    from tilewe_jax.agents.host_player import ForfeitError, HostPlayer, OngoingGame
    from tilewe_jax.agents.spec import AgentSpec

__all__ = ["Agent", "AgentSpec", "ForfeitError", "HostPlayer", "OngoingGame", "agent"]

_MODULES = {"Agent": "base", "AgentSpec": "spec", "agent": "base"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tilewe_jax.agents' has no attribute {name!r}")
    return getattr(import_module(f"tilewe_jax.agents.{_MODULES.get(name, 'host_player')}"), name)
