"""Values of game options, checked by the annotations and defaults of the factory's parameters. Plain Python, without JAX."""

import inspect
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from tilewe_jax.utils.checks import index, shown
from tilewe_jax.utils.words import did_you_mean


def checked_options(name: str, known: Mapping[str, inspect.Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a game as its factory takes them.

    Args:
      name: the id of the game.
      known: the parameters of its factory.
      given: options; a list stands for a tuple, as in JSON.

    Raises ``ValueError`` for an unknown option, or a value of another type than the annotation and the default.
    """
    unknown = [option for option in given if option not in known]
    if unknown:
        options = f"its options are {', '.join(known)}" if known else "it has no options"
        raise ValueError(f"{name} has no option {', '.join(unknown)}{did_you_mean(unknown[0], known)}; {options}")
    return {option: _checked(name, known[option], value) for option, value in given.items()}


def _checked(name: str, parameter: inspect.Parameter, value: Any) -> Any:
    default, annotation = parameter.default, parameter.annotation
    if isinstance(annotation, str) or annotation is parameter.empty or annotation is Any:
        annotation = Any if default is None or default is parameter.empty else type(default)
    has_no_example = default is None or default is parameter.empty or get_origin(annotation) is Literal
    like = "" if has_no_example else f", like {default!r}"
    try:
        value = _plain(value)
        if _accepts(annotation, value):
            return float(value) if annotation is float else value
    except RecursionError:  # lists in lists in lists
        raise ValueError(f"{name}: {parameter.name} must be {_named(annotation)}{like}, not nested so deeply") from None
    raise ValueError(f"{name}: {parameter.name} must be {_named(annotation)}{like}, not {shown(value)}")


def _plain(value: Any) -> Any:
    """Convert lists to tuples, and integers of NumPy to integers of Python."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if hasattr(value, "dtype"):
        try:
            return index(value)
        except TypeError:
            return value
    return value


def _accepts(annotation: Any, value: Any) -> bool:  # noqa: PLR0911
    """Whether a value has the type of an annotation. Numbers are finite, and an integer is a number; a boolean is neither."""
    kind, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return True
    if kind in (Union, types.UnionType):
        return any(_accepts(argument, value) for argument in arguments)
    if annotation in (None, types.NoneType):
        return value is None
    if kind is Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if kind is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        # The number of elements is for the factory to check, because it knows their meaning.
        return isinstance(value, tuple) and all(map(_accepts, arguments, value))
    if kind is tuple or (isinstance(kind, type) and issubclass(kind, Sequence)):
        return isinstance(value, tuple) and all(_accepts(arguments[0], each) for each in value)
    if annotation is float:
        return type(value) in (int, float) and _is_finite(value)
    if annotation in (int, bool, str, tuple):
        return type(value) is annotation
    kind = annotation if kind is None else kind
    return not isinstance(kind, type) or isinstance(value, kind)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _named(annotation: Any, plural: bool = False) -> str:
    """An annotation for a message."""
    kind, arguments = get_origin(annotation), get_args(annotation)
    if kind in (Union, types.UnionType):
        return " or ".join(map(_named, arguments))
    if annotation in _WORDS:
        return _WORDS[annotation][plural]
    if kind is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if arguments and (kind is tuple or (isinstance(kind, type) and issubclass(kind, Sequence))):
        return f"{'lists' if plural else 'a list'} of {_named(arguments[0], plural=True)}"
    return str(getattr(annotation, "__name__", annotation))


_WORDS: dict[Any, tuple[str, str]] = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    str: ("text", "texts"),
    bool: ("true or false", "truth values"),
    None: ("none", "none"),
    types.NoneType: ("none", "none"),
}
"""Types of options in words, and several of them."""
