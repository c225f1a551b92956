"""The controller side of the Go Text Protocol: runs an engine as a process and sends commands to it."""

import contextlib
import os
import select
import shlex
import subprocess
import sys
import time
import weakref

import psutil

from tilewe_jax.utils import processes

RESPONSE_LIMIT = 1 << 22
"""Maximum size of a response, in bytes; ten times the size of all legal moves of a position."""
_CHUNK = 1 << 16
CAN_RUN = sys.platform != "win32"
"""Whether this system can run engines."""


class EngineError(Exception):
    """The engine failed, and its process was terminated."""


class CommandError(Exception):
    """The engine answered with an error (``?``) and continues; the message is the error."""


class GtpEngine:
    """The process of an engine. It ends with ``close``, with this object, and with the current process.

    Args:
        command: the command line, split like in a shell, but run without a shell.

    Raises ``EngineError`` if the process cannot be started, and on Windows.
    """

    def __init__(self, command: str) -> None:
        if not CAN_RUN:
            raise EngineError("GTP engines are not supported on Windows, because `select` cannot wait for pipes there")
        try:
            arguments = shlex.split(command)
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # so that its child processes end with it
            )
        except (OSError, ValueError, IndexError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise EngineError(f"cannot start {command!r}: {reason}") from None
        self._command = command
        self._received = b""
        self._cpu_seconds = 0.0
        self._close = weakref.finalize(self, _end, self._process)

    @property
    def is_open(self) -> bool:
        """True while commands can be sent."""
        return self._close.alive

    def close(self) -> None:
        """End the process."""
        self.cpu_seconds()
        self._close()

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process and its children, mostly in steps of 10 ms; after the end, the last known time."""
        if self.is_open:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(self._process.pid)
                times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
                # The parents count the time of finished children.
                self._cpu_seconds = sum(sum(each[:2]) for each in times) + sum(times[0][2:4])
        return self._cpu_seconds

    def send(self, line: str, seconds: float) -> str:
        """Send a command and wait for its response.

        Args:
            line: the command.
            seconds: time for the response.

        Returns:
            The text of the response, without the leading ``=``.

        Raises ``CommandError`` for an error response; ``EngineError`` if the engine ended, timed out, or sent invalid GTP.
        """
        try:
            return self._send(line, time.monotonic() + seconds, seconds)
        except EngineError:
            self.close()
            raise
        except ValueError:  # another thread closed the pipes
            raise EngineError("the engine has been closed") from None

    def _send(self, line: str, deadline: float, seconds: float) -> str:
        name = line.partition(" ")[0]
        if not self.is_open:
            raise EngineError("the engine has been closed")
        stdin = self._process.stdin
        assert stdin
        try:
            _, writable, _ = select.select([], [stdin], [], max(0.0, deadline - time.monotonic()))
            if not writable:
                raise EngineError(f"the engine did not read {name} within {seconds:g} seconds")
            stdin.write(f"{line}\n".encode())
        except OSError:
            raise EngineError(f"the engine ended before {name}{self._exit_code()}") from None
        response = self._response(name, deadline, seconds)
        mark, text = response[:1], response[1:].strip()
        if mark == "?":
            raise CommandError(f"{name} failed: {text[:200]}")
        if mark != "=":
            raise EngineError(f"the engine answered {name} with invalid GTP: {response[:80]!r}")
        return text

    def _response(self, name: str, deadline: float, seconds: float) -> str:
        """Read up to the next empty line, skipping leading empty lines."""
        stdout = self._process.stdout
        assert stdout
        while True:
            self._received = self._received.replace(b"\r", b"").lstrip(b"\n")
            response, end, rest = self._received.partition(b"\n\n")
            if end:
                self._received = rest
                return response.decode("utf-8", "replace")
            if len(self._received) > RESPONSE_LIMIT:
                raise EngineError(f"the engine answered {name} with more than {RESPONSE_LIMIT:,} bytes")
            readable, _, _ = select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise EngineError(f"the engine did not answer {name} within {seconds:g} seconds")
            chunk = os.read(stdout.fileno(), _CHUNK)
            if not chunk:
                raise EngineError(f"the engine ended during {name}{self._exit_code()}")
            self._received += chunk

    def _exit_code(self) -> str:
        """Describe how the process ended; empty if it still runs."""
        try:
            code = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return ""
        return f", killed by signal {-code}" if code < 0 else f", exit code {code}"


def search_move(engine: GtpEngine, color: str, seconds: float) -> tuple[str, float]:
    """Let an engine search its position without playing, and return its move and the value of it for the color to move.

    The commands are ``reg_genmove`` and ``move_values``. Pentobi's ``get_value`` is not used: its searches do not update the
    value of the root, so that it answers 0 or an older value for the opponent. Values may lie outside of [0, 1], because
    Pentobi adds the score to the outcome.

    Args:
        engine: the engine.
        color: the color to move.
        seconds: time limit of each command.

    Raises ``CommandError``, also for moves that the engine plays without a search, or ``EngineError``.
    """
    move = engine.send(f"reg_genmove {color}", seconds)
    moves = [line.split() for line in engine.send("move_values", seconds).splitlines()]
    try:
        return move, float(max(moves, key=lambda words: int(words[0]))[2])
    except (ValueError, IndexError):
        raise CommandError("move_values has another format than Pentobi's") from None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Terminate a process and its descendants."""
    processes.kill(process.pid)
    process.wait()  # before the pipes are closed, so that a reading thread sees their end
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()
