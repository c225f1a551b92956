"""The modified Blokus Duo on a CPU; it begins with what was learned of the official one."""

from dataclasses import replace

from experiments.presets import duo_official_cpu

CONFIG = replace(duo_official_cpu.CONFIG, game="duo", init="duo_official", teach=0, minutes=30.0)
