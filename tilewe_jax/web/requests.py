"""Parts of requests and of their answers that do not depend on a server library."""

import logging
from collections.abc import Mapping, Sequence

from tilewe_jax.web.rooms import MAX_IDS
from tilewe_jax.web.session import RefusedError
from tilewe_jax.web.stored import DamagedError, StoreError

log = logging.getLogger("tilewe_jax.web")

THEMES = ("light", "dark")
ANIMATIONS = ("gif", "svg")


def refusal_of(error: RefusedError | StoreError) -> RefusedError:
    """Return the refusal that tells a client about an error."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, DamagedError):
        return RefusedError(str(error), status=409)
    log.error("%s", error)
    return RefusedError("the server cannot read its database; try again later", status=503)


def integer_of(query: Mapping[str, str], name: str, low: int, high: int, default: int) -> int:
    """Return an integer in the query of a request. Raises ``RefusedError``."""
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high):
        raise RefusedError(f"{name} must be an integer from {low} to {high}", name)
    return int(text)


def choice_of(query: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    """Return a word in the query of a request, by default the first choice. Raises ``RefusedError``."""
    word = query.get(name, choices[0])
    if word not in choices:
        raise RefusedError(f"{name} must be one of {', '.join(choices)}", name)
    return word


def ids_of(query: Mapping[str, str]) -> list[str] | None:
    """Return the ids of games in the query of a request, or ``None`` if it has none. Raises ``RefusedError``."""
    if "ids" not in query:
        return None
    ids = [each for each in query["ids"].split(",") if each]
    if len(ids) > MAX_IDS:
        raise RefusedError(f"ids must name at most {MAX_IDS} games, got {len(ids):,}", "ids")
    return ids
