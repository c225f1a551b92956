"""Agents: players of any kind, by text."""

from tilewe_jax.agents.players import ForfeitError, HostGame, HostPlayer, Player, player

__all__ = ["ForfeitError", "HostGame", "HostPlayer", "Player", "player"]
