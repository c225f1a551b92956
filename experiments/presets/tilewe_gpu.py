"""Four-player Tilewe on an accelerator."""

from experiments.config import Config

CONFIG = Config(
    game="tilewe",
    network="medium",
    lanes=2048,
    steps=16,
    simulations=64,
    candidates=64,
    buffer=512,
    fill=64,
    reuse=2.0,
    batch=2048,
    ema=0.999,
    learning_rate=0.001,
    margin=0.3,
    temperature_plies=4,
    rounds=5000,
    checkpoint_every=50,
    test_every=100,
    test_games=256,
    test_simulations=64,
    opponents=("simple_search", "last"),
)
