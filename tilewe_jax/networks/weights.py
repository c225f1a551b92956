"""Files of weights in half precision, with what they were trained for. The shipped ones are found by name.

A file is an ``.npz`` archive: arrays ``w0``, ``w1``, ... in the order of the network's leaves, and ``about``, a JSON object
with the fields of ``Description`` and ``game_version``, what the run says of itself, and all its settings. Files of the first
format, which the shipped ones have, hold flat settings instead of a description; ``_description`` reads what is needed of them.

Files may come from anybody: nothing in them is unpickled or run, and no array is read before its shape is known to fit. An
architecture ``module:factory`` in a file is refused unless the caller trusts the file (``tilewe_jax.utils.trust``).
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
import jax.numpy as jnp
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
"""Maximum size of the directory of an archive, in bytes: about ten thousand arrays."""
_ZIP_TAIL = 42
"""Bytes of the last two records at the end of a zip file, the first of which 64-bit archives have only."""
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


def read(game: Game[Any], path: Path, any_game: bool = False, trust: bool = False, known: str = "") -> Weights:
    """The weights in a file, for a game.

    They load where all arrays fit a network for the game and the rules are the same: options may differ, and then ``note`` says
    how. With ``any_game`` the rules may differ too. An architecture ``module:factory`` is code, which is imported only if
    ``trust`` says that the file may name it, or if it is the ``known`` architecture of the caller's run.

    Raises ``ValueError`` where the file cannot be read, or is for other rules, or holds other arrays, naming the difference.
    """
    try:
        with open_input(path, FILE_LIMIT) as file, trusting(trust):
            return _read(game, path, file, any_game, known)
    except _DamagedError as error:
        raise ValueError(f"{path} is not a file of weights, as training writes it: {error}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None


def _read(game: Game[Any], path: Path, file: BinaryIO, any_game: bool, known: str) -> Weights:
    """The weights in an opened file, see ``read``."""
    archive = _open(file)
    about = _about(archive)
    try:
        description, version = _description(about), about["game_version"]
        trained_for = registry.make(description.game, **description.options)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not say what it is for: {error}") from None
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
    """Names of the weights that are shipped."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def find(name: str) -> Path | None:
    """The file of weights that a name stands for; ``None`` for other names.

    A name is that of shipped weights, a path, or the folder of a run of training, whose newest weights are meant.
    """
    if name in names():
        return FOLDER / f"{name}.npz"
    if name.endswith(".npz"):
        return Path(name)
    return max(Path(name, "weights").glob("*.npz"), default=None)  # their names are numbers of iterations, with zeros


def not_found(what: str, name: str) -> str:
    """A message for a name that does not stand for weights; ``what`` is the setting."""
    if Path(name, "config.json").is_file():
        reason = "the run has no weights yet; train writes them at each evaluation"
    elif Path(name).is_dir():
        reason = "it is a folder, but not the folder of a run"
    else:
        known = names()
        reason = f"not found{did_you_mean(name, known)}; shipped are {', '.join(known)}; or give a file or the folder of a run"
    return f"{what} {name!r}: {reason}"


def read_initial(game: Game[Any], name: str, setting: str, known: str = "") -> Weights:
    """The weights of a name that training begins with, of any game whose arrays have the same shapes.

    ``known`` is the architecture of the run, see ``read``. Raises ``ValueError``, which names the setting, for unknown weights
    and for weights that do not fit.
    """
    path = find(name)
    if path is None:
        raise ValueError(not_found(setting, name))
    return read(game, path, any_game=True, known=known)


def load(game: Game[Any], name: str, trust: bool = False) -> Network:
    """The network of a name: weights, see ``find``, or whatever ``search.exported.load`` finds.

    ``TrainedNetwork.note`` says where weights were trained for other options of the game. ``trust`` allows weights to name
    code, see ``read``. Raises ``ValueError`` where there is no such network, or none for this game.
    """
    path = find(name)
    if path is None:
        if ":" not in name and not Path(name).is_file():
            raise ValueError(not_found("network", name))
        return load_exported(game, name)
    weights = read(game, path, trust=trust)
    return TrainedNetwork(weights.model, weights.description.score_weight, weights.note)


class TrainedNetwork(eqx.Module):
    """A trained network in the form in which searches ask it."""

    model: Model
    """The network with its weights."""
    score_weight: float = eqx.field(static=True)
    """Weight of the score in its values, which searches take over."""
    note: str | None = eqx.field(static=True, default=None)
    """See ``Weights.note``."""

    @property
    def interface(self) -> NetworkInterface | None:
        """The interface of the model, where it has one of its own."""
        interface: NetworkInterface | None = getattr(self.model, "interface", None)
        return interface

    def __call__(self, observation: Any) -> tuple[jax.Array, jax.Array]:
        """Policy logits, and values by relative seat."""
        return predict(self.model, observation, self.score_weight)


class _DamagedError(ValueError):
    """A file is not an archive of arrays as ``save`` writes it."""


