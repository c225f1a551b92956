"""Commands whose games may be split into shards, and the command that joins the results of the shards."""

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewe_jax.arguments import Option, from_arguments, option_name, to_arguments
from tilewe_jax.cli.common import (
    FailedError,
    Folder,
    Json,
    UsageError,
    check_unused,
    check_writable,
    err,
    progress,
    usage_errors,
)
from tilewe_jax.utils.words import counted

if TYPE_CHECKING:
    from tilewe_jax.arena.results import Results
    from tilewe_jax.arena.shards import Shard

FORMAT = "tilewe-jax-shard/1"
_NOT_COMPARED = ("shard", "ray", "out", "json", "plot", "import_", "trust")
"""Options that do not affect the games."""


@dataclass(frozen=True, kw_only=True)
class Sharded(Json):
    """Options of commands whose games may be split into shards."""

    shard: Annotated[str, Option("I/N", is_rare=True, is_last=True)] = ""
    """Play only part I of N equal parts of the games, for example 3/16, and write its results to the folder --out, from which
    `merge` joins all parts."""
    ray: Annotated[str, Option("ADDRESS", is_rare=True, is_last=True)] = ""
    """Play on a cluster of Ray (extra `ray`): host:port of the cluster, auto for a cluster on this host, or local. Each GPU
    plays one part of the games, or each node of a cluster without GPUs."""

    def check_shards(self, *options: str) -> None:
        """Check the options; the given other ones cannot be combined with shards."""
        if self.shard and self.ray:
            raise UsageError("--shard cannot be given with --ray, which chooses the shards")
        if self.shard or self.ray:
            check_unused(self, f"with {'--shard' if self.shard else '--ray'}, because they depend on all games", *options)
        if self.shard:
            check_unused(self, "with --shard, only to `merge`", "json", *(["plot"] if hasattr(self, "plot") else []))
            self.part  # noqa: B018, raises errors
            if self.out is None:
                raise UsageError("--shard needs --out, the folder for the results of all shards")
            make_folder(self.out)

    if TYPE_CHECKING:
        out: Path | None

    @property
    def num_matches(self) -> int:
        """Number of matches that the command plays."""
        raise NotImplementedError

    def report_results(self, game: Any, matches: "list[Results]", about: dict[str, Any]) -> None:
        """Print and write the results of all games.

        Args:
            game: the game.
            matches: the results of the matches, in the order of play.
            about: values from ``describe``, and further values of the command.
        """
        raise NotImplementedError

    @property
    def part(self) -> "Shard":
        """The games of this process."""
        from tilewe_jax.arena.shards import WHOLE, Shard

        with usage_errors():
            return Shard.parse(self.shard) if self.shard else WHOLE

    def _as_arguments(self, *others: str) -> list[str]:
        """Return the options that affect the games, and others by name, as arguments."""
        names = set(_NOT_COMPARED).difference(others)
        unused: dict[str, Any] = {entry.name: entry.default for entry in fields(self) if entry.name in names}
        return to_arguments(replace(self, **unused))

    def run_on_ray(self) -> None:
        """Play all shards on the cluster of Ray, and report the joined results."""
        from tilewe_jax.cli.ray_cluster import play_shards

        arguments = [type(self).__name__.lower(), *self._as_arguments("import_", "trust")]
        with tempfile.TemporaryDirectory() as folder:
            with progress(None, "shards", "starting the shards", quiet=self.json) as shown:
                play_shards(
                    arguments,
                    self.ray,
                    Path(folder),
                    lambda done, count: shown.update(done, lambda: f"{count} in all", "playing"),
                )
            parts = read_shards(sorted(Path(folder).iterdir()))
        matches, about = joined(parts)
        self.report_results(parts[0].game, matches, about)

    def finish(self, game: Any, matches: "list[Results]", about: dict[str, Any]) -> None:
        """Report the results, or write them to the folder of the shards."""
        if not self.shard:
            self.report_results(game, matches, about)
            return
        from tilewe_jax.utils.files import replacing

        assert self.out
        value = {
            "format": FORMAT,
            "command": type(self).__name__.lower(),
            "arguments": self._as_arguments(),
            "shard": [self.part.number, self.part.count],
            "about": about,
            "game": {"id": game.id, "options": game.options, "version": game.version},
            "matches": [results.to_json() for results in matches],
        }
        path = self.out / f"{value['command']}-{self.part.number}-of-{self.part.count}.json"
        with replacing(path) as file:
            json.dump(value, file)
        games = sum(results.games for results in matches)
        err.print(f"shard {self.part}: {counted(games, 'games')} written to {path}")


