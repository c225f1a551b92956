"""Exact endings: agreement with exhaustive search, and the cost of a solution by ply."""
