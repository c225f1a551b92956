"""Several processes of one run: they meet before JAX connects them, compare their settings, and end together.

JAX's own start aborts a process, from C++ and with a stack trace, if another one is late. So the processes meet on a plain
connection to the port of the coordinator first: process 0 listens, the others connect, and nobody calls JAX before all are
there. Afterwards they exchange texts through the key-value store of JAX's coordinator.
"""

import contextlib
import json
import platform
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self, TypeVar

import jax

TIMEOUT = 300
"""Seconds to wait for the other processes, unless an option says otherwise."""
_HEARTBEAT = 30
"""Seconds after which JAX takes a silent process for lost."""
_LAST_WORDS = 5
"""Seconds for which process 0, whose coordinator the others need until they have ended, waits for them at its end."""
_LINE = 1 << 16
"""Maximum length of a message, in bytes."""
_PREFIX = "tilewe_jax"

Result = TypeVar("Result")


class LostProcessError(Exception):
    """Another process of the run has ended, or cannot be reached."""


class MissingProcessError(LostProcessError):
    """Another process did not come in time."""


class RefusedError(ValueError):
    """The processes do not fit together."""


class EndedProcessError(Exception):
    """Another process has ended with a message and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class _Joined:
    """Membership of this process in a run of several."""

    number: int
    count: int
    timeout: float
    steps: int = 0
    """Number of exchanges so far, which all processes make in the same order."""
    has_told: bool = False
    """True once the others know why this process ends."""


_joined: _Joined | None = None


def join(
    coordinator: str | None,
    count: int | None,
    number: int | None,
    timeout: float = TIMEOUT,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Join the other processes of a run, before anything else is done with JAX.

    Args:
        coordinator: ``host:port`` of process 0; ``None`` to have JAX detect the cluster.
        count: number of processes.
        number: number of this process, from 0.
        timeout: seconds to wait for the other processes.
        say: receives a line that says who this process is, and for whom it waits.

    Raises ``ValueError`` for arguments that are out of range, if no cluster is detected, or if the versions of the processes
    differ, and ``MissingProcessError`` if one does not come in time.
    """
    global _joined  # noqa: PLW0603
    devices = None
    if coordinator is None:
        coordinator, count, number, devices = _detected(timeout)
    assert count is not None
    assert number is not None
    host, port = _address(coordinator)
    if not 0 <= number < count <= 1 << 16:
        raise ValueError(f"the number of a process must be from 0 to less than their number, not {number} of {count}")
    if count > 1:
        waits = f"follows process 0 at {coordinator}" if number else f"waits at port {port} for {_processes(range(1, count))}"
        say(f"process {number} of {count} on host {socket.gethostname()}, {waits}")
        if number == 0:
            gather(port, count, timeout, _about(count))
        else:
            follow(host, port, number, count, timeout, _about(count))
    # Otherwise JAX's own watch aborts the remaining processes before they can print a message.
    jax.config.update("jax_enable_recoverability", True)
    # JAX would take SIGTERM for itself.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator,
            count,
            number,
            local_device_ids=devices,
            initialization_timeout=max(60, int(timeout)),
            heartbeat_timeout_seconds=_HEARTBEAT,
        )
    except (ValueError, RuntimeError, OSError) as error:
        raise ValueError(f"cannot join the other processes: {_first_line(error)}") from None
    if count > 1:
        _joined = _Joined(number, count, timeout)


def _detected(timeout: float) -> tuple[str, int, int, Any]:
    """Detect the cluster: address of process 0, number of processes, number and devices of this process."""
    from jax._src.clusters import ClusterEnv

    try:
        found = ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, int(timeout))
    except (ValueError, RuntimeError, OSError, KeyError) as error:
        raise ValueError(f"cannot join the other processes: {_first_line(error)}; {_BY_HAND}") from None
    address, count, number, devices = found
    if address is None or count is None or number is None:
        raise ValueError(f"cannot join the other processes: JAX detects no cluster here; {_BY_HAND}")
    return address, count, number, devices


