"""The four-colour game by the book on a CPU; it begins with what was learned of Tilewe."""

from dataclasses import replace

from experiments.presets import tilewe_cpu

CONFIG = replace(tilewe_cpu.CONFIG, game="classic", init="tilewe", minutes=30.0)
