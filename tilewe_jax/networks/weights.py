"""Files of weights in half precision, with metadata. Shipped weights are found by name.

A file is an ``.npz`` archive: arrays ``w0``, ``w1``, ... in the order of the network's leaves, and ``about``, a JSON object
with the fields of ``Description``, ``game_version``, and figures and settings of the run. Files of the first format, which the
shipped weights have, hold flat settings instead of a description.

Files are not trusted: nothing is unpickled or run, and arrays are read only if their shapes fit the network. An architecture
``module:factory`` in a file is refused unless the caller trusts the file (``tilewe_jax.utils.trust``).
"""

import json
import math
import os
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import equinox as eqx
import jax
import numpy as np

from tilewe_jax import registry
from tilewe_jax.game import Game
from tilewe_jax.networks.base import Model, predict
from tilewe_jax.networks.registry import DEFAULT, make
from tilewe_jax.search.exported import Network, NetworkInterface
from tilewe_jax.search.exported import load as load_exported
from tilewe_jax.utils.files import JSON_LIMIT, open_input, parse_json, replacing
from tilewe_jax.utils.trust import check, trusting
from tilewe_jax.utils.words import did_you_mean

FOLDER = Path(__file__).parents[1] / "weights"
FILE_LIMIT = 1 << 32
"""Maximum size of a file that is read, in bytes."""
_ABOUT = "about"
_DIRECTORY_LIMIT = 1 << 20
"""Maximum size of the directory of an archive, in bytes; enough for about ten thousand arrays."""
_ZIP_TAIL = 42
"""Length of the last two records of a zip file, in bytes. Only 64-bit archives have the first of them."""
_FORMAT = 2


@dataclass(frozen=True)
class Description:
    """Game and network that weights belong to."""

    game: str
    """Id of the game."""
    options: dict[str, Any]
    """Options of the game that differ from the defaults."""
    architecture: str
    """Name of the network's architecture."""
    size: str
    """Name of the network's size."""
    score_weight: float
    """Weight of the score in the values of the training's searches."""


@dataclass(frozen=True)
class Weights:
    """A trained network from a file."""

    model: Model
    """The network with its weights."""
    description: Description
    """Game and network of the training."""
    about: dict[str, Any]
    """Metadata stored in the file, such as ``games``, ``hours`` and the settings of the run, ``config``."""
    note: str | None = None
    """How the game differs from the game of the training; ``None`` if they are equal."""


