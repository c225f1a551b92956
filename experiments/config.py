"""All that decides a training run, as one frozen value."""

import importlib
import json
import pkgutil
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from experiments import presets as configs
from experiments.arena.ratings import Sprt
from tilewe_jax import make
from tilewe_jax.game import Game


@dataclass(frozen=True)
class Config:
    """A training run. Raises ``ValueError`` for settings that make none."""

    game: str = "santorini"
    """Id of the game."""
    options: tuple[tuple[str, Any], ...] = ()
    """Options of the game that differ from its defaults."""
    seed: int = 0
    """Decides everything that chance decides."""

    network: str = "nano"
    """Size of the network, one of ``networks.SIZES``."""
    init: str = ""
    """Weights to begin with, as ``weights.load`` finds them; random ones unless given."""

    lanes: int = 256
    """Games played at once, on all devices together."""
    steps: int = 32
    """Moves played in each of them between two rounds of learning."""
    search: Literal["gumbel", "puct"] = "gumbel"
    """How moves are searched for: Gumbel AlphaZero, or PUCT with Dirichlet noise."""
    simulations: int = 32
    """Of a full search."""
    fast_simulations: int = 0
    """Of a fast search, whose move is played and not learned from (playout cap randomisation, Wu 2019); 0 for none."""
    full_share: float = 0.25
    """Share of the moves that are searched for in full, where there are fast searches."""
    candidates: int = 64
    """Actions that a node keeps, and that the policy learns from."""
    pool: int = 1024
    """Legal actions among which a node finds its candidates."""
    considered: int = 16
    """Candidates with which a Gumbel search begins at the root."""
    worlds: int = 4
    """Searches a move, each of another world, where information is hidden; simulations are divided among them."""
    depth: int = 32
    """No simulation goes deeper."""
    dirichlet: float = 10.0
    """The parameters of the Dirichlet noise of PUCT sum to this."""
    temperature: float = 1.0
    """The first moves are drawn by policy ** (1 / temperature)."""
    temperature_plies: int = 8
    """How many; those after them are what the search would play."""
    margin: float = 0.0
    """How much it counts by how much a game is won, between 0 and 1, see ``Game.heuristic_value``."""
    resign: float = 0.0
    """A game ends when the search gives one seat this share of the win; every tenth is played out. 0 for never."""
    teach: int = 0
    """For so many rounds, games are searched without the network, by playouts, or played by ``teacher``: a warm start."""
    teacher_samples: int = 16
    """In those playouts each move is the best of so many random ones at a glance, see ``search.playout_evaluator``."""
    teacher: str = ""
    """Who plays these games without any search: a player of the game, or ``glance``, which draws moves by what they look worth,
    see ``Game.heuristic_logits``. The network learns to play like it, and what such games are worth."""

    buffer: int = 512
    """Positions that the replay buffer holds of each lane."""
    fill: int = 64
    """Positions of each lane to be there before learning begins."""
    surprise: float = 0.5
    """Share of the positions that are drawn by how much the search changed the policy (Wu 2019); the rest are drawn alike."""
    reuse: float = 4.0
    """How often a position is learned from, on average."""

    batch: int = 256
    """Positions in a step of the optimiser, on all devices together."""
    learning_rate: float = 2e-3
    """Of AdamW, after warming up."""
    warmup: int = 100
    """Steps in which the learning rate rises."""
    weight_decay: float = 1e-4
    """Of AdamW."""
    clip: float = 1.0
    """Gradients of a greater norm are shortened to this."""
    ema: float = 0.995
    """The weights that play, are tested and are kept, are an exponential moving average with this decay a step."""
    win_weight: float = 1.0
    """Of the loss of the win share, against that of the policy."""
    margin_weight: float = 0.25
    """Of the loss of the final ``Game.heuristic_value``."""
    root_share: float = 0.25
    """Share of what the search thought of a position, against the outcome of its game, in what the win share learns."""
    augment: bool = True
    """Whether positions are learned from as a random symmetry of the game shows them."""

    rounds: int = 1000
    """Rounds of playing and learning."""
    minutes: float = 0.0
    """Ends the run after so much time, tests included; 0 for never."""
    checkpoint_every: int = 20
    """Rounds between two checkpoints."""
    keep: int = 2
    """Checkpoints that are kept; older ones of this run are deleted."""
    test_every: int = 50
    """Rounds between two tests."""
    test_games: int = 128
    """Games of a test, against each opponent."""
    test_simulations: int = 32
    """Of the player that is tested."""
    test_opening: int = 2
    """Moves that chance plays at the beginning of those games; without them, players that leave nothing to chance would play
    the same games again and again."""
    gate: tuple[float, float] | None = None
    """Two Elo. At each test, newer weights begin to play only if a sequential test (SPRT) says that they are stronger than what
    plays by the second, and not by the first; without, the newest always play."""
    opponents: tuple[str, ...] = ("random",)
    """Against whom, as the arena names players. ``last`` is the player of the test before."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in _SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        for name in _NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.search not in get_args(_types()["search"]):
            raise ValueError(f"search must be one of {', '.join(get_args(_types()['search']))}, not {self.search!r}")
        if self.buffer % self.steps:
            raise ValueError(f"buffer must be a multiple of steps, {self.steps}, not {self.buffer}")
        if self.fill > self.buffer:
            raise ValueError(f"fill must be at most buffer, {self.buffer}, not {self.fill}")
        object.__setattr__(self, "options", tuple((name, _frozen(value)) for name, value in self.options))
        if self.gate is not None:
            Sprt(*self.gate)
        object.__setattr__(self, "opponents", tuple(self.opponents))

    def make(self) -> Game[Any]:
        """The game. Raises ``ValueError`` where there is none with these options."""
        return make(self.game, **dict(self.options))

    @property
    def updates(self) -> int:
        """Steps of the optimiser in a round."""
        learned = self.lanes * self.steps * (self.full_share if self.fast_simulations else 1)
        return max(1, round(learned * self.reuse / self.batch))

    def json(self) -> dict[str, Any]:
        """The settings as JSON, such that ``from_json`` gives them back."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    def differences(self, other: "Config") -> list[str]:
        """The names of the settings that differ in what they do to a run that goes on; how long it goes on is no such thing."""
        return [
            field.name
            for field in fields(self)
            if field.name not in _FREE and getattr(self, field.name) != getattr(other, field.name)
        ]


