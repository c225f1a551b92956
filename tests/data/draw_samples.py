"""Draws the sampled traces of this folder from the full ones: ``python tests/data/draw_samples.py FOLDER``.

``FOLDER`` holds the full traces as the README of this folder names them. Whole games are taken, every n-th of a file, so that
a sample is read by the same tests as its file; the bytes written depend on nothing but the full traces.
"""

import argparse
import gzip
import json
from pathlib import Path

EVERY = {
    "tilewe/games_1p.jsonl.gz": 5,
    "tilewe/games_3p.jsonl.gz": 5,
    "tilewe/games_4p.jsonl.gz": 5,
    "duo/duo_modified.jsonl.gz": 4,
    "duo/duo_official.jsonl.gz": 4,
    "duo/pentobi_duo.jsonl.gz": 6,
    "classic/pentobi_classic.jsonl.gz": 5,
    "perft/positions.jsonl.gz": 1,
    "santorini/traces_agz.jsonl.gz": 8,
    "santorini/traces_cpp.jsonl.gz": 10,
    "triominos/oracle_random_56.jsonl.gz": 10,
    "triominos/oracle_random_84.jsonl.gz": 10,
    "triominos/oracle_ring_56.jsonl.gz": 10,
    "triominos/rounds.jsonl.gz": 1,
}
"""Of each file every so many games; a file of which every game is taken is small, or tests need all of it."""
WHOLE = ("tilewe/pieces.json", "triominos/doc_figures.json")
"""Files that are taken as they are."""


def sample(lines: list[str], every: int) -> list[str]:
    """The header, where the first line is one, and of every ``every``-th game the line, or all lines of its positions."""
    records = [json.loads(line) for line in lines]
    header = [lines.pop(0)] if "format" in records[0] else []
    numbers = [record["g"] if "cand" in record else i for i, record in enumerate(records[len(header) :])]
    return header + [line for number, line in zip(numbers, lines, strict=True) if number % every == 0]


def compressed(lines: list[str]) -> bytes:
    """Without a time or a name, so that the same lines give the same bytes."""
    return gzip.compress("".join(lines).encode(), compresslevel=9, mtime=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder with the full traces")
    source, target = parser.parse_args().folder, Path(__file__).parent / "traces"
    for name in WHOLE:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes((source / name).read_bytes())
    for name, every in EVERY.items():
        with gzip.open(source / name, "rt") as file:
            lines = sample(list(file), every)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(compressed(lines))
        print(f"{name:40} {len(lines):5} lines {(target / name).stat().st_size:8,} bytes")


if __name__ == "__main__":
    main()
