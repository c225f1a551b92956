"""Checks of arguments that all of the library shares: integers, actions of one game, counts, and values in messages.

Plain Python, without JAX. Every caller of a check raises the same error.
"""

import operator
from typing import Any

from tilewe_jax.host import IllegalActionError


class BackendError(RuntimeError):
    """JAX cannot compute in this process, see ``tilewe_jax.utils.backends``."""


SHOWN_LENGTH = 80
"""Length to which values are cut in messages."""


def shown(value: Any, length: int = SHOWN_LENGTH) -> str:
    """A value for a message: its ``repr`` on one line, cut to ``length`` characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= length else f"{text[: length - 3]}..."


def index(value: Any) -> int:
    """``operator.index``, without booleans and arrays that have a shape.

    Accepts integers of Python, and scalars and 0-d arrays of NumPy, JAX and PyTorch with an integer dtype.
    Raises ``TypeError`` for everything else.
    """
    is_bool = isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
    if is_bool or tuple(getattr(value, "shape", ())) != ():
        raise TypeError(f"{shown(value)} is not an integer")
    return operator.index(value)


def action_id(action: Any) -> int:
    """An action that a caller in Python gives, as an ``int``. Raises ``TypeError`` for other values than one integer."""
    if type(action) is int:  # the fast way for nearly all callers
        return action
    try:
        return index(action)
    except TypeError:
        raise TypeError(f"an action must be one integer, got {shown(action)}") from None


def checked_action(action: Any, num_actions: int) -> int:
    """``action_id`` of a game with this many actions. Raises ``IllegalActionError`` outside of their range."""
    number = action_id(action)
    if not 0 <= number < num_actions:
        raise IllegalActionError(f"action {number} is illegal: {out_of_range(num_actions)}")
    return number


def out_of_range(num_actions: int) -> str:
    """The rule that an action outside of the range of a game breaks."""
    return f"there is no such action; actions are 0 to {num_actions - 1}"


def check_count(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """A number of things as an ``int``.

    Raises ``TypeError`` for other values than integers, ``ValueError`` for one below the minimum or above the maximum.
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
    """Raise ``ValueError`` for an argument of this name outside of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}, not {value!r}")
