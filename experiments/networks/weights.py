"""Files of weights: half precision, with the settings of the run that made them. The shipped ones are found by name."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments import networks
from experiments.config import Config, from_json
from search.exported import Network
from search.exported import load as load_other
from tilewe_jax.files import replacing
from tilewe_jax.game import Game

FOLDER = Path(__file__).parents[1] / "weights"
_ABOUT = "about"


@dataclass(frozen=True)
class Weights:
    """A network that was trained."""

    model: networks.Model
    config: Config
    about: dict[str, Any]
    """What it was trained on: ``round``, ``games``, ``hours``, ``game_version``."""


def save(path: Path, model: networks.Model, config: Config, about: dict[str, Any]) -> None:
    """Write weights in half precision, and where they come from."""
    arrays: dict[str, Any] = {f"w{i}": np.asarray(leaf).astype(np.float16) for i, leaf in enumerate(jax.tree.leaves(model))}
    arrays[_ABOUT] = np.array(json.dumps({**about, "config": config.json()}))
    with replacing(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def read(game: Game[Any], path: Path, of_any_game: bool = False) -> Weights:
    """The weights in a file that ``save`` has written; also those ``of_any_game`` with a network of the same shape.

    Raises ``ValueError`` where there are none, or where they are for another game, or for another version of it.
    """
    try:
        with np.load(path) as file:
            about = json.loads(str(file[_ABOUT]))
            arrays = [file[f"w{i}"] for i in range(len(file.files) - 1)]
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except Exception:  # what the parsers of the formats raise is not documented
        raise ValueError(f"{path} is not a file of weights, as training writes it") from None
    config = from_json(about.pop("config"))
    if not of_any_game and config.make() != game:
        raise ValueError(f"{path} is for {_name(config.make())}, not for {_name(game)}")
    if not of_any_game and about["game_version"] != game.version:
        raise ValueError(f"{path} is for version {about['game_version']} of {game.id}, not for {game.version}")
    like = jax.eval_shape(lambda: networks.make(game, config.network, jax.random.key(0)))
    shapes, tree = jax.tree.flatten(like)
    if [leaf.shape for leaf in shapes] != [array.shape for array in arrays]:
        raise ValueError(f"{path} holds other arrays than a network {config.network!r} for {game.id} has")
    return Weights(jax.tree.unflatten(tree, [jnp.asarray(array, jnp.float32) for array in arrays]), config, about)


def names() -> list[str]:
    """The weights that are shipped."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def find(name: str) -> Path | None:
    """The file of weights that a name stands for: a shipped one, or a path."""
    if name in names():
        return FOLDER / f"{name}.npz"
    return Path(name) if name.endswith(".npz") else None


def load(game: Game[Any], name: str) -> Network:
    """The network of this name: shipped weights, a file of weights, or whatever ``search.exported.load`` finds.

    Raises ``ValueError`` where there is none, or none for this game.
    """
    path = find(name)
    if path is None:
        try:
            return load_other(game, name)
        except ValueError as error:
            raise ValueError(f"{error}; shipped are {', '.join(names()) or 'none'}") from None
    weights = read(game, path)
    return TrainedNetwork(weights.model, weights.config.margin)


class TrainedNetwork(eqx.Module):
    """A network as searches call it."""

    model: networks.Model
    score_weight: float = eqx.field(static=True)
    """Weight of the score utility in its values, which searches take over."""

    def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Logits and shares."""
        return networks.predict(self.model, observation, self.score_weight)


def _name(game: Game[Any]) -> str:
    options = ", ".join(f"{name}={value}" for name, value in game.options.items())
    return f"{game.id} ({options})" if options else game.id
