"""Command that makes puzzles from recorded games."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import (
    GamesFile,
    Json,
    check_positive,
    needed_file,
    print_written,
    progress,
    usage_errors,
)
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Puzzles(GamesFile, Json):
    """Make puzzles from recorded games for two players: positions in which one move alone wins.

    The endings of the games are solved exactly, and so is the answer to each legal move of a puzzle. A puzzle is left out as
    obvious if the heuristics of the game prefer its winning move. The file of puzzles has records of unfinished games, with the
    winning move and best play after it in the field "puzzle"; the page opens them like other records. For example:

        tilewe-jax match best:num_simulations=16 --game duo_official --games 500 --opening 4 --out games.jsonl
        tilewe-jax puzzles games.jsonl --out puzzles.jsonl
    """

    out: Annotated[Path | None, Option("FILE")] = None
    """File of the puzzles (required)."""
    nodes: int = 20_000
    """Maximum number of positions visited to solve the answer to one move."""
    min_legal: int = 8
    """Smallest number of legal moves of a puzzle."""
    obvious: bool = False
    """Keep obvious puzzles."""

    def run(self) -> None:
        check_positive(nodes=self.nodes, min_legal=self.min_legal)
        path = needed_file(self.out)
        from tilewe_jax import records
        from tilewe_jax.agents.puzzles import PuzzleFinder
        from tilewe_jax.registry import make

        content = self.read()
        host, games = content.of_one_kind(self.file)
        self.print_skipped(content)
        found: list[Any] = []
        with usage_errors(), progress(len(games), "games", quiet=self.json) as shown:
            finder = PuzzleFinder(make(host.id, **host.options), host, self.nodes, self.min_legal)
            for number, game in enumerate(games, 1):
                puzzle = finder.find(game.deal, game.actions)
                if puzzle and (self.obvious or not puzzle.is_obvious):
                    found.append(puzzle)
                shown.update(number, lambda: counted(len(found), "puzzles"), "solving")
        records.write(path, host, (puzzle.record for puzzle in found))
        if self.json:
            print(json.dumps({"game": host.id, "games": len(games), "puzzles": len(found)}))
        else:
            print_written(counted(len(found), "puzzles"), path)
