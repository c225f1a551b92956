"""Triominos for two on a CPU, after a warm start from games of its best strategy."""

from experiments.config import Config

CONFIG = Config(
    game="triominos",
    network="nano",
    lanes=128,
    steps=32,
    search="puct",
    simulations=32,
    fast_simulations=8,
    worlds=1,
    candidates=32,
    pool=64,
    buffer=1024,
    fill=64,
    reuse=4.0,
    batch=128,
    root_share=0.5,
    margin=0.5,
    teach=50,
    teacher="block_hoard",
    temperature_plies=0,
    rounds=2000,
    minutes=60.0,
    test_every=50,
    test_games=128,
    test_simulations=32,
    test_opening=0,
    opponents=("block_hoard",),
)
