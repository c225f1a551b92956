"""Files of weights in half precision, with what they were trained for. The shipped ones are found by name.

A file is an ``.npz`` archive: arrays ``w0``, ``w1``, ... in the order of the network's leaves, and ``about``, a JSON object
with the fields of ``Description`` and ``game_version``, what the run says of itself, and all its settings. Files of the first
format, which the shipped ones have, hold flat settings instead of a description; ``_description`` reads what is needed of them.
"""

import json
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments.networks.base import Model, predict
from experiments.networks.registry import DEFAULT, make
from search.exported import Network
from search.exported import load as load_exported
from tilewe_jax import registry
from tilewe_jax.files import replacing
from tilewe_jax.game import Game

FOLDER = Path(__file__).parents[1] / "weights"
_ABOUT = "about"
_FORMAT = 2


@dataclass(frozen=True)
class Description:
    """What weights are for: a game, and a network of it."""

    game: str
    """Id of the game."""
    options: dict[str, Any]
    """Its options that differ from the defaults."""
    architecture: str
    """Name of the network's architecture."""
    size: str
    """Name of the network's size."""
    score_weight: float
    """Weight of the score in values with which the network was trained."""


@dataclass(frozen=True)
class Weights:
    """A trained network, as it was read from a file."""

    model: Model
    """The network with its weights."""
    description: Description
    """What it was trained for."""
    about: dict[str, Any]
    """What the run said of it, like ``games`` and ``hours``, and under ``config`` its settings."""
    note: str | None = None
    """In which way the game is another one than that which it was trained for; ``None`` where it is the same."""


def save(path: Path, model: Model, description: Description, game_version: int, about: dict[str, Any]) -> None:
    """Write weights in half precision, with what they are for and where they come from."""
    arrays: dict[str, Any] = {f"w{i}": np.asarray(leaf).astype(np.float16) for i, leaf in enumerate(jax.tree.leaves(model))}
    arrays[_ABOUT] = np.array(
        json.dumps({"format": _FORMAT, **asdict(description), "game_version": game_version, **about}),
    )
    with replacing(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def read(game: Game[Any], path: Path, any_game: bool = False) -> Weights:
    """The weights in a file, for a game.

    They load where all arrays fit a network for the game and the rules are the same: options may differ, and then ``note`` says
    how. With ``any_game`` the rules may differ too.

    Raises ``ValueError`` where the file cannot be read, or is for other rules, or holds other arrays, naming the difference.
    """
    about, arrays = _contents(path)
    try:
        description, version = _description(about), about["game_version"]
        trained_for = registry.make(description.game, **description.options)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not say what it is for: {error}") from None
    if not any_game and trained_for.id != game.id:
        raise ValueError(f"{path} is for {_name(trained_for)}, not for {_name(game)}: the rules differ")
    if not any_game and version != game.version:
        raise ValueError(f"{path} is for version {version} of {game.id}, not for {game.version}: the rules differ")
    note = None
    if trained_for != game:
        changes = f": {'; '.join(_differences(trained_for, game))}" if trained_for.id == game.id else ""
        note = f"{path.name} was trained for {_name(trained_for)}, not for {_name(game)}{changes}"
    model = _fill(game, description, arrays, f"{path} does not fit", note)
    return Weights(model, description, about, note)


def names() -> list[str]:
    """Names of the weights that are shipped."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def find(name: str) -> Path | None:
    """The file of weights that a name stands for: a shipped one, or a path; ``None`` for other names."""
    if name in names():
        return FOLDER / f"{name}.npz"
    return Path(name) if name.endswith(".npz") else None


def load(game: Game[Any], name: str) -> Network:
    """The network of a name: shipped weights, a file of weights, or whatever ``search.exported.load`` finds.

    ``TrainedNetwork.note`` says where weights were trained for other options of the game. Raises ``ValueError`` where there is
    no such network, or none for this game.
    """
    path = find(name)
    if path is None:
        try:
            return load_exported(game, name)
        except ValueError as error:
            raise ValueError(f"{error}; shipped are {', '.join(names()) or 'none'}") from None
    weights = read(game, path)
    return TrainedNetwork(weights.model, weights.description.score_weight, weights.note)


class TrainedNetwork(eqx.Module):
    """A trained network in the form in which searches ask it."""

    model: Model
    """The network with its weights."""
    score_weight: float = eqx.field(static=True)
    """Weight of the score in its values, which searches take over."""
    note: str | None = eqx.field(static=True, default=None)
    """See ``Weights.note``."""

    def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Policy logits, and values by relative seat."""
        return predict(self.model, observation, self.score_weight)


def _contents(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What a file says of itself, and its arrays."""
    try:
        # Opened here, as NumPy leaves it open where it is damaged.
        with path.open("rb") as stream, np.load(stream) as file:
            about = json.loads(str(file[_ABOUT]))
            arrays = [file[f"w{i}"] for i in range(len(file.files) - 1)]
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, TypeError, NotImplementedError) as error:
        raise ValueError(f"{path} is not a file of weights, as training writes it: {error or type(error).__name__}") from None
    if not isinstance(about, dict):
        raise ValueError(f"{path} is not a file of weights, as training writes it: {_ABOUT} is no JSON object")
    return about, arrays


def _description(about: dict[str, Any]) -> Description:
    """What weights are for. Raises ``KeyError`` or ``ValueError`` where a file does not say."""
    if "format" not in about:  # the first format: flat settings, one architecture per game
        flat = about["config"]
        return Description(flat["game"], dict(flat["options"]), DEFAULT, flat["network"], flat["margin"])
    if about["format"] != _FORMAT:
        raise ValueError(f"it has format {about['format']}, not {_FORMAT}")
    return Description(*(about[name] for name in Description.__dataclass_fields__))


def _fill(game: Game[Any], description: Description, arrays: list[np.ndarray], problem: str, note: str | None) -> Model:
    """The described network for a game, with these arrays as its weights."""
    why = f" ({note})" if note else ""
    try:
        like = jax.eval_shape(lambda: make(game, description.architecture, description.size, jax.random.key(0)))
    except ValueError as error:
        raise ValueError(f"{problem}: {error}{why}") from None
    wanted, tree = jax.tree_util.tree_flatten_with_path(like)
    network = f"a network {description.architecture} {description.size} for {_name(game)}"
    if len(wanted) != len(arrays):
        raise ValueError(f"{problem}: it holds {len(arrays)} arrays, and {network} has {len(wanted)}{why}")
    for (place, leaf), array in zip(wanted, arrays, strict=True):
        if leaf.shape != array.shape:
            name = jax.tree_util.keystr(place).lstrip(".")
            raise ValueError(f"{problem}: its {name} has shape {array.shape}, that of {network} {leaf.shape}{why}")
    model: Model = jax.tree.unflatten(tree, [jnp.asarray(array, jnp.float32) for array in arrays])
    return model


def _differences(before: Game[Any], after: Game[Any]) -> list[str]:
    """The options in which two games of the same id differ."""
    defaults = {name: parameter.default for name, parameter in registry.options(after.id).items()}
    sides = [{**defaults, **game.options} for game in (before, after)]
    return [f"{name} was {sides[0][name]} and is {sides[1][name]}" for name in defaults if sides[0][name] != sides[1][name]]


def _name(game: Game[Any]) -> str:
    options = ", ".join(f"{name}={value}" for name, value in game.options.items())
    return f"{game.id} ({options})" if options else game.id
