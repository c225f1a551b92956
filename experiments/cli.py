"""The command line ``tilewe-jax``."""

import gc
import inspect
import os
import signal
import sys
import threading
import weakref
from types import FrameType
from typing import Annotated, Any, NoReturn

from tyro.conf import subcommand

from experiments import compilation_cache, interrupts
from experiments.commands.bench import Bench
from experiments.commands.common import FailedError, UsageError
from experiments.commands.games import Games, Perft, Replay, Rollout, Show
from experiments.commands.match import Arena, Eval, Selfplay
from experiments.commands.train import Report, Train
from experiments.parsing import ArgumentError, parse

# JAX is imported inside the commands: `bench` must not start it, and `--help` need not.

Command = (
    Annotated[Games, subcommand("games")]
    | Annotated[Rollout, subcommand("rollout")]
    | Annotated[Perft, subcommand("perft")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Arena, subcommand("arena")]
    | Annotated[Selfplay, subcommand("selfplay")]
    | Annotated[Train, subcommand("train")]
    | Annotated[Eval, subcommand("eval")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Replay, subcommand("replay")]
    | Annotated[Show, subcommand("show")]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command. Exit code 2 after wrong arguments, 1 where a file is bad or a check failed, 130 after Ctrl-C."""
    is_process = arguments is None
    compilation_cache.enable()
    try:
        command = _parse(sys.argv[1:] if arguments is None else arguments)
    except ArgumentError as error:
        _fail(f"{error}; see tilewe-jax --help", 2)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, _interrupt)
    if is_process:
        interrupts.watch()
    try:
        command.run()
    except UsageError as error:
        _fail(str(error), 2)
    except FailedError as error:
        _fail(str(error), 1)
    except BrokenPipeError:  # the reader wants no more, like `head`; the interpreter must not try again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
    except ValueError as error:
        from tilewe_jax.records import RecordError

        if not isinstance(error, RecordError):
            raise
        _fail(str(error), 1)
    except KeyboardInterrupt:
        if is_process:
            interrupts.end()
        _fail("interrupted", 130)


def _parse(arguments: list[str]) -> Any:
    """The command that arguments stand for. Raises ``ArgumentError`` where they are wrong."""
    return parse(Command, arguments, prog="tilewe-jax", description=inspect.getdoc(sys.modules[__name__]))


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``, but later where the garbage collector is at work, which would lose it.

    It calls hooks, like one of JAX's, and callbacks of weak references, and prints what they raise.
    """
    hooks = [getattr(hook, "__code__", None) for hook in gc.callbacks]
    while frame:
        if frame.f_code in hooks or frame.f_code.co_name == "__del__" or frame.f_code.co_filename == weakref.__file__:
            threading.Timer(0.01, signal.raise_signal, [number]).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _fail(message: str, code: int) -> NoReturn:
    print(f"tilewe-jax: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
