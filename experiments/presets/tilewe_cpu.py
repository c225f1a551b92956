"""Four-player Tilewe on a CPU, learned from searches by playouts."""

from experiments.config import Config

CONFIG = Config(
    game="tilewe",
    network="nano",
    lanes=128,
    steps=32,
    search="puct",
    simulations=48,
    candidates=48,
    pool=256,
    buffer=512,
    fill=96,
    reuse=2.0,
    batch=128,
    root_share=0.5,
    margin=0.3,
    teach=2000,  # all rounds: 24 minutes of self-play took weights that won 79 % of games to 51 %
    temperature_plies=4,
    rounds=2000,
    minutes=60.0,
    test_every=15,
    test_games=64,
    test_simulations=64,
    test_opening=0,
    opponents=("simple_search",),
)
