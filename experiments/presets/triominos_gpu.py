"""Triominos for two on an accelerator."""

from experiments.config import Config

CONFIG = Config(
    game="triominos",
    network="small",
    lanes=2048,
    steps=32,
    search="puct",
    simulations=64,
    worlds=1,  # on a CPU one world with 32 simulations was stronger than four with 8
    candidates=64,
    pool=96,
    buffer=512,
    fill=64,
    reuse=2.0,
    batch=2048,
    ema=0.999,
    learning_rate=0.001,
    margin=0.5,
    temperature_plies=0,
    rounds=3000,
    checkpoint_every=50,
    test_every=100,
    test_games=512,
    test_simulations=64,
    opponents=("block_hoard", "last"),
)
