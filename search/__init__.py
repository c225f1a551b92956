"""Batched tree search over the ``Game`` protocol of ``tilewe_jax``; knows no particular game."""
