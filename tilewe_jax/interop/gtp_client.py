"""The controller side of the Go Text Protocol: an engine as a process to which commands are sent."""

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
"""Maximum size of a response that is read, in bytes: all legal moves of a position have a tenth of it."""
_CHUNK = 1 << 16
CAN_RUN = sys.platform != "win32"
"""Whether engines can be run on this system."""


class EngineError(Exception):
    """Why an engine cannot be used any more; its process has been ended."""


class CommandError(Exception):
    """The engine refused a command (``?``) and goes on; the message is its reason."""


class GtpEngine:
    """The process of an engine. It ends when it is closed, when this object is no longer used, and with this process.

    Args:
        command: the command line, split as a shell does it; no shell is involved.

    Raises ``EngineError`` where the process cannot be started, and on Windows.
    """

    def __init__(self, command: str) -> None:
        if not CAN_RUN:
            raise EngineError("GTP engines cannot be played on Windows, where `select` does not wait for pipes")
        try:
            arguments = shlex.split(command)
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # what the engine starts itself ends with it
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
        """Whether commands can be sent."""
        return self._close.alive

    def close(self) -> None:
        """End the process."""
        self.cpu_seconds()
        self._close()

    def cpu_seconds(self) -> float:
        """CPU time of the process and its children, in steps of mostly 10 ms; after its end the last one that is known."""
        if self.is_open:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(self._process.pid)
                times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
                # Children that have ended are counted by their parents.
                self._cpu_seconds = sum(sum(each[:2]) for each in times) + sum(times[0][2:4])
        return self._cpu_seconds

    def send(self, line: str, seconds: float) -> str:
        """Send a command and wait for its response.

        Args:
            line: the command.
            seconds: time for the response.

        Returns:
            The text of the response, without its mark.

        Raises ``CommandError`` where the engine refuses; ``EngineError`` where it ended, was too slow, or did not
        answer in GTP.
        """
        try:
            return self._send(line, time.monotonic() + seconds, seconds)
        except EngineError:
            self.close()
            raise
        except ValueError:  # its pipes were closed meanwhile, by another thread
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
            raise EngineError(f"the engine answered {name} with {response[:80]!r}, which is no GTP")
        return text

    def _response(self, name: str, deadline: float, seconds: float) -> str:
        """The lines up to the next empty one, without empty ones before them."""
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
        """How the process ended, in words; empty where it has not."""
        try:
            code = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return ""
        return f", killed by signal {-code}" if code < 0 else f", exit code {code}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and those that it started."""
    processes.kill(process.pid)
    process.wait()  # before its pipes are closed, so that a thread that reads sees their end
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()
