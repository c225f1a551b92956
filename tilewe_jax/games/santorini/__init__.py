"""Santorini: Gordon Hamilton's board game for two players, on n x n cells, see README.md."""