_POSITIVE = (
    "lanes",
    "steps",
    "simulations",
    "candidates",
    "pool",
    "considered",
    "worlds",
    "depth",
    "dirichlet",
    "temperature",
    "buffer",
    "fill",
    "reuse",
    "batch",
    "learning_rate",
    "warmup",
    "clip",
    "teacher_samples",
    "rounds",
    "checkpoint_every",
    "keep",
    "test_every",
    "test_games",
    "test_simulations",
)
_SHARES = ("full_share", "margin", "resign", "surprise", "ema", "root_share")
_NOT_NEGATIVE = (
    "fast_simulations",
    "test_opening",
    "temperature_plies",
    "teach",
    "weight_decay",
    "win_weight",
    "margin_weight",
    "minutes",
)
_FREE = (
    "test_opening",
    "rounds",
    "minutes",
    "checkpoint_every",
    "keep",
    "test_every",
    "test_games",
    "test_simulations",
    "opponents",
    "init",
)


def from_json(given: dict[str, Any]) -> Config:
    """The settings in JSON. Raises ``ValueError`` for others than there are."""
    unknown = sorted(given.keys() - _types().keys())
    if unknown:
        raise ValueError(f"there is no setting {', '.join(unknown)}")
    return Config(**{name: _frozen(value) for name, value in given.items()})


def preset(name: str) -> Config:
    """The settings of this name, in ``experiments/configs``, or in a file of Python that defines ``CONFIG``.

    Raises ``ValueError`` where there are none.
    """
    if name.endswith(".py"):
        space: dict[str, Any] = {}
        try:
            exec(compile(Path(name).read_bytes(), name, "exec"), space)
        except OSError as error:
            raise ValueError(f"preset {name}: {error.strerror}") from None
        found = space.get("CONFIG")
    elif name in presets():
        found = importlib.import_module(f"experiments.presets.{name}").CONFIG
    else:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(presets())}, or give a file of Python")
    if not isinstance(found, Config):
        raise ValueError(f"preset {name} must define CONFIG, an experiments.config.Config, not {found!r}")
    return found


def presets() -> list[str]:
    """Names of the presets."""
    return sorted(module.name for module in pkgutil.iter_modules(configs.__path__))


def changed(config: Config, settings: dict[str, str]) -> Config:
    """With settings given as text, like ``lanes=64``; ``options.size=4`` sets an option of the game. Raises ``ValueError``."""
    given: dict[str, Any] = {}
    options = dict(config.options)
    for name, text in settings.items():
        if name.startswith("options."):
            options[name.removeprefix("options.")] = _frozen(_parsed(text))
            continue
        if name not in _types():
            raise ValueError(f"there is no setting {name!r}; there are {', '.join(_types())}")
        given[name] = _converted(name, _types()[name], text)
    return replace(config, options=tuple(options.items()), **given)


def _types() -> dict[str, Any]:
    return {field.name: field.type for field in fields(Config)}


def _converted(name: str, kind: Any, text: str) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        if kind in (int, float):
            return kind(text)
    except (KeyError, ValueError):
        raise ValueError(f"{name} must be a {kind.__name__}, not {text!r}") from None
    if name == "opponents":
        return tuple(text.split())
    if name == "gate":
        try:
            low, high = (float(part) for part in text.split(","))
        except ValueError:
            raise ValueError(f"gate must be two Elo, like 0,20, not {text!r}") from None
        return low, high
    if get_origin(kind) is tuple:
        raise ValueError(f"{name} cannot be set as text; set options.NAME=VALUE")
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text.split(",") if "," in text else text


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
