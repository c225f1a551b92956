"""Command that solves the endings of recorded games."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box

from tilewe_jax.cli.analyze import Compiling
from tilewe_jax.cli.common import GamesFile, Json, check_move, check_positive, chosen_game, out, progress, usage_errors
from tilewe_jax.cli.tables import Rows
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Solve(GamesFile, Json):
    """Solve the ending of a recorded game for two players: the exact result under best play.

    From the last move backwards, every position is solved until one needs more than --nodes. The table has the result and the
    margin in points for the player to move, the best move (= if the move played is as good), the points that the move played
    lost, and the number of positions visited. With --move one position is solved, and the best line is printed.
    """

    number: int = 1
    """Number of the game in the file, from 1."""
    move: int | None = None
    """Solve only the position after this number of moves, 0 for the start."""
    nodes: int = 100_000
    """Maximum number of positions visited for one solution."""

    def run(self) -> None:
        check_positive(number=self.number, nodes=self.nodes)
        from tilewe_jax.agents import review
        from tilewe_jax.agents.endings import EndingSolver
        from tilewe_jax.registry import make

        content = self.read()
        game = chosen_game(review.games_of(self.file, content.games), self.number, self.file)
        check_move(self.move, len(game.actions), self.number)
        self.print_skipped(content)
        positions, compiling = game.request().positions, Compiling()
        with usage_errors(), progress(None, "positions", quiet=self.json) as shown:
            compiling.shown = shown
            solver = EndingSolver(make(game.spec.host.id, **game.spec.options), self.nodes, compiling=compiling)
            rows: list[dict[str, Any]] = []
            for move in reversed(range(len(positions))) if self.move is None else [self.move]:
                state = solver.state(game.actions[:move], game.deal)
                solution = solver.solve(state)
                rows.append(_row(positions[move], move, solution, game.actions[move : move + 1]))
                if self.move is not None:
                    rows[0]["line"] = _names(positions[move], solver.line(state, solution))
                shown.update(len(rows), phase="solving")
                if not solution.is_exact:
                    break
        rows.reverse()
        _mark_mistakes(rows)
        if self.move is None:  # the end of a finished game only shows what the last move lost
            rows = [row for row in rows if row["best_move"]]
        if self.json:
            print(json.dumps({"game": game.spec.host.id, "number": self.number, "positions": rows}))
        elif self.move is None:
            _print_table(rows, self.number)
        else:
            _print_position(rows[0], self.nodes)


def _row(position: Any, move: int, solution: Any, played: Sequence[int]) -> dict[str, Any]:
    """Describe a solution for the player to move as JSON."""
    player, action = position.current_player, int(solution.action)
    bounds = (int(solution.low), int(solution.high)) if player == 0 else (-int(solution.high), -int(solution.low))
    outcomes = {1.0: "win", 0.5: "tie", 0.0: "loss"}
    return {
        "move": move,
        "player": player,
        "exact": bool(solution.is_exact),
        "outcome": outcomes[float(solution.returns[player])] if solution.has_outcome else None,
        "margin": bounds[0] if solution.is_exact else None,
        "bounds": bounds if solution.is_supported else None,
        "best_move": position.action_name(action) if action >= 0 else None,
        "played": position.action_name(played[0]) if played else None,
        "nodes": int(solution.num_nodes),
        "supported": bool(solution.is_supported),
    }


def _mark_mistakes(rows: list[dict[str, Any]]) -> None:
    """Add the points that each move lost against best play; ``None`` if they are not known."""
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        is_known = following is not None and row["exact"] and following["exact"]
        sign = 1 if following and row["player"] == following["player"] else -1
        row["lost"] = row["margin"] - sign * following["margin"] if following and is_known else None


def _names(position: Any, actions: Sequence[int]) -> list[str]:
    """Return the names of successive moves."""
    names = []
    for action in actions:
        names.append(position.action_name(action))
        position = position.after(action)
    return names


def _print_table(rows: list[dict[str, Any]], number: int) -> None:
    columns = ("move", "seat", "result", "margin", "played", "best", "lost", "nodes")
    table = Rows(*columns, title=f"game {number}", style=box.SIMPLE)
    for row in rows:
        table.add(
            str(row["move"] + 1),
            str(row["player"] + 1),
            _result(row),
            "-" if row["margin"] is None else f"{row['margin']:+}",
            row["played"] or "-",
            "=" if row["lost"] == 0 or row["best_move"] == row["played"] else (row["best_move"] if row["exact"] else "-"),
            "-" if row["lost"] is None else str(row["lost"]),
            f"{row['nodes']:,}",
        )
    table.print(out)


def _print_position(row: dict[str, Any], nodes: int) -> None:
    out.print(f"after {counted(row['move'], 'moves')}, player {row['player'] + 1} to move: {_result(row)}")
    if row["exact"]:
        out.print(f"margin {row['margin']:+}")
        out.print(f"best line: {' '.join(row['line']) or '-'}")
    elif row["supported"]:
        low, high = row["bounds"]
        out.print(f"margin {low:+} to {high:+}; more than {nodes:,} nodes are needed, see --nodes")
    out.print(counted(row["nodes"], "nodes"))


def _result(row: dict[str, Any]) -> str:
    return row["outcome"] or ("not solved" if row["supported"] else "too many moves")
