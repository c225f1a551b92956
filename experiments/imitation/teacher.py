"""Play games of a search against itself, and save their positions as training data.

    python -m experiments.imitation.teacher --game duo_official --out teacher

``experiments.imitation.imitation`` trains networks on these files. Games start with some random actions, and later actions are
random with a small probability, so that positions after mistakes occur. Besides the searched positions, the files contain the
most visited positions inside of each tree, which are typical inputs of an evaluator.
"""

import sys
import time
import zipfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, PRNGKeyArray

from tilewe_jax.agents import Agent, agent
from tilewe_jax.arguments import from_arguments
from tilewe_jax.game import Game
from tilewe_jax.registry import game_options, make_game
from tilewe_jax.search import Search, SearchOutput
from tilewe_jax.search.tree import Tree, inner_visits
from tilewe_jax.settings import assignments, setting, validate
from tilewe_jax.training import replay
from tilewe_jax.training.replay import Positions
from tilewe_jax.utils.files import replacing

MIN_BATCH = 32
"""When half of the games of a batch have ended, the other half goes on alone, if it has at least this many games."""


@dataclass(frozen=True)
class Settings:
    """Play games of a search against itself, and save its positions in a folder, one file per batch of games.

    The same command continues after the files in the folder. Results are the same for the same settings and the same kind of
    processor.

    Raises ``ValueError`` for numbers out of range.
    """

    out: Path
    """Folder of the files."""
    game: str = "duo_official"
    """Id of the game, or ``module:factory``."""
    set: tuple[str, ...] = ()
    """Options of the game that differ from its defaults, such as placement=random."""
    agent: str = "puct:num_simulations=128"
    """Search agent of ``tilewe-jax match``, with or without a network."""
    batches: int = setting(40, 1)
    """Total number of files."""
    batch: int = setting(256, 1)
    """Number of games per file, played in parallel."""
    random_plies: int = setting(4, 0)
    """Maximum number of random actions at the start of a game, whose positions are not saved."""
    temperature_plies: int = setting(8, 0)
    """Number of plies whose action is sampled in proportion to the visits."""
    random_move_prob: float = setting(0.05, 0, 1)
    """Probability of a random action in later plies."""
    num_nodes: int = setting(4, 0)
    """Maximum number of saved positions inside of each tree."""
    min_visits: int = setting(4, 1)
    """Minimum number of visits of a saved position inside of a tree."""
    seed: int = setting(0, 0)
    """Seed of the games."""

    def __post_init__(self) -> None:
        validate(self)


def decide(
    game: Game[Any],
    settings: Settings,
    teacher: Agent,
    state: Any,
    ply: Int32[Array, ""],
    random_plies: Int32[Array, ""],
    key: PRNGKeyArray,
) -> tuple[Positions[Any], Bool[Array, "N"], Any]:
    """Search a position of one game, and choose an action.

    Returns the searched position followed by the positions inside of its tree, a mask of those to save, and the state after the
    action. Positions inside of the tree have no policy target: they have a single candidate, and their surprise is -1.
    """
    key_search, key_draw, key_random, key_action = jax.random.split(key, 4)
    output = teacher.search(state, key_search)
    assert isinstance(output, SearchOutput)
    tree: Tree[Any] = output.tree
    visits, nodes = jax.lax.top_k(inner_visits(tree), settings.num_nodes)
    inside, count = tree.value_sum[nodes] / jnp.maximum(visits, 1).astype(jnp.float32)[:, None], len(output.candidates)
    only, shape = jnp.arange(count, dtype=jnp.int32) == 0, (settings.num_nodes, count)
    visited = output.visits.astype(jnp.float32)
    total = jnp.maximum(jnp.sum(visited), 1.0)
    value = jnp.concatenate([output.value[None], inside])
    positions = Positions(
        state=jax.tree.map(lambda root, leaf: jnp.concatenate([root[None], leaf[nodes]]), state, tree.state),
        candidates=jnp.concatenate([output.candidates[None], jnp.broadcast_to(jnp.where(only, 0, -1), shape)]),
        policy=jnp.concatenate(
            [output.visits[None].astype(jnp.float32) / total, jnp.broadcast_to(only.astype(jnp.float32), shape)]
        ),
        root_value=value,
        surprise=jnp.where(jnp.arange(len(value), dtype=jnp.int32) == 0, 0.0, -1.0),
        game_index=jnp.zeros(len(value), jnp.int32),
        returns=jnp.full_like(value, replay.UNKNOWN),
        outcome_target=value,
        score_value=jnp.zeros_like(value),
    )
    is_searched = jnp.max(output.visits) > 0
    kept = (
        jnp.concatenate([is_searched[None], visits >= settings.min_visits]) & ~game.is_terminal(state) & (ply >= random_plies)
    )
    drawn = output.candidates[jax.random.categorical(key_draw, jnp.log(output.visits.astype(jnp.float32)))]
    action = jnp.where((ply < settings.temperature_plies) & is_searched, drawn, output.action)
    is_random = (ply < random_plies) | (jax.random.uniform(key_random, dtype=jnp.float32) < settings.random_move_prob)
    action = jnp.where(is_random, game.sample_action(state, key_action), action)
    return positions, kept, game.apply(state, action)