def save(path: Path, model: Model, description: Description, game_version: int, about: dict[str, Any]) -> None:
    """Write weights in half precision, with their description and further metadata ``about``."""
    arrays: dict[str, Any] = {f"w{i}": np.asarray(leaf).astype(np.float16) for i, leaf in enumerate(jax.tree.leaves(model))}
    arrays[_ABOUT] = np.array(
        json.dumps({"format": _FORMAT, **asdict(description), "game_version": game_version, **about}),
    )
    with replacing(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def read(game: Game[Any], path: Path, any_game: bool = False, trust: bool = False, known: str = "") -> Weights:
    """Read the weights in a file for a game.

    Args:
        game: the game. Its options may differ from those of the training, see ``Weights.note``.
        path: the file.
        any_game: accepts weights that were trained for other rules.
        trust: whether the file may name code as its architecture, ``module:factory``.
        known: architecture of the caller, which is accepted without ``trust``.

    Raises ``ValueError``, which names the difference, for files that cannot be read, other rules, and other arrays.
    """
    try:
        with open_input(path, FILE_LIMIT) as file, trusting(trust):
            return _read(game, path, file, any_game, known)
    except _DamagedError as error:
        raise ValueError(f"{path} is not a file of weights: {error}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None


def _read(game: Game[Any], path: Path, file: BinaryIO, any_game: bool, known: str) -> Weights:
    """Read the weights in an open file, see ``read``."""
    archive = _open(file)
    about = _about(archive)
    try:
        description, version = _description(about), about["game_version"]
        trained_for = registry.make(description.game, **description.options)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} has no valid description of its game and network: {error}") from None
    if not any_game and trained_for.id != game.id:
        raise ValueError(f"{path} is for {_name(trained_for)}, not for {_name(game)}: the rules differ")
    if not any_game and version != game.version:
        raise ValueError(f"{path} is for version {version} of {game.id}, not for {game.version}: the rules differ")
    if ":" in description.architecture and description.architecture != known:
        check(path, "architecture", description.architecture)
    note = None
    if trained_for != game:
        changes = f": {'; '.join(_differences(trained_for, game))}" if trained_for.id == game.id else ""
        note = f"{path.name} was trained for {_name(trained_for)}, not for {_name(game)}{changes}"
    model = _fill(game, description, archive, f"{path} does not fit", note, _registered_by(about))
    return Weights(model, description, about, note)


def names() -> list[str]:
    """Return the names of the shipped weights."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def find(name: str) -> Path | None:
    """Return the file of shipped weights of this name, the path itself, or the newest weights in the folder of a run.

    Returns ``None`` for other names.
    """
    if name in names():
        return FOLDER / f"{name}.npz"
    if name.endswith(".npz"):
        return Path(name)
    return max(Path(name, "weights").glob("*.npz"), default=None)  # names are iterations with leading zeros


def not_found(what: str, name: str) -> str:
    """Return an error message for a name without weights; ``what`` is the setting."""
    if Path(name, "config.json").is_file():
        reason = "the run has no weights yet; train writes them at each evaluation"
    elif Path(name).is_dir():
        reason = "it is a folder, but not the folder of a run"
    else:
        known = names()
        reason = f"not found{did_you_mean(name, known)}; must be one of {', '.join(known)}, a file, or the folder of a run"
    return f"{what} {name!r}: {reason}"


def read_initial(game: Game[Any], name: str, setting: str, known: str = "") -> Weights:
    """Read the initial weights of a training run by name, from any game whose arrays have the same shapes.

    ``known`` is the architecture of the run, see ``read``. Raises ``ValueError``, which names the setting, for unknown weights
    and for weights that do not fit.
    """
    path = find(name)
    if path is None:
        raise ValueError(not_found(setting, name))
    return read(game, path, any_game=True, known=known)


def load(game: Game[Any], name: str, trust: bool = False) -> Network:
    """Load a network by name: weights (see ``find``), an exported file, or ``module:factory`` (see ``search.exported.load``).

    ``trust`` allows weights to name code, see ``read``. Raises ``ValueError`` for unknown networks and networks of other games.
    """
    path = find(name)
    if path is None:
        if ":" not in name and not Path(name).is_file():
            raise ValueError(not_found("network", name))
        return load_exported(game, name)
    weights = read(game, path, trust=trust)
    return TrainedNetwork(weights.model, weights.description.score_weight, weights.note)


class TrainedNetwork(eqx.Module):
    """A trained network as a ``search.exported.Network``."""

    model: Model
    """The network with its weights."""
    score_weight: float = eqx.field(static=True)
    """Weight of the score in the values, also the default of searches."""
    note: str | None = eqx.field(static=True, default=None)
    """See ``Weights.note``."""

    @property
    def interface(self) -> NetworkInterface | None:
        """Custom interface of the model, or ``None``."""
        interface: NetworkInterface | None = getattr(self.model, "interface", None)
        return interface

    def __call__(self, observation: Any) -> tuple[jax.Array, jax.Array]:
        """Return policy logits, and values by relative seat."""
        return predict(self.model, observation, self.score_weight)


class _DamagedError(ValueError):
    """Raised for a file that is not an archive of arrays in the format of ``save``."""


class _OtherArrayError(ValueError):
    """Raised for an array of another shape or dtype. The message follows its name."""


def _open(file: BinaryIO) -> zipfile.ZipFile:
    """Open the archive in an ``.npz`` file. Raises ``_DamagedError`` for archives that NumPy does not write."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _ZIP_TAIL))
    tail = file.read()
    # NumPy writes no comment, and a 64-bit directory only for more than 65,535 arrays.
    if tail[-22:-18] != b"PK\5\6" or tail[-42:-38] == b"PK\6\7":
        raise _DamagedError("it is not an .npz archive")
    if int.from_bytes(tail[-10:-6], "little") > _DIRECTORY_LIMIT:
        raise _DamagedError("it holds too many arrays")
    try:
        archive = zipfile.ZipFile(file)
    except Exception as error:  # a damaged directory raises exceptions that are not documented
        raise _DamagedError(f"it is not an .npz archive: {error}") from None
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in archive.infolist()):
        raise _DamagedError("its compression is not that of NumPy")  # zipfile does not bound the memory of other methods
    return archive


