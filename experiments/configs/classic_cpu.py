"""The four-colour game by the book on a CPU; it begins with what was learned of Tilewe."""

from experiments.config import Config

CONFIG = Config(
    game="classic",
    init="tilewe",
    network="nano",
    lanes=64,
    steps=16,
    simulations=32,
    candidates=48,
    pool=512,
    buffer=1024,
    fill=64,
    reuse=2.0,
    batch=128,
    root_share=0.5,
    margin=0.3,
    temperature_plies=4,
    rounds=2000,
    minutes=30.0,
    test_every=40,
    test_games=64,
    test_simulations=64,
    opponents=("simple_search",),
)
