"""Santorini 5 x 5 on an accelerator."""

from experiments.config import Config

CONFIG = Config(
    game="santorini",
    network="small",
    lanes=4096,
    steps=32,
    simulations=64,
    candidates=128,
    buffer=512,
    fill=64,
    reuse=2.0,
    batch=4096,
    ema=0.99,
    learning_rate=0.003,
    rounds=2000,
    minutes=60.0,
    test_every=50,
    test_games=512,
    test_simulations=64,
    opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=0,score_weight=0", "one_ply", "last"),
)
