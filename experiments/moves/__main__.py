"""Values the moves of agents in the positions of recorded games by a GTP engine: ``python -m experiments.moves``."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import tilewe_jax
from tilewe_jax.agents import Agent
from tilewe_jax.agents.gtp_player import GtpPlayer
from tilewe_jax.agents.host_player import OngoingGame
from tilewe_jax.arena.results import mean_and_ci95
from tilewe_jax.arena.values import sample
from tilewe_jax.arguments import from_arguments
from tilewe_jax.records import read

SECONDS = 600.0
BATCH = 16


@dataclass(frozen=True)
class Moves:
    """Let agents choose moves in the positions of recorded games, and value the positions after them by a GTP engine."""

    games: Path
    """File of games."""
    agents: tuple[str, ...]
    """Agents, as for ``tilewe-jax match``; the others are compared with the first one."""
    engine: str = "pentobi-gtp -g duo -l 6 --nobook --noresign -q --threads 1"
    """Command line of the GTP engine."""
    first: int = 2
    """First ply of the positions."""
    last: int = 11
    """Last ply of the positions."""

    def run(self) -> None:
        """Print a row for each agent: the mean value of its moves, and the difference to the first agent."""
        game, records = read(self.games)
        positions = sample(game, records)
        kept = (positions.ply >= self.first) & (positions.ply <= self.last)
        states = jax.tree.map(lambda leaf: leaf[kept], positions.state)
        games = [
            OngoingGame(
                game, partial(game.init_from_deal, records[index].deal), list(records[index].actions[:ply]), records[index].deal
            )
            for index, ply in zip(positions.game[kept], positions.ply[kept], strict=True)
        ]
        judge, first = GtpPlayer(game, self.engine, 1), np.zeros(len(games))
        for index, text in enumerate(self.agents):
            actions = chosen(tilewe_jax.agent(text, game), games, states)
            values = np.array([value_after(judge, *item) for item in zip(games, actions, strict=True)])
            first = first if index else values
            row = mean_and_ci95("value", values) | mean_and_ci95("difference", values - first)
            print(json.dumps({"agent": text, "positions": len(games), **row}), flush=True)
        judge.close()


def chosen(agent: Agent, games: Sequence[OngoingGame], states: Any) -> list[int]:
    """Return the actions of an agent in positions."""
    if isinstance(agent.player, GtpPlayer):
        return [agent.player.choose(game, SECONDS, str(number)) for number, game in enumerate(games)]
    act, actions = jax.jit(jax.vmap(agent.act)), []
    for start in range(0, len(games), BATCH):
        # The last block is padded, so that all blocks have one shape.
        index = np.minimum(np.arange(start, start + BATCH), len(games) - 1)
        block = jax.tree.map(lambda leaf, index=index: leaf[index], states)
        actions += act(block, jax.random.split(jax.random.key(start), BATCH)).tolist()
    return actions[: len(games)]


def value_after(judge: GtpPlayer, game: OngoingGame, action: int) -> float:
    """Return the value of an action for the player who takes it."""
    after = OngoingGame(game.game, game.start, [*game.actions, action], game.deal)
    value = judge.value(after, SECONDS, str(after.actions))
    return value if after.position.current_player == game.position.current_player else 1 - value


if __name__ == "__main__":
    from_arguments(Moves, sys.argv[1:], "python -m experiments.moves").run()
