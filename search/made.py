"""Functions that hold settings and can be pickled, copied and sent to other processes: pickled is how they were made."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])


def made_again(maker: Callable[P, F]) -> Callable[P, F]:
    """Decorate a function that returns a function, so that the result is pickled as a call of ``maker`` with its arguments."""

    @wraps(maker)
    def make(*args: P.args, **kwargs: P.kwargs) -> F:
        return cast(F, _Made(maker(*args, **kwargs), partial(make, *args, **kwargs)))

    return make


class _Made:
    """A function, and the call that makes it."""

    def __init__(self, function: Callable[..., Any], again: Callable[[], Any]) -> None:
        self._function = function
        self._again = again

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return self._again, ()