class _OtherArrayError(ValueError):
    """An array has another shape or dtype; the message follows its name."""


def _open(file: BinaryIO) -> zipfile.ZipFile:
    """The archive in an ``.npz`` file. Raises ``_DamagedError`` where it is none, or not one as NumPy writes it."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _ZIP_TAIL))
    tail = file.read()
    # NumPy writes no comment, and no 64-bit directory, which comes with more than 65,535 arrays.
    if tail[-22:-18] != b"PK\5\6" or tail[-42:-38] == b"PK\6\7":
        raise _DamagedError("it is not an .npz archive")
    if int.from_bytes(tail[-10:-6], "little") > _DIRECTORY_LIMIT:
        raise _DamagedError("it holds too many arrays")
    try:
        archive = zipfile.ZipFile(file)
    except Exception as error:  # a damaged directory raises many kinds, not all of them documented
        raise _DamagedError(f"it is not an .npz archive: {error}") from None
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in archive.infolist()):
        raise _DamagedError("it is compressed in another way than NumPy does it")  # zipfile unpacks those without a bound
    return archive


def _array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """An array, which must have this shape and kind of dtype; no more of it is unpacked than such an array has.

    Raises ``_OtherArrayError`` where its header says otherwise, ``_DamagedError`` where it is missing or damaged.
    """
    try:
        with archive.open(f"{name}.npy") as member:
            if np.lib.format.read_magic(member) != (1, 0):
                raise ValueError("another version of the format")
            given, fortran, dtype = np.lib.format.read_array_header_1_0(member)
            fits = given == shape and dtype.kind == kind and dtype.itemsize <= JSON_LIMIT
            size = math.prod(shape) * dtype.itemsize
            data = member.read(size + 1) if fits else b""
        if fits and len(data) != size:
            raise ValueError(f"it does not have the size that its shape {shape} says")
        if fits:
            return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    except Exception as error:  # zipfile, zlib and the header's Python literal raise many kinds, not all of them documented
        raise _DamagedError(f"array {name} cannot be read: {error or type(error).__name__}") from None
    raise _OtherArrayError(f"has shape {given}" if given != shape else f"has dtype {dtype}")


def _about(archive: zipfile.ZipFile) -> dict[str, Any]:
    """What a file says of itself."""
    try:
        about = parse_json(str(_array(archive, _ABOUT, (), "U")))
    except ValueError as error:
        raise _DamagedError(f"{_ABOUT}: {error}") from None
    if not isinstance(about, dict):
        raise _DamagedError(f"{_ABOUT} is no JSON object")
    return about


def _description(about: dict[str, Any]) -> Description:
    """What weights are for. Raises ``KeyError``, ``TypeError`` or ``ValueError`` where a file does not say."""
    if "format" not in about:  # the first format: flat settings, one architecture per game
        flat = about["config"]
        given = (flat["game"], dict(flat["options"]), DEFAULT, flat["network"], flat["margin"])
    elif about["format"] != _FORMAT:
        raise ValueError(f"it has format {about['format']}, not {_FORMAT}")
    else:
        given = tuple(about[name] for name in Description.__dataclass_fields__)
    game, options, architecture, size, score_weight = given
    if not isinstance(options, dict) or not all(isinstance(text, str) for text in (game, architecture, size)):
        raise ValueError("game, architecture and size are names, and options an object")
    if type(score_weight) not in (int, float) or not 0 <= score_weight <= 1:
        raise ValueError(f"score_weight must be between 0 and 1, not {score_weight!r}")
    return Description(game, options, architecture, size, float(score_weight))


def _registered_by(about: dict[str, Any]) -> str:
    """The module or file that registered the architecture, as the run's settings in the file say; empty if they do not."""
    config = about.get("config")
    network = config.get("network") if isinstance(config, dict) else None
    module = network.get("registered_by") if isinstance(network, dict) else None
    return module if isinstance(module, str) else ""


def _fill(
    game: Game[Any], description: Description, archive: zipfile.ZipFile, problem: str, note: str | None, registered_by: str
) -> Model:
    """The described network for a game, with the arrays of a file as its weights."""
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
            raise ValueError(f"{its} {error}, that of {network} shape {leaf.shape} and floating-point numbers{why}") from None
        if not np.isfinite(array).all():
            raise ValueError(f"{its} has values that are not finite")
        arrays.append(jnp.asarray(array))
    model: Model = jax.tree.unflatten(tree, arrays)
    return model


def _differences(before: Game[Any], after: Game[Any]) -> list[str]:
    """The options in which two games of the same id differ."""
    defaults = {name: parameter.default for name, parameter in registry.options(after.id).items()}
    sides = [{**defaults, **game.options} for game in (before, after)]
    return [f"{name} was {sides[0][name]} and is {sides[1][name]}" for name in defaults if sides[0][name] != sides[1][name]]


def _name(game: Game[Any]) -> str:
    options = ", ".join(f"{name}={value}" for name, value in game.options.items())
    return f"{game.id} ({options})" if options else game.id