_BY_HAND = "give --coordinator, --num-processes and --process-id"


def _address(coordinator: str) -> tuple[str, int]:
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"the coordinator must be host:port, with a port from 1 to 65535, not {coordinator!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _about(count: int) -> dict[str, Any]:
    """Values that must agree in all processes before JAX connects them."""
    about: dict[str, Any] = {"num_processes": count, "python": ".".join(platform.python_version_tuple()[:2])}
    for package in ("tilewe-jax", "jax", "jaxlib"):
        try:
            about[package] = version(package)
        except PackageNotFoundError:
            about[package] = "not installed"
    return about


def differences(values: dict[int, dict[str, Any]]) -> str:
    """Return in words where processes differ from process 0; empty if they are all alike."""
    mine, parts = values[0], []
    for name in dict.fromkeys(name for value in values.values() for name in value):
        others: dict[str, list[int]] = {}
        for number, value in values.items():
            if value.get(name) != mine.get(name):
                others.setdefault(_json(value.get(name)), []).append(number)
        for text, numbers in others.items():
            parts.append(f"{name} is {_json(mine.get(name))} in process 0 and {text} in {_processes(numbers)}")
    return ", ".join(parts)


def _processes(numbers: Any) -> str:
    """Processes in words, ranges of them in short."""
    numbers, parts = sorted(numbers), []
    while numbers:
        length = next((i for i in range(1, len(numbers)) if numbers[i] != numbers[0] + i), len(numbers))
        parts += [str(numbers[0])] if length == 1 else [f"{numbers[0]} to {numbers[length - 1]}"] if length > 2 else []
        parts += [str(number) for number in numbers[:2]] if length == 2 else []
        numbers = numbers[length:]
    return f"process{'' if len(parts) == 1 and ' ' not in parts[0] else 'es'} {', '.join(parts)}"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# Before JAX connects the processes.


def gather(port: int, count: int, timeout: float, about: dict[str, Any]) -> None:
    """Process 0: wait until all other processes have connected, compare them, and let them go on.

    Raises ``RefusedError`` in all processes if they differ, and ``MissingProcessError`` if some do not come in time.
    """
    deadline = time.monotonic() + timeout
    try:
        listener = _listener(port)
    except OSError as error:
        raise RefusedError(f"process 0 cannot listen at port {port}: {error.strerror or error}") from None
    with _Meeting(listener) as meeting:
        while True:
            missing = set(range(1, count)) - meeting.present.keys()
            if wrong := differences({0: about} | {number: others for number, (_, others) in meeting.present.items()}):
                meeting.answer(f"the processes differ: {wrong}")
                raise RefusedError(f"the processes differ: {wrong}")
            if not missing:
                meeting.answer(None)
                return
            if time.monotonic() > deadline:
                message = f"{_processes(missing)} of {count} did not come within {timeout:g} s ({_OPTION})"
                meeting.answer(message)
                raise MissingProcessError(message)
            meeting.wait(0.2)


_OPTION = "--join-timeout"


