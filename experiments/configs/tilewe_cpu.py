"""Four-player Tilewe on a CPU, after a warm start from searches by playouts."""

from experiments.config import Config

CONFIG = Config(
    game="tilewe",
    network="nano",
    lanes=128,
    steps=32,
    search="puct",
    simulations=48,
    candidates=48,
    pool=1024,
    buffer=512,
    fill=32,
    reuse=2.0,
    batch=128,
    root_share=0.5,
    margin=0.3,
    teach=50,
    teacher="",
    temperature_plies=4,
    rounds=2000,
    minutes=60.0,
    test_every=15,
    test_games=64,
    test_simulations=64,
    test_opening=0,
    opponents=("simple_search",),
)
