"""Text formats of other programs for positions, moves and games."""
