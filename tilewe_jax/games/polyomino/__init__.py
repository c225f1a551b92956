"""Tilewe, the Duos and the classic game: one rules engine, variants as data."""
