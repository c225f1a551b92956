"""The moves of agents in the positions of recorded games, valued by a GTP engine."""
