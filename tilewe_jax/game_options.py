"""Games and their options as people give them: as text."""

import contextlib
from collections.abc import Sequence
from typing import Annotated, Any, get_args, get_origin

from tyro.conf import arg

from tilewe_jax.game import Game
from tilewe_jax.registry import make, options, register
from tilewe_jax.utils import factories
from tilewe_jax.utils.files import parse_json


def game_id(text: str) -> str:
    """The id of the game that a text names: the text itself, or of ``module:factory`` the id of what that makes.

    Such a game is imported, which runs its code, and registered. Raises ``ValueError`` where that fails.
    """
    if ":" not in text:
        return text
    loaded = factories.find("game", text)
    name: str = factories.call(f"game {text!r}", lambda: loaded().id)
    try:
        register(name, loaded)
    except (TypeError, ValueError) as error:
        raise ValueError(f"game {text!r}: {error}") from None
    return name


def make_game(text: str, options: dict[str, Any]) -> Game[Any]:
    """The game that a text names (``game_id``), with options. Raises ``ValueError``."""
    return make(game_id(text), **options)


Options = Annotated[tuple[str, ...], arg(metavar="OPTION=VALUE ...", help_behavior_hint="")]
"""Options of a game, as programs take them; see ``game_options``."""


def game_options(game: str, texts: dict[str, str]) -> dict[str, Any]:
    """The options of a game that are given as texts by name: JSON, a word, or several, separated by commas.

    Raises ``ValueError`` for an option of an unknown game.
    """
    return {name: _game_option(game, name, text) for name, text in texts.items()}


def _game_option(game: str, name: str, text: str) -> Any:
    parameter = options(game_id(game)).get(name)
    annotation = parameter.annotation if parameter else None
    kinds = [get_origin(kind) for kind in (annotation, *get_args(annotation))]
    if "," in text or Sequence in kinds or tuple in kinds:
        with contextlib.suppress(ValueError):
            return tuple(parse_json(f"[{text}]"))
        return tuple(text.split(","))
    with contextlib.suppress(ValueError):
        return parse_json(text)
    return text
