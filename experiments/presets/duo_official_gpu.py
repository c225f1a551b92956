"""Blokus Duo by the book on an accelerator, with the size of the strongest published network."""

from experiments.config import Config

CONFIG = Config(
    game="duo_official",
    network="large",
    lanes=2048,
    steps=16,
    simulations=64,
    candidates=64,
    buffer=512,
    fill=32,
    reuse=2.0,
    batch=2048,
    ema=0.999,
    learning_rate=0.001,
    margin=0.2,
    temperature_plies=4,
    rounds=5000,
    checkpoint_every=50,
    test_every=100,
    test_games=256,
    test_simulations=64,
    opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=0,score_weight=0", "last"),
)
