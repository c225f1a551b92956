"""Compares the first moves of the shipped book of Duo with the values of Pentobi: ``python -m experiments.book``."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tilewe_jax
from tilewe_jax.agents import book as books
from tilewe_jax.arguments import from_arguments
from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.gtp_client import GtpEngine, search_move

NAMES = blokus_game(make_host_game("duo_official"))
SECONDS = 600.0


@dataclass(frozen=True)
class Compare:
    """Compare the values of all first moves of the book of Duo with the values of Pentobi."""

    engine: str = "pentobi-gtp -g duo -l 6 --nobook --noresign -q"
    """Command line of Pentobi's GTP engine."""
    out: Path | None = None
    """Write the table to this file, as JSON."""

    def run(self) -> None:
        """Print the table and the correlation of both values."""
        book = books.load(tilewe_jax.make("duo_official"), True)
        evaluated = book.evaluated()
        rows = []
        engine = GtpEngine(self.engine)
        for move in book.moves_after((), evaluated):
            position = NAMES.start().after(move.action)
            engine.send("clear_board", SECONDS)
            engine.send(f"play {NAMES.colors[0][0]} {NAMES.move_text(move.action)}", SECONDS)
            value = 1 - search_move(engine, NAMES.colors[1][0], SECONDS)[1]
            replies = book.moves_after((move.action,), evaluated)
            rows.append(
                {
                    "move": NAMES.start().action_name(move.action),
                    "value": move.value[0],
                    "error": move.error,
                    "reply": position.action_name(replies[0].action) if replies else None,
                    "engine": round(value, 4),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
        engine.close()
        ours, theirs = (np.array([row[name] for row in rows]) for name in ("value", "engine"))
        summary = {"moves": len(rows), "correlation": round(float(np.corrcoef(ours, theirs)[0, 1]), 3)}
        print(json.dumps({**summary, "mean": float(ours.mean()), "mean_engine": float(theirs.mean())}))
        if self.out:
            self.out.write_text(
                json.dumps({"engine": Path(self.engine.split()[0]).name, **summary, "rows": rows}, indent=1) + "\n"
            )


if __name__ == "__main__":
    from_arguments(Compare, sys.argv[1:], "python -m experiments.book").run()
