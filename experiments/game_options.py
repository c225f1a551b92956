"""Options of games that are given as text."""

import contextlib
import json
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from tilewe_jax.registry import options


def game_option(game: str, name: str, text: str) -> Any:
    """The value of an option of a game that is given as text: JSON, a word, or several, separated by commas.

    Raises ``ValueError`` for an unknown game.
    """
    parameter = options(game).get(name)
    annotation = parameter.annotation if parameter else None
    kinds = [get_origin(kind) for kind in (annotation, *get_args(annotation))]
    if "," in text or Sequence in kinds or tuple in kinds:
        with contextlib.suppress(json.JSONDecodeError):
            return tuple(json.loads(f"[{text}]"))
        return tuple(text.split(","))
    with contextlib.suppress(json.JSONDecodeError):
        return json.loads(text)
    return text