class _Meeting:
    """The connections of process 0. Strangers, who send something else or nothing, are of no consequence."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener, self._selector = listener, selectors.DefaultSelector()
        self._received: dict[socket.socket, bytes] = {}
        self.present: dict[int, tuple[socket.socket, dict[str, Any]]] = {}
        """The connection of each process, and its values to compare."""

    def __enter__(self) -> Self:
        self._selector.register(self._listener, selectors.EVENT_READ)
        return self

    def __exit__(self, *error: object) -> None:
        for connection in (self._listener, *self._received):
            connection.close()
        self._selector.close()

    def wait(self, seconds: float) -> None:
        """Handle what comes within some time."""
        for key, _ in self._selector.select(seconds):
            connection: Any = key.fileobj
            with contextlib.suppress(OSError):
                if connection is self._listener:
                    connection, _ = self._listener.accept()
                    connection.setblocking(False)
                    self._received[connection] = b""
                    self._selector.register(connection, selectors.EVENT_READ)
                else:
                    self._receive(connection)

    def answer(self, refused: str | None) -> None:
        """Let the processes go on, or end with a message."""
        connections = [connection for connection, _ in self.present.values()]
        for connection in connections:
            _send(connection, {"refused": refused})
        for connection in connections:  # the other side closes first, so that the port is free afterwards
            with contextlib.suppress(OSError):
                connection.recv(1)

    def _receive(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._received[connection] += data
        hello = _message(self._received[connection])
        if not data or len(self._received[connection]) > _LINE:
            self._drop(connection)
        elif hello is not None and all(connection is not other for other, _ in self.present.values()):
            number, about = hello.get("process"), hello.get("about")
            if type(number) is not int or not isinstance(about, dict):
                self._drop(connection)
            elif number in self.present or number < 1:
                _send(connection, {"refused": f"there are two processes {number}; --process-id must differ"})
                self._drop(connection)
            else:
                self.present[number] = connection, about

    def _drop(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._received[connection]
        self.present = {number: row for number, row in self.present.items() if row[0] is not connection}
        connection.close()


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        connection.settimeout(5)
        connection.sendall(_json(message).encode() + b"\n")


def _listener(port: int) -> socket.socket:
    """A socket that listens at a port of all addresses, as JAX's coordinator does."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def follow(host: str, port: int, number: int, count: int, timeout: float, about: dict[str, Any]) -> None:
    """Any other process: connect to process 0, and wait until all have come.

    Raises ``RefusedError`` and ``LostProcessError`` as ``gather`` does.
    """
    deadline = time.monotonic() + timeout
    where, reason = f"process 0 at {host}:{port}", ""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise MissingProcessError(f"{where} did not come within {timeout:g} s ({_OPTION}){reason}")
        try:
            with socket.create_connection((host, port), timeout=min(left, 2.0)) as connection:
                connection.sendall(_json({"process": number, "about": about}).encode() + b"\n")
                # A process whose limit is longer than this one's says when the time is over.
                answered = _answer(connection, deadline + 5)
        except OSError as error:
            answered, reason = b"", f": {error.strerror or error}"
        message = _message(answered)
        if answered and (message is None or "refused" not in message):
            raise RefusedError(f"what listens at {host}:{port} is not process 0 of a run")
        if message is not None:
            refused = message["refused"]
            if refused is None:
                return
            raise (MissingProcessError if _OPTION in str(refused) else RefusedError)(str(refused))
        time.sleep(0.2)  # it is not there yet, or was ended and may be started again


def _answer(connection: socket.socket, deadline: float) -> bytes:
    """The line that process 0 sends, or what came until the connection or the time was over."""
    received = b""
    connection.settimeout(0.5)
    while b"\n" not in received and len(received) < _LINE and time.monotonic() < deadline:
        try:
            data = connection.recv(4096)
        except TimeoutError:
            continue
        if not data:
            break
        received += data
    return received


