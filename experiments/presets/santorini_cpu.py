"""Santorini 5 x 5 on a CPU: ahead of 64 random playouts after minutes, and strong after an hour."""

from experiments.config import Config

CONFIG = Config(
    game="santorini",
    network="nano",
    lanes=256,
    steps=32,
    simulations=32,
    candidates=96,
    buffer=512,
    fill=64,
    reuse=4.0,
    batch=256,
    rounds=400,
    minutes=60.0,
    test_every=50,
    test_games=128,
    opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=0,score_weight=0", "one_ply", "last"),
)
