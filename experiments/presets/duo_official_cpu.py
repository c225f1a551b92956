"""Blokus Duo by the book on a CPU, after a warm start from games at a glance."""

from experiments.config import Config

CONFIG = Config(
    game="duo_official",
    network="nano",
    lanes=128,
    steps=32,
    simulations=32,
    candidates=64,
    pool=256,
    buffer=512,
    fill=32,
    reuse=2.0,
    batch=128,
    root_share=0.5,
    margin=0.3,
    teach=40,
    teacher="glance",
    temperature_plies=4,
    rounds=2000,
    minutes=60.0,
    test_every=20,
    test_games=64,
    test_simulations=64,
    opponents=("puct:num_simulations=64,num_playouts=1,num_samples=1,priors=0,score_weight=0", "last"),
)