def _message(received: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; ``None`` until it is whole, and an empty one for anything else."""
    line, newline, _ = received.partition(b"\n")
    if not newline:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# After JAX has connected the processes.


def are_several() -> bool:
    """Whether this process trains with others."""
    return _joined is not None or (jax.distributed.is_initialized() and jax.process_count() > 1)


def _membership() -> _Joined:
    """The membership of this process, also if a user's program connected the processes without ``join``."""
    global _joined  # noqa: PLW0603
    if _joined is None:
        _joined = _Joined(jax.process_index(), jax.process_count(), TIMEOUT)
    return _joined


def _store() -> Any:
    """The key-value store of JAX's coordinator."""
    from jax._src.distributed import global_state

    return global_state.client


def _wait(key: str, what: str, limit: float | None) -> str:
    """Wait for a key, and return its text. Raises if another process has failed, or after a time limit."""
    deadline = None if limit is None else time.monotonic() + limit
    while True:
        try:
            return str(_store().blocking_key_value_get(key, 500))
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise LostProcessError(_first_line(error)) from None
        for name, text in _store().key_value_dir_get(f"{_PREFIX}/failed"):
            code, _, message = text.partition(" ")
            if code == "130":
                raise KeyboardInterrupt
            raise EndedProcessError(f"process {name.rpartition('/')[2]}: {message}", int(code))
        if deadline is not None and time.monotonic() > deadline:
            raise MissingProcessError(f"{what} did not come within {limit:g} s ({_OPTION})")


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Tell the other processes why this one ends, so that they do not wait for it."""
    try:
        yield
    except (LostProcessError, EndedProcessError):
        raise
    except KeyboardInterrupt:
        _tell(130, "interrupted")
        raise
    except Exception as error:
        _tell(2 if isinstance(error, (ValueError, MemoryError)) else 1, _first_line(error))
        raise


def _tell(code: int, message: str) -> None:
    if _joined is not None and not _joined.has_told:
        _joined.has_told = True
        with contextlib.suppress(Exception):
            _store().key_value_set(f"{_PREFIX}/failed/{_joined.number}", f"{code} {message}")


def exchange(value: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the JSON objects that the processes give, by process. Raises ``MissingProcessError`` if one is late."""
    me = _membership()
    me.steps += 1
    key = f"{_PREFIX}/{me.steps}"
    if me.number:
        _store().key_value_set(f"{key}/{me.number}", _json(value))
        text = _wait(f"{key}/all", "process 0", me.timeout + 5)
    else:
        values = {"0": value}
        for number in range(1, me.count):
            values[str(number)] = json.loads(_wait(f"{key}/{number}", f"process {number}", me.timeout))
        text = _json(values)
        _store().key_value_set(f"{key}/all", text)
    return {int(number): row for number, row in sorted(json.loads(text).items(), key=lambda item: int(item[0]))}


def check_alike(value: dict[str, Any]) -> None:
    """Raise ``RefusedError`` in all processes if one has another value, or other devices, than process 0."""
    if wrong := differences(exchange(value)):
        raise RefusedError(f"the processes differ: {wrong}")
    devices: dict[int, dict[str, Any]] = {}
    for device in jax.devices():  # of all processes
        row = devices.setdefault(device.process_index, {"devices": 0, "device kind": device.device_kind})
        row["devices"] += 1
    if wrong := differences(devices):
        raise RefusedError(f"the processes differ: {wrong}")


def led(function: Callable[[], Result]) -> Result | None:
    """Call a function in process 0 alone, while the others wait; if it raises, they raise ``EndedProcessError``.

    Returns the result, a JSON value, in all processes.
    """
    if not are_several():
        return function()
    me = _membership()
    me.steps += 1
    key = f"{_PREFIX}/{me.steps}"
    if me.number:
        return json.loads(_wait(key, "process 0", None))  # type: ignore[no-any-return]
    with telling():
        result = function()
    _store().key_value_set(key, _json(result))
    return result


def meet() -> None:
    """Wait until all processes are here. Collectives of CPUs connect within 30 seconds, or fail."""
    if are_several():
        exchange({})


@contextlib.contextmanager
def naming_lost_processes() -> Iterator[None]:
    """Raise ``LostProcessError`` instead of errors of JAX, Gloo and Orbax if other processes are gone."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        is_of_jax = isinstance(error, jax.errors.JaxRuntimeError) or "Gloo" in str(error) or "DEADLINE_EXCEEDED" in str(error)
        if is_of_jax and are_several():
            raise LostProcessError(_first_line(error)) from error
        raise


def leave() -> None:
    """Let all processes end at about the same time: a process whose coordinator has gone is aborted by JAX."""
    if _joined is None:
        return
    with contextlib.suppress(Exception):
        key = f"{_PREFIX}/left"
        if _joined.number:
            _store().key_value_set(f"{key}/{_joined.number}", "")
            return
        deadline = time.monotonic() + _LAST_WORDS
        while len(_store().key_value_dir_get(key)) < _joined.count - 1 and time.monotonic() < deadline:
            time.sleep(0.05)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
