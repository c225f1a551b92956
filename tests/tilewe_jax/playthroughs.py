"""Golden playthroughs: a small game of each kind as text. To draw new playthroughs, run:

    python -m tests.tilewe_jax.playthroughs

A file records the deal and the actions, from which the rest follows, so that it does not depend on random numbers.
"""

import hashlib
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilewe_jax
from tilewe_jax.game import observation_shape
from tilewe_jax.interop import single

FOLDER = Path(__file__).parents[1] / "data" / "playthroughs"
GAMES: dict[str, dict[str, Any]] = {
    "tilewe": {"size": 7, "players": 3, "pieces": ["O1", "I2", "L3", "T4", "F5"]},
    "duo": {"size": 7, "pieces": ["O1", "I2", "L3", "T4", "F5"], "voluntary_pass": True},
    "duo_official": {"size": 7, "pieces": ["O1", "I2", "L3", "T4", "F5"]},
    "classic": {"size": 8, "pieces": ["O1", "I2", "L3", "T4"]},
    "classic_2": {"size": 8, "pieces": ["O1", "I2", "L3", "T4"], "start_piece": "T4"},
    "santorini": {"size": 4, "placement": "random"},
    "triominos": {"tiles": 20, "tray": 3, "players": 3, "game": "target", "target": 90, "start": "winner"},
}
"""Options of each game: small boards that exercise most rules."""
SHOWN = 8
"""Maximum number of names of legal actions per position."""


def path_of(name: str) -> Path:
    """The file of a game in the current version of its rules."""
    return FOLDER / f"{name}_v{tilewe_jax.make(name, **GAMES[name]).version}.txt"


def played(name: str, deal: Any = None, actions: Sequence[int] | None = None) -> str:
    """The text of a game.

    Args:
      name: the game.
      deal: the deal; ignored and drawn if ``actions`` is ``None``.
      actions: the actions; drawn by default.
    """
    game = tilewe_jax.make(name, **GAMES[name])
    draw = random.Random(f"{name} {game.version}")
    if actions is None:
        deal = game.deal(single.init(game, draw.getrandbits(32)).state)
    position = single.of_state(game, game.init_from_deal(deal))
    blocks = [
        "\n".join(
            (
                f"game: {game.id}",
                f"version: {game.version}",
                f"options: {json.dumps(game.options)}",
                f"players: {game.num_players}",
                f"action ids: {game.num_actions}",
                f"longest game: {game.max_steps} actions",
                f"observation: float32[{', '.join(map(str, observation_shape(game)))}]",
                f"deal: {json.dumps(deal)}",
            )
        )
    ]
    last = None
    for step in range(game.max_steps + 1):
        host = game.host(position.state)
        lines = [f"# after {step} actions", *(f"| {line}".rstrip() for line in host.text(last_action=last).splitlines())]
        lines.append(f"scores: {' '.join(map(str, host.scores()))}")
        lines += [f"observation of seat {seat}: {digest(observe(game, position, seat))}" for seat in range(game.num_players)]
        if position.is_terminal:
            outcome = " ".join(f"{reward:.4g}" for reward in position.rewards)
            lines.append(f"the end{' by a cap' if position.is_truncated else ''}, rewards: {outcome}")
            blocks.append("\n".join(lines))
            break
        legal = np.flatnonzero(position.legal).tolist()
        names = [host.action_name(action) for action in legal[:SHOWN]]
        more = f" and {len(legal) - SHOWN} more" if len(legal) > SHOWN else ""
        last = draw.choice(legal) if actions is None else actions[step]
        lines += [
            f"player: {position.current_player}",
            f"legal actions: {len(legal)}, {digest(np.array(legal))}: {' '.join(names)}{more}",
            f"action: {last} {host.action_name(last)}",
        ]
        blocks.append("\n".join(lines))
        position = single.apply(game, position.state, last)
    return "\n\n".join(blocks) + "\n"


def replayed(name: str, text: str) -> str:
    """The text of the game with the deal and actions of another text."""
    (deal,) = re.findall(r"^deal: (.*)$", text, re.MULTILINE)
    return played(name, json.loads(deal), [int(action) for action in re.findall(r"^action: (\d+) ", text, re.MULTILINE)])


def observe(game: Any, position: single.Position, seat: int) -> np.ndarray:
    """An observation in integer ten-thousandths, which do not depend on the rounding of a compiler."""
    return np.round(10_000 * single.observe(game, position.state, seat)).astype(np.int64)


def digest(numbers: np.ndarray) -> str:
    """A short hash of integers."""
    return hashlib.sha256(np.ascontiguousarray(numbers, "<i8").tobytes()).hexdigest()[:12]


def main() -> None:
    """Write all files and delete files of other versions."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for name in GAMES:
        path_of(name).write_text(played(name), "utf-8")
        print(path_of(name).name)


if __name__ == "__main__":
    main()