def _array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Read an array of the given shape and kind of dtype, without unpacking more bytes than it has.

    Raises ``_OtherArrayError`` for another shape or dtype, and ``_DamagedError`` if the array is missing or damaged.
    """
    try:
        with archive.open(f"{name}.npy") as member:
            if np.lib.format.read_magic(member) != (1, 0):
                raise ValueError("unknown version of the npy format")
            given, fortran, dtype = np.lib.format.read_array_header_1_0(member)
            fits = given == shape and dtype.kind == kind and dtype.itemsize <= JSON_LIMIT
            size = math.prod(shape) * dtype.itemsize
            data = member.read(size + 1) if fits else b""
        if fits and len(data) != size:
            raise ValueError(f"its size does not match its shape {shape}")
        if fits:
            return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    except Exception as error:  # zipfile, zlib and the parser of the header raise exceptions that are not documented
        raise _DamagedError(f"array {name} cannot be read: {error or type(error).__name__}") from None
    raise _OtherArrayError(f"has shape {given}" if given != shape else f"has dtype {dtype}")


def _about(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Read the metadata of a file."""
    try:
        about = parse_json(str(_array(archive, _ABOUT, (), "U")))
    except ValueError as error:
        raise _DamagedError(f"{_ABOUT}: {error}") from None
    if not isinstance(about, dict):
        raise _DamagedError(f"{_ABOUT} is not a JSON object")
    return about


def _description(about: dict[str, Any]) -> Description:
    """Return the description in the metadata. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if it is not valid."""
    if "format" not in about:  # the first format, with flat settings and one architecture per game
        flat = about["config"]
        given = (flat["game"], dict(flat["options"]), DEFAULT, flat["network"], flat["margin"])
    elif about["format"] != _FORMAT:
        raise ValueError(f"it has format {about['format']}, not {_FORMAT}")
    else:
        given = tuple(about[name] for name in Description.__dataclass_fields__)
    game, options, architecture, size, score_weight = given
    if not isinstance(options, dict) or not all(isinstance(text, str) for text in (game, architecture, size)):
        raise ValueError("game, architecture and size must be texts, and options an object")
    if type(score_weight) not in (int, float) or not 0 <= score_weight <= 1:
        raise ValueError(f"score_weight must be between 0 and 1, not {score_weight!r}")
    return Description(game, options, architecture, size, float(score_weight))


def _registered_by(about: dict[str, Any]) -> str:
    """Return the module or file that registered the architecture from the run's settings; empty if unknown."""
    config = about.get("config")
    network = config.get("network") if isinstance(config, dict) else None
    module = network.get("registered_by") if isinstance(network, dict) else None
    return module if isinstance(module, str) else ""


def _fill(
    game: Game[Any], description: Description, archive: zipfile.ZipFile, problem: str, note: str | None, registered_by: str
) -> Model:
    """Return the described network for a game, with the arrays of a file as its weights."""
    why = f" ({note})" if note else ""
    try:
        like = jax.eval_shape(lambda: make(game, description.architecture, description.size, jax.random.key(0), registered_by))
    except ValueError as error:
        raise ValueError(f"{problem}: {error}{why}") from None
    wanted, tree = jax.tree_util.tree_flatten_with_path(like)
    network = f"a network {description.architecture} {description.size} for {_name(game)}"
    count = len(archive.namelist()) - 1
    if len(wanted) != count:
        raise ValueError(f"{problem}: it holds {count} arrays, and {network} has {len(wanted)}{why}")
    arrays = []
    for index, (place, leaf) in enumerate(wanted):
        its = f"{problem}: its {jax.tree_util.keystr(place).lstrip('.')}"
        try:
            with np.errstate(over="ignore"):
                array = _array(archive, f"w{index}", leaf.shape, "f").astype(np.float32)
        except _OtherArrayError as error:
            raise ValueError(f"{its} {error}; {network} needs shape {leaf.shape} and floating-point numbers{why}") from None
        if not np.isfinite(array).all():
            raise ValueError(f"{its} has values that are not finite")
        arrays.append(array)
    # ``jnp.asarray`` would compile a program for each shape.
    model: Model = jax.tree.unflatten(tree, jax.device_put(arrays))
    return model


def _differences(before: Game[Any], after: Game[Any]) -> list[str]:
    """Describe the options in which two games with the same id differ."""
    defaults = {name: parameter.default for name, parameter in registry.options(after.id).items()}
    sides = [{**defaults, **game.options} for game in (before, after)]
    return [f"{name} was {sides[0][name]}, now {sides[1][name]}" for name in defaults if sides[0][name] != sides[1][name]]


def _name(game: Game[Any]) -> str:
    options = ", ".join(f"{name}={value}" for name, value in game.options.items())
    return f"{game.id} ({options})" if options else game.id
