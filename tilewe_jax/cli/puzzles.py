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

    One search proves that a move wins, and a second search that the player does not win without this move. A puzzle is left
    out as obvious if the heuristics of the game prefer its winning move. The file of puzzles has records of unfinished games,
    with the winning move and best play after it in the field "puzzle"; the page opens them like other records. For example:

        tilewe-jax match a=level:3 b=level:3 --game duo_official --games 10000 --opening 2 --out games.jsonl
        tilewe-jax puzzles games.jsonl --out puzzles.jsonl
    """

    out: Annotated[Path | None, Option("FILE")] = None
    """File of the puzzles (required)."""
    nodes: int = 2_000
    """Maximum number of positions visited in one search; more are slower and find hardly more puzzles."""
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
                puzzle = finder.find(game.deal, game.actions, self.obvious)
                if puzzle:
                    found.append(puzzle)
                shown.update(number, lambda: counted(len(found), "puzzles"), "solving")
        records.write(path, host, (puzzle.record for puzzle in found))
        if self.json:
            print(json.dumps({"game": host.id, "games": len(games), "puzzles": len(found)}))
        else:
            print_written(counted(len(found), "puzzles"), path)
