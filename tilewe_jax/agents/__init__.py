"""Agents: players of any kind, by text."""

from tilewe_jax.agents.agent import Agent, agent
from tilewe_jax.agents.host_player import ForfeitError, HostGame, HostPlayer
from tilewe_jax.agents.spec import AgentSpec

__all__ = ["Agent", "AgentSpec", "ForfeitError", "HostGame", "HostPlayer", "agent"]
