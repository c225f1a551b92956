"""The games that the server offers, their options, and the agents that play them; plain Python, without JAX."""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

from tilewe_jax.games.polyomino.config import MAX_SIZE, MIN_SIZE, VARIANTS
from tilewe_jax.games.santorini.config import SIZES
from tilewe_jax.games.santorini.config import santorini as santorini_options
from tilewe_jax.games.santorini.host import SantoriniBoard
from tilewe_jax.games.triominos.config import SETS, TRAYS
from tilewe_jax.games.triominos.config import triominos as triominos_options
from tilewe_jax.games.triominos.tiles import digits, tiles
from tilewe_jax.host import HostGame
from tilewe_jax.host_games import make_host_game


@dataclass(frozen=True)
class Agent:
    """An agent that plays a game."""

    agent: str
    """What ``tilewe-jax analyze`` knows it by: ``level:2``, or an agent with its settings."""
    title: str
    elo: int | None = None
    """Its rating among the levels of the game."""
    max_seconds: float | None = None
    """Limit of the time of a search, for agents that can keep one."""


@dataclass(frozen=True)
class OfferedGame:
    """A game in the catalog."""

    id: str
    title: str
    players: tuple[int, int]
    """Smallest and largest number of players."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For each option that people may choose: its default, and choices or a range."""
    is_hidden: bool = False
    """Whether players have what others may not see."""


def _offered(
    game: str,
    title: str,
    function: Any,
    num_players: tuple[int, int],
    /,
    is_hidden: bool = False,
    **known: dict[str, Any],
) -> OfferedGame:
    """A game with those of its options that are named in ``known``, each with its ``choices`` or its ``range``."""
    defaults = inspect.signature(function).parameters
    options = {
        name: {"default": defaults[name].default, "type": type(defaults[name].default).__name__, **values}
        for name, values in known.items()
    }
    return OfferedGame(game, title, num_players, options, is_hidden)


_SIDE = {"range": [MIN_SIZE, MAX_SIZE]}
_GAMES = (
    _offered("duo_official", "Blokus Duo", VARIANTS["duo_official"], (2, 2), size=_SIDE),
    _offered("duo", "Duo, modified", VARIANTS["duo"], (2, 2), size=_SIDE, voluntary_pass={"choices": [False, True]}),
    _offered("classic", "Classic, four colours", VARIANTS["classic"], (4, 4), size=_SIDE),
    _offered("classic_2", "Classic for two", VARIANTS["classic_2"], (2, 2), size=_SIDE),
    _offered("tilewe", "Tilewe", VARIANTS["tilewe"], (1, 4), players={"range": [1, 4]}, size=_SIDE),
    _offered(
        "santorini",
        "Santorini",
        santorini_options,
        (2, 2),
        size={"range": [SIZES[0], SIZES[-1]]},
        placement={"choices": ["default", "random", "chosen"]},
    ),
    _offered(
        "triominos",
        "Triominos",
        triominos_options,
        (min(TRAYS), max(TRAYS)),
        is_hidden=True,
        players={"range": [min(TRAYS), max(TRAYS)]},
        tiles={"choices": sorted(SETS)},
        start={"choices": ["random", "highest", "winner"]},
        game={"choices": ["single", "target"]},
        target={"range": [1, 10_000]},
        max_rounds={"range": [1, 100]},
    ),
)
GAMES: Mapping[str, OfferedGame] = {game.id: game for game in _GAMES}
"""The games by id, in the order in which they are offered. Games of others would need JAX in this process."""


def make_game(name: Any, options: Any, *, only_offered: bool = False) -> HostGame:
    """The game that a request names.

    Args:
      name: its id.
      options: its options.
      only_offered: whether to refuse options that are not in the catalog.

    Raises ``ValueError``, which says what is wrong with the name or the options.
    """
    if not isinstance(name, str) or name not in GAMES:
        raise ValueError(f"game must be one of {', '.join(GAMES)}")
    if not isinstance(options, dict):
        raise ValueError('options must be an object, like {"size": 10}')
    unknown = [option for option in options if option not in GAMES[name].options]
    if only_offered and unknown:
        known = ", ".join(GAMES[name].options)
        raise ValueError(f"{name} has no option {unknown[0][:80]!r} here; its options are {known}")
    return make_host_game(name, **options)


def new_deal(host: HostGame) -> Any:
    """What chance decides at the start of a game, from the random numbers of the system: nobody can predict them."""
    chance = SystemRandom()
    if host.id == "santorini" and host.options.get("placement") == "random":
        board = SantoriniBoard.start(host.options.get("size", 5), "random", chance)
        return [list(cell) for cell in board.workers if cell]
    if host.id != "triominos":
        return None
    order = [digits(tile) for tile in tiles(SETS[host.options.get("tiles", 56)])]
    chance.shuffle(order)
    seed = [chance.getrandbits(32), chance.getrandbits(32)]
    for starter in chance.sample(range(host.num_players), host.num_players):
        deal = {"tiles": order, "starter": starter, "seed": seed}
        try:
            host.init_from_deal(deal)
        except ValueError:  # with start="highest" only the holder of the highest tile may start
            continue
        return deal
    raise AssertionError("somebody holds the highest tile")


def rules_of(game: str) -> list[str]:
    """The title and the rules of a game in a few sentences, as the page shows them; empty for a game that it does not know."""
    text = (Path(__file__).parent / "static" / "games.js").read_text(encoding="utf-8")
    about = json.loads(text.partition("=")[2].rstrip().rstrip(";")).get(game)
    return [] if about is None else [about["title"], *about["rules"]]


def catalog(agents: Mapping[str, Sequence[Agent]]) -> list[dict[str, Any]]:
    """The games with their agents, as JSON values."""
    return [
        {
            "id": game.id,
            "title": game.title,
            "options": game.options,
            "players": list(game.players),
            "hidden": game.is_hidden,
            "levels": [{"agent": agent.agent, "title": agent.title, "elo": agent.elo} for agent in agents.get(game.id, ())],
        }
        for game in GAMES.values()
    ]