def play(game: Game[Any], settings: Settings, number: int, decide: Any) -> Positions[Any]:
    """Play a batch of games with the compiled ``decide``, and return their positions, ``[N, ...]``.

    The outcome target of positions inside of trees is the value of the search, because the game did not pass through them.
    """
    key_init, key_plies, key = jax.random.split(jax.random.fold_in(jax.random.key(settings.seed), number), 3)
    state = jax.vmap(game.init)(jax.random.split(key_init, settings.batch))
    random_plies = jax.random.randint(key_plies, (settings.batch,), 0, settings.random_plies + 1, jnp.int32)
    is_terminal, parts, games = jax.jit(jax.vmap(game.is_terminal)), list[Any](), list[Any]()
    last, played = jax.tree.map(np.array, state), np.arange(settings.batch)
    while not (over := np.asarray(is_terminal(state))).all():
        if len(over) >= 2 * MIN_BATCH and over.sum() >= len(over) // 2:
            going_on = np.argsort(over, stable=True)[: -(-len(over) // 2)]
            played, state = played[going_on], jax.tree.map(lambda leaf, rows=going_on: leaf[rows], state)
        keys = jax.random.split(jax.random.fold_in(key, len(parts)), settings.batch)
        positions, kept, state = decide(state, jnp.int32(len(parts)), random_plies[played], keys[played])
        positions, kept, now = jax.device_get((positions, kept, state))
        parts.append(jax.tree.map(lambda leaf, kept=kept: leaf[kept], positions))
        games.append(played[np.nonzero(kept)[0]])
        for whole, part in zip(jax.tree.leaves(last), jax.tree.leaves(now), strict=True):
            whole[played] = part
    all_positions: Positions[Any] = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    index: Any = np.concatenate(games).astype(np.int32)
    returns, scores = jax.device_get(jax.jit(jax.vmap(lambda state: (game.returns(state), game.heuristic_value(state))))(last))
    searched = np.asarray(all_positions.surprise)[:, None] >= 0
    return replace(
        all_positions,
        game_index=index,
        returns=returns[index],
        outcome_target=np.where(searched, returns[index], all_positions.root_value),  # type: ignore[arg-type]
        score_value=np.where(searched, scores[index], 0).astype(np.float32),  # type: ignore[arg-type]
    )


def save(path: Path, positions: Positions[Any]) -> None:
    """Write positions to a file."""
    with replacing(path, "wb") as file:
        np.savez_compressed(file, **{f"a{index}": leaf for index, leaf in enumerate(jax.tree.leaves(positions))})


def load(game: Game[Any], path: Path) -> Positions[Any]:
    """Read the positions in a file. Raises ``ValueError`` for damaged files and positions of other games."""
    like = jax.eval_shape(lambda: replay.empty(game, 1, 1, 1).positions)
    try:
        with np.load(path, allow_pickle=False) as archive:
            leaves = [archive[f"a{index}"] for index in range(len(archive.files))]
            positions: Positions[Any] = jax.tree.unflatten(jax.tree.structure(like), leaves)
    except (EOFError, KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile):
        raise ValueError(f"{path} is damaged, or is not a file of positions of {game.id}") from None
    given = [(leaf.shape[1:], leaf.dtype) for leaf in jax.tree.leaves(positions.state)]
    if given != [(leaf.shape[2:], leaf.dtype) for leaf in jax.tree.leaves(like.state)]:
        raise ValueError(f"{path} has positions of another game than {game.id}, or of other options")
    return positions


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        settings = from_arguments(Settings, sys.argv[1:] if arguments is None else arguments)
        game = make_game(settings.game, game_options(settings.game, assignments(settings.set, "--set", "OPTION")))
        teacher = agent(settings.agent, game)
        if not isinstance(teacher.built(), Search):
            raise ValueError(f"the game must not have hidden information, got {game.id}")
        settings.out.mkdir(parents=True, exist_ok=True)
        compiled = jax.jit(jax.vmap(partial(decide, game, settings), in_axes=(None, 0, None, 0, 0)))
        for number in range(settings.batches):
            path, start = settings.out / f"{number:06}.npz", time.process_time()
            if path.exists():
                continue
            positions = play(game, settings, number, partial(compiled, teacher))
            save(path, positions)
            searched, seconds = int(np.sum(positions.surprise >= 0)), time.process_time() - start
            inside = len(positions.surprise) - searched
            print(f"{path.name}  {searched} positions and {inside} inside of trees, {seconds:.0f} CPU s", flush=True)
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
