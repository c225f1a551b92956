"""Values the moves of agents in the positions of recorded games by a GTP engine: ``python -m experiments.moves``."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tilewe_jax
from tilewe_jax.agents import Agent
from tilewe_jax.agents.gtp_player import GtpPlayer
from tilewe_jax.agents.host_player import OngoingGame
from tilewe_jax.arena.results import mean_and_ci95
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
        plies = range(self.first, self.last + 1)
        positions = [record.actions[:ply] for record in records for ply in plies if ply < len(record.actions)]
        judge, first = GtpPlayer(game, self.engine, 1), np.zeros(len(positions))
        for index, text in enumerate(self.agents):
            actions = chosen(tilewe_jax.agent(text, game), positions)
            values = np.array([value_after(judge, game, *item) for item in zip(positions, actions, strict=True)])
            first = first if index else values
            row = mean_and_ci95("value", values) | mean_and_ci95("difference", values - first)
            print(json.dumps({"agent": text, "positions": len(positions), **row}), flush=True)
        judge.close()


def chosen(agent: Agent, positions: Sequence[Sequence[int]]) -> list[int]:
    """Return the actions of an agent in positions, each given by the actions before it."""
    game = agent.game
    if isinstance(agent.player, GtpPlayer):
        ongoing = [played(game, actions) for actions in positions]
        return [agent.player.choose(item, SECONDS, str(number)) for number, item in enumerate(ongoing)]
    act = jax.jit(jax.vmap(agent.act))
    return [int(action) for number, block in states(game, positions) for action in act(block, keys(number))][: len(positions)]


def keys(number: int) -> Any:
    """Return the keys of a block of positions."""
    return jax.random.split(jax.random.key(number), BATCH)


def states(game: Any, positions: Sequence[Sequence[int]]) -> Iterator[tuple[int, Any]]:
    """Yield the states of positions in blocks of ``BATCH``, each with its number; the last block is padded."""
    apply, start = jax.jit(game.apply), game.init(jax.random.key(0))
    for number in range(0, len(positions), BATCH):
        block = [*positions[number : number + BATCH]]
        block += [block[-1]] * (BATCH - len(block))
        reached = []
        for actions in block:
            state = start
            for action in actions:
                state = apply(state, jnp.int32(action))
            reached.append(state)
        yield number, jax.tree.map(lambda *leaves: jnp.stack(leaves), *reached)


def played(game: Any, actions: Sequence[int]) -> OngoingGame:
    """Return a game after some actions."""
    return OngoingGame(game, lambda: game.init(jax.random.key(0)), list(actions))


def value_after(judge: GtpPlayer, game: Any, actions: Sequence[int], action: int) -> float:
    """Return the value of an action for the player who takes it."""
    mover, after = played(game, actions).position.current_player, played(game, [*actions, action])
    value = judge.value(after, SECONDS, str([*actions, action]))
    return value if after.position.current_player == mover else 1 - value


if __name__ == "__main__":
    from_arguments(Moves, sys.argv[1:], "python -m experiments.moves").run()
