"""Games of a search against itself, kept in files: positions, what the search made of them, and how their games ended.

    python -m experiments.imitation.teacher --game duo_official --out teacher

Networks are compared by what they learn from the same games (``experiments.imitation.imitation``). Games begin with some random
actions, and one action in a few is random later on, so that there are positions in which somebody has erred. Beside the
positions that were searched, those are kept that their trees have visited most: an evaluator is asked about positions like
these, and there are many more of them.
"""

import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray
from numpy.typing import NDArray

from tilewe_jax.agents.levels import agent_of
from tilewe_jax.game import Game, state_shapes
from tilewe_jax.networks import weights
from tilewe_jax.registry import game_options, make_game
from tilewe_jax.search import AgentSpec, Network, Search, build_search
from tilewe_jax.search.exported import as_tree
from tilewe_jax.search.tree import ROOT, Tree, inner_visits
from tilewe_jax.settings import assignments, from_arguments, setting, validate
from tilewe_jax.utils.files import replacing


@dataclass(frozen=True)
class Settings:
    """Play games of a search against itself, and keep its positions in a folder, one file for each batch of games.

    The same command goes on from the files in the folder. Results are the same for the same settings and the same kind of
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
    """The search that plays, without a network or with one; any that ``tilewe-jax match`` knows."""
    batches: int = setting(40, 1)
    """Number of files, in all."""
    batch: int = setting(256, 1)
    """Number of games in a file, played at once."""
    random_plies: int = setting(4, 0)
    """Games begin with up to so many random actions, whose positions are not kept."""
    temperature_plies: int = setting(8, 0)
    """The actions of the plies before this one are drawn in proportion to their visits."""
    random_move_prob: float = setting(0.05, 0, 1)
    """Probability that an action is random all the same."""
    num_nodes: int = setting(4, 0)
    """Number of positions inside of each tree that are kept."""
    seed: int = setting(0, 0)
    """Seed of the games."""

    def __post_init__(self) -> None:
        validate(self)


class Positions(NamedTuple):
    """Positions as NumPy arrays; N of them, P players, K candidates."""

    state: Any
    """States, ``[N, ...]``."""
    value: NDArray[np.float32]
    """``[N, P]``: mean value in the search, by seat."""
    value_visits: NDArray[np.int32]
    """``[N]``: number of the evaluations of which it is the mean."""
    candidates: NDArray[np.int32]
    """``[N, K]``: actions, -1 in places left over, as in all places of positions inside of trees."""
    visits: NDArray[np.uint16]
    """``[N, K]``: visits of the candidates."""
    game: NDArray[np.int32]
    """``[N]``: index of the game; that of the root for positions inside of its tree."""
    final: Any
    """States at the ends of the games, ``[G, ...]``."""


class _Ply(NamedTuple):
    """What is kept of a ply of G games: their roots, and M positions inside of each tree."""

    state: Any
    value: Float32[Array, "G P"]
    value_visits: Int32[Array, "G"]
    candidates: Int32[Array, "G K"]
    visits: Int32[Array, "G K"]
    kept: Bool[Array, "G"]
    """Whether the position is one to keep: the game was not over, and its random beginning was."""
    node_state: Any
    node_value: Float32[Array, "G M P"]
    node_visits: Int32[Array, "G M"]


Decide = Callable[[Any, Int32[Array, ""], Int32[Array, "G"], PRNGKeyArray], tuple[_Ply, Any]]


def decide(
    game: Game[Any],
    settings: Settings,
    network: Network | None,
    state: Any,
    ply: Int32[Array, ""],
    random_plies: Int32[Array, ""],
    key: PRNGKeyArray,
) -> tuple[_Ply, Any]:
    """Search a position, and choose an action. Returns what is kept, and the next position; for one game."""
    key_search, key_draw, key_random, key_action = jax.random.split(key, 4)
    search = build_search(AgentSpec.parse(agent_of(game, settings.agent)), game, network)
    assert isinstance(search, Search)
    output = search(state, key_search)
    tree: Tree[Any] = output.tree
    node_visits, nodes = jax.lax.top_k(inner_visits(tree), settings.num_nodes)
    mean_value = tree.value_sum / jnp.maximum(tree.visits, 1).astype(jnp.float32)[:, None]
    kept = _Ply(
        state=state,
        value=output.value,
        value_visits=tree.visits[ROOT],
        candidates=output.candidates,
        visits=output.visits,
        kept=~game.is_terminal(state) & (ply >= random_plies),
        node_state=jax.tree.map(lambda leaf: leaf[nodes], tree.state),
        node_value=mean_value[nodes],
        node_visits=node_visits,
    )
    drawn = output.candidates[jax.random.categorical(key_draw, jnp.log(output.visits.astype(jnp.float32)))]
    action = jnp.where((ply < settings.temperature_plies) & (jnp.max(output.visits) > 0), drawn, output.action)
    is_random = (ply < random_plies) | (jax.random.uniform(key_random, dtype=jnp.float32) < settings.random_move_prob)
    action = jnp.where(is_random, game.sample_action(state, key_action), action)
    return kept, game.apply(state, action)


def play(game: Game[Any], settings: Settings, number: int, decide: Decide) -> Positions:
    """Play a batch of games to their ends.

    Args:
        game: the game.
        settings: the settings.
        number: number of the batch.
        decide: ``decide``, compiled for a batch.
    """
    key_init, key_plies, key = jax.random.split(jax.random.fold_in(jax.random.key(settings.seed), number), 3)
    state = jax.vmap(game.init)(jax.random.split(key_init, settings.batch))
    random_plies = jax.random.randint(key_plies, (settings.batch,), 0, settings.random_plies + 1, jnp.int32)
    over, plies = jax.jit(jax.vmap(game.is_terminal)), list[_Ply]()
    while not bool(jnp.all(over(state))):
        keys = jax.random.split(jax.random.fold_in(key, len(plies)), settings.batch)
        kept, state = decide(state, jnp.int32(len(plies)), random_plies, keys)
        plies.append(jax.device_get(kept))
    return _positions(plies, jax.device_get(state))


def _positions(plies: list[_Ply], final: Any) -> Positions:
    """The kept positions of a batch: those that were searched, then those inside of trees."""
    ply: _Ply = jax.tree.map(lambda *leaves: np.stack(leaves), *plies)
    roots, inside = ply.kept, ply.kept[..., None] & (ply.node_visits > 0)
    games = np.broadcast_to(np.arange(roots.shape[1], dtype=np.int32), roots.shape)
    nothing = (np.count_nonzero(inside), ply.candidates.shape[-1])

    def join(root: Any, node: Any) -> Any:
        return jax.tree.map(lambda a, b: np.concatenate([a[roots], b[inside]]), root, node)

    return Positions(
        state=join(ply.state, ply.node_state),
        value=join(ply.value, ply.node_value),
        value_visits=join(ply.value_visits, ply.node_visits),
        candidates=np.concatenate([ply.candidates[roots], np.full(nothing, -1, np.int32)]),
        visits=np.concatenate([ply.visits[roots], np.zeros(nothing)]).astype(np.uint16),
        game=join(games, np.broadcast_to(games[..., None], inside.shape)),
        final=final,
    )


def save(path: Path, positions: Positions) -> None:
    """Write positions to a file."""
    arrays = {f"a{index}": leaf for index, leaf in enumerate(jax.tree.leaves(positions))}
    with replacing(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def load(game: Game[Any], path: Path) -> Positions:
    """The positions in a file. Raises ``ValueError`` where it holds none of this game."""
    states = state_shapes(game)
    tree = jax.tree.structure((states, *[0] * (len(Positions._fields) - 2), states))
    try:
        with np.load(path, allow_pickle=False) as archive:
            leaves = [archive[f"a{index}"] for index in range(len(archive.files))]
            positions = Positions(*jax.tree.unflatten(tree, leaves))
    except (EOFError, KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile):
        raise ValueError(f"{path} is not what this program has written of {game.id}, or is damaged") from None
    given = [(leaf.shape[1:], leaf.dtype) for leaf in jax.tree.leaves(positions.state)]
    if given != [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(states)]:
        raise ValueError(f"{path} has positions of another game than {game.id}, or of other options")
    return positions


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        settings = from_arguments(Settings, sys.argv[1:] if arguments is None else arguments)
        game = make_game(settings.game, game_options(settings.game, assignments(settings.set, "--set", "OPTION")))
        spec = AgentSpec.parse(agent_of(game, settings.agent))
        network = weights.load(game, spec.evaluator.network) if spec.evaluator.network else None
        if not isinstance(build_search(spec, game, network), Search):
            raise ValueError(f"positions are kept of games without hidden information, not of {game.id}")
        settings.out.mkdir(parents=True, exist_ok=True)
        compiled = jax.jit(jax.vmap(partial(decide, game, settings), in_axes=(None, 0, None, 0, 0)))
        mapped = partial(compiled, None if network is None else as_tree(network))
        for number in range(settings.batches):
            path = settings.out / f"{number:06}.npz"
            if path.exists():
                continue
            start = time.process_time()
            positions = play(game, settings, number, mapped)
            save(path, positions)
            searched = int(np.sum(positions.visits.max(axis=1) > 0))
            inside, seconds = len(positions.game) - searched, time.process_time() - start
            print(f"{path.name}  {searched} positions and {inside} inside of trees, {seconds:.0f} CPU s", flush=True)
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