def make_folder(path: Path) -> None:
    """Create a folder for the results of a command, unless it exists. Raises ``UsageError`` if it cannot be written."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"cannot write to {path}: not a folder")
    path.mkdir(parents=True, exist_ok=True)
    check_writable(path / "x")


def describe(agents: Iterable[Any]) -> dict[str, Any]:
    """Return the values that must agree in all shards, with a hash of the arrays of each agent, and the name of the device."""
    import jax

    from tilewe_jax.utils.agreement import hash_of, versions

    hashes = {f"the hash of the weights of {agent.name}": text for agent in agents if (text := hash_of(agent))}
    return {**versions(), "device": jax.devices()[0].device_kind, **hashes}


@dataclass(frozen=True)
class _Part:
    """The content of the file of a shard."""

    path: Path
    command: Any
    shard: "Shard"
    about: dict[str, Any]
    game: Any
    matches: "list[Results]"

    @property
    def compared(self) -> dict[str, Any]:
        """The values that must agree in all shards."""
        settings = {
            option_name(entry.name): json.loads(json.dumps(getattr(self.command, entry.name), default=str))
            for entry in fields(self.command)
            if entry.name not in _NOT_COMPARED
        }
        rest = {name: value for name, value in self.about.items() if name != "device"}
        return {"command": type(self.command).__name__.lower(), **settings, **rest}


def _read(path: Path) -> _Part:
    """Read the file of a shard. Raises ``FailedError`` for another or a damaged file, and ``OSError``."""
    from tilewe_jax.arena.results import Results
    from tilewe_jax.arena.shards import Shard
    from tilewe_jax.cli.ladder import Ladder
    from tilewe_jax.cli.match import Match
    from tilewe_jax.records import FILE_LIMIT
    from tilewe_jax.registry import make
    from tilewe_jax.utils.files import read_json

    try:
        value = read_json(path, FILE_LIMIT)
    except ValueError as error:
        raise FailedError(f"{path} is not a shard: {error}") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise FailedError(f"{path} is not a shard, which --shard writes ({FORMAT})")
    try:
        command: Any = from_arguments({"match": Match, "ladder": Ladder}[value["command"]], value["arguments"])
        game = make(value["game"]["id"], **value["game"]["options"])
        if game.version != value["game"]["version"]:
            raise ValueError(f"version of {game.id} must be {game.version}, got {value['game']['version']}")
        shard = Shard.parse("/".join(map(str, value["shard"])))
        matches = [Results.from_json(game, each) for each in value["matches"]]
        about = {"device": "unknown", **value["about"]}
        if len(matches) != command.num_matches:
            raise ValueError(f"it must have {counted(command.num_matches, 'matches')}, not {len(matches)}")
        return _Part(path, command, shard, about, game, matches)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise FailedError(f"{path} is damaged or of another version: {str(error) or type(error).__name__}") from None


def read_shards(paths: Sequence[Path]) -> list[_Part]:
    """Read all shards of a command in order.

    Raises ``FailedError`` for missing shards, equal shards and shards of different commands, and ``OSError``.
    """
    from tilewe_jax.utils.agreement import differences, numbered

    parts = sorted(map(_read, paths), key=lambda part: part.shard.number)
    if not parts:
        raise FailedError("the folder is empty; it must have the shards of a command")
    by_number: dict[int, _Part] = {}
    first = parts[0]
    for part in parts:
        if part.shard.count != first.shard.count:
            raise FailedError(f"{first.path} is shard {first.shard}, and {part.path} is shard {part.shard}")
        other = by_number.setdefault(part.shard.number, part)
        if other is not part:
            raise FailedError(f"{other.path} and {part.path} are the same shard {part.shard}")
    if wrong := differences({number: part.compared for number, part in by_number.items()}, "shards"):
        raise FailedError(f"the shards differ: {wrong}")
    if missing := set(range(1, first.shard.count + 1)) - by_number.keys():
        are = "are" if len(missing) > 1 else "is"
        raise FailedError(f"{numbered(missing, 'shards')} of {first.shard.count} {are} missing")
    return parts


def joined(parts: Sequence[_Part]) -> "tuple[list[Results], dict[str, Any]]":
    """Join shards: the results of each match, and the values about them."""
    from tilewe_jax.arena.results import Results

    matches = [Results.joined(each) for each in zip(*(part.matches for part in parts), strict=True)]
    devices = dict.fromkeys(part.about["device"] for part in parts)
    return matches, {**parts[0].about, "device": ", ".join(devices)}


@dataclass(frozen=True)
class Merge(Json):
    """Join the results of all shards of a match or a ladder, which --shard wrote, and report them like one command.

    The games, ratings and intervals equal the results of the same command without --shard. Times are sums over the shards.
    """

    files: Annotated[tuple[Path, ...], Option("FILE ...")]
    """Folder of the shards, the --out of their commands, or their files."""
    out: Folder = None
    """Write the result of a ladder to this folder, or the games of a match to this file."""
    plot: Path | None = None
    """Write a picture of the Elo ratings of a match to this file, as SVG."""

    def run(self) -> None:
        if not self.files:
            raise UsageError("missing: the folder or the files of the shards")
        paths = [found for path in self.files for found in (sorted(path.glob("*-of-*.json")) if path.is_dir() else [path])]
        parts = read_shards(paths)
        matches, about = joined(parts)
        command = replace(parts[0].command, out=self.out, json=self.json)
        if self.plot and not hasattr(command, "plot"):
            raise UsageError("--plot cannot be given for a ladder, whose --out has a plot")
        if self.plot:
            command = replace(command, plot=self.plot)
        command.report_results(parts[0].game, matches, about)
