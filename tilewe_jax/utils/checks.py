"""Checks of arguments: integers, actions, counts and choices; and values in messages. Plain Python, without JAX."""

import operator
from typing import Any

from tilewe_jax.host import IllegalActionError


class BackendError(RuntimeError):
    """JAX cannot compute in this process, see ``tilewe_jax.utils.backends``."""


SHOWN_LENGTH = 80
"""Maximum length of a value in a message."""


def shown(value: Any, length: int = SHOWN_LENGTH) -> str:
    """Return the ``repr`` of a value on one line, cut to ``length`` characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= length else f"{text[: length - 3]}..."


def index(value: Any) -> int:
    """Convert an integer of Python, or an integer scalar or 0-d array of NumPy, JAX or PyTorch, to ``int``.

    Raises ``TypeError`` for other values, booleans included.
    """
    is_bool = isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
    if is_bool or tuple(getattr(value, "shape", ())) != ():
        raise TypeError(f"{shown(value)} is not an integer")
    return operator.index(value)


def action_id(action: Any) -> int:
    """Convert an action to ``int``. Raises ``TypeError`` unless it is one integer."""
    if type(action) is int:  # the common case, without the slower checks
        return action
    try:
        return index(action)
    except TypeError:
        raise TypeError(f"an action must be one integer, got {shown(action)}") from None


def checked_action(action: Any, num_actions: int) -> int:
    """``action_id`` with a check of the range. Raises ``IllegalActionError`` for actions outside of it."""
    number = action_id(action)
    if not 0 <= number < num_actions:
        raise IllegalActionError(f"action {number} is illegal: {out_of_range(num_actions)}")
    return number


def out_of_range(num_actions: int) -> str:
    """Return the reason why an action outside of the range of a game is illegal."""
    return f"there is no such action; actions are 0 to {num_actions - 1}"


def check_count(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """Convert a count to ``int``.

    Raises ``TypeError`` unless it is an integer, ``ValueError`` below the minimum or above the maximum.
    """
    try:
        count = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {shown(value)}") from None
    if count < minimum or (maximum is not None and count > maximum):
        limits = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
        raise ValueError(f"{name} must be {limits}, got {count}")
    return count


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise ``ValueError`` unless an argument is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}, not {value!r}")
