"""Several processes of one run: wait for each other before JAX connects them, compare their settings, and end together.

If a process is late, ``jax.distributed.initialize`` aborts the others from C++ with a stack trace. Therefore the processes
first connect by plain sockets to the port of the coordinator, where process 0 listens. After JAX has connected them, they
exchange texts through the key-value store of its coordinator.
"""

import contextlib
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import jax

from tilewe_jax.utils.agreement import differences, hash_of, numbered, versions

TIMEOUT = 300
"""Default number of seconds to wait for the other processes."""
_HEARTBEAT = 30
"""Seconds without a heartbeat after which JAX treats a process as lost."""
_LAST_WORDS = 5
"""Seconds that process 0 waits at its end for the other processes, which need its coordinator until they have ended."""
_OTHER_FILES = 512
"""Number of open files of a process besides its connections to other processes."""
_LINE = 1 << 16
"""Maximum length of a message, in bytes."""
_PREFIX = "tilewe_jax"

Result = TypeVar("Result")


class LostProcessError(Exception):
    """Raised if another process of the run has ended or cannot be reached."""


class MissingProcessError(LostProcessError):
    """Raised if another process does not connect in time."""


class RefusedError(ValueError):
    """Raised if the processes have different settings or versions."""


class EndedProcessError(Exception):
    """Raised if another process has ended with a message and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class _Joined:
    """Membership of this process in a run of several processes."""

    number: int
    count: int
    timeout: float
    steps: int = 0
    """Number of exchanges so far. All processes make the same exchanges in the same order."""
    has_reported: bool = False
    """True once the other processes know why this process ends."""


_joined: _Joined | None = None


def join(
    coordinator: str | None,
    count: int | None,
    number: int | None,
    timeout: float = TIMEOUT,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Join the other processes of a run. Must be called before any other use of JAX.

    Args:
        coordinator: ``host:port`` of process 0; ``None`` to have JAX detect the cluster.
        count: number of processes.
        number: number of this process, from 0.
        timeout: seconds to wait for the other processes.
        say: receives a line with the number of this process and the processes that it waits for.

    Raises ``ValueError`` for arguments out of range, if no cluster is detected, or if the versions of the processes differ, and
    ``MissingProcessError`` if a process is late.
    """
    global _joined  # noqa: PLW0603
    devices = None
    if coordinator is None:
        coordinator, count, number, devices = _detected(timeout)
    assert count is not None
    assert number is not None
    host, port = _address(coordinator)
    if not 0 <= number < count <= 1 << 16:
        raise ValueError(f"--process-id must be at least 0 and less than --num-processes, {count}, got {number}")
    if count > 1:
        others = numbered(range(1, count), "processes")
        leads = f"waits at port {port} for {others}, at most {timeout:g} s"
        waits = f"follows process 0 at {coordinator}" if number else leads
        say(f"process {number} of {count} on host {socket.gethostname()}, {waits}")
        if number == 0:
            gather(port, count, timeout, _about(count))
        else:
            follow(host, port, number, count, timeout, _about(count))
    # Without it, JAX aborts the remaining processes before they can print a message.
    jax.config.update("jax_enable_recoverability", True)
    # JAX would handle SIGTERM itself.
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
        detected = ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, int(timeout))
    except (ValueError, RuntimeError, OSError, KeyError) as error:
        raise ValueError(f"cannot join the other processes: {_first_line(error)}; {_BY_HAND}") from None
    address, count, number, devices = detected
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
    """Return the values that must agree in all processes before JAX connects them."""
    return {"num_processes": count, **versions()}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# Before JAX connects the processes.


def gather(port: int, count: int, timeout: float, about: dict[str, Any]) -> None:
    """In process 0: wait until all other processes have connected, compare them, and let them continue.

    Raises ``RefusedError`` in all processes if they differ, and ``MissingProcessError`` if some are late.
    """
    _allow_files(count + _OTHER_FILES)
    deadline = time.monotonic() + timeout
    try:
        listener = _listener(port)
    except OSError as error:
        raise RefusedError(f"process 0 cannot listen at port {port}: {error.strerror or error}") from None
    present: dict[int, tuple[socket.socket, dict[str, Any]]] = {}
    problem: RefusedError | MissingProcessError | None = None
    with listener, contextlib.ExitStack() as connections:
        listener.settimeout(0.2)
        while problem is None:
            present = {number: row for number, row in present.items() if _is_open(row[0])}
            missing = set(range(1, count)) - present.keys()
            if wrong := differences({0: about} | {number: values for number, (_, values) in present.items()}, "processes"):
                problem = RefusedError(f"the processes differ: {wrong}")
            elif not missing:
                break
            elif time.monotonic() > deadline:
                problem = MissingProcessError(
                    f"{numbered(missing, 'processes')} of {count} did not connect within {timeout:g} s ({_OPTION})"
                )
            else:
                with contextlib.suppress(OSError):
                    _admit(connections.enter_context(listener.accept()[0]), present)
        for connection, _ in present.values():
            _send(connection, {"refused": problem and str(problem)})
        for connection, _ in present.values():  # the other side closes first, so that the port is free afterwards
            with contextlib.suppress(OSError):
                connection.recv(1)
    if problem:
        raise problem


def _allow_files(count: int) -> None:
    """Raise the limit of open files, which many systems set to 1,024; process 0 has a connection to each other process."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if resource.RLIM_INFINITY != soft < count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard == resource.RLIM_INFINITY else min(count, hard), hard))


_OPTION = "--join-timeout"


def _admit(connection: socket.socket, present: dict[int, tuple[socket.socket, dict[str, Any]]]) -> None:
    """Add the process that connected; close connections of other programs, which send something else or nothing."""
    hello = _message(_read_line(connection, time.monotonic() + 1)) or {}
    number, about = hello.get("process"), hello.get("about")
    if type(number) is not int or not isinstance(about, dict):
        connection.close()
    elif number in present or number < 1:
        _send(connection, {"refused": f"there are two processes {number}; --process-id must differ"})
        connection.close()
    else:
        connection.setblocking(False)
        present[number] = connection, about


def _is_open(connection: socket.socket) -> bool:
    """Return whether the other side of a non-blocking connection has not closed it."""
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        connection.settimeout(5)
        connection.sendall(_json(message).encode() + b"\n")


def _listener(port: int) -> socket.socket:
    """Listen at a port of all addresses, as JAX's coordinator does."""
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def follow(host: str, port: int, number: int, count: int, timeout: float, about: dict[str, Any]) -> None:
    """In the other processes: connect to process 0, and wait until all have connected.

    Raises ``RefusedError`` and ``MissingProcessError`` as ``gather`` does.
    """
    deadline, reason = time.monotonic() + timeout, ""
    while (left := deadline - time.monotonic()) > 0:
        try:
            with socket.create_connection((host, port), timeout=min(left, 2.0)) as connection:
                _send(connection, {"process": number, "about": about})
                # Process 0 may have a later deadline; it then reports the missing processes.
                line = _read_line(connection, deadline + 5)
        except OSError as error:
            line, reason = b"", f": {error.strerror or error}"
        message = _message(line)
        if line and (message is None or "refused" not in message):
            raise RefusedError(f"the program that listens at {host}:{port} is not process 0 of a run")
        if message is not None:
            refused = message["refused"]
            if refused is None:
                return
            raise (MissingProcessError if _OPTION in str(refused) else RefusedError)(str(refused))
        time.sleep(0.2)  # process 0 has not started yet, or has ended and may be started again
    raise MissingProcessError(f"process 0 at {host}:{port} did not answer within {timeout:g} s ({_OPTION}){reason}")


def _read_line(connection: socket.socket, deadline: float) -> bytes:
    """Return the first line of a connection, or the part received before the connection or the time ended."""
    received = b""
    while b"\n" not in received and len(received) < _LINE and (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            data = connection.recv(4096)
        except TimeoutError:
            break
        if not data:
            break
        received += data
    return received


def _message(received: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line: ``None`` if the line is incomplete, an empty object for anything else."""
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
    """Return whether the run has several processes."""
    return _joined is not None or (jax.distributed.is_initialized() and jax.process_count() > 1)


def _membership() -> _Joined:
    """Return the membership of this process, also if a user's program connected the processes without ``join``."""
    global _joined  # noqa: PLW0603
    if _joined is None:
        _joined = _Joined(jax.process_index(), jax.process_count(), TIMEOUT)
    return _joined


def _store() -> Any:
    """Return the key-value store of JAX's coordinator."""
    from jax._src.distributed import global_state

    return global_state.client


def _wait(key: str, sender: str, limit: float | None) -> str:
    """Wait for the text of a key. Raises if another process has failed, or after a time limit in seconds."""
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
            raise MissingProcessError(f"{sender} did not answer within {limit:g} s ({_OPTION})")


@contextlib.contextmanager
def reporting() -> Iterator[None]:
    """Report an exception of this process to the other processes, which then stop waiting for it."""
    try:
        yield
    except MissingProcessError as error:
        _report(1, str(error))
        raise
    except (LostProcessError, EndedProcessError):
        raise
    except KeyboardInterrupt:
        _report(130, "interrupted")
        raise
    except Exception as error:
        _report(2 if isinstance(error, (ValueError, MemoryError)) else 1, _first_line(error))
        raise


def _report(code: int, message: str) -> None:
    if _joined is not None and not _joined.has_reported:
        _joined.has_reported = True
        with contextlib.suppress(Exception):
            _store().key_value_set(f"{_PREFIX}/failed/{_joined.number}", f"{code} {message}")


def check_equal(value: dict[str, Any]) -> None:
    """Raise ``RefusedError`` in all processes if a value of one differs from its value in process 0.

    All processes call this together. Process 0 compares the values, so that each process makes few requests to the coordinator.
    Raises ``MissingProcessError`` in process 0 and ``EndedProcessError`` in the others if a process is late.
    """
    if not are_several():
        return
    me = _membership()
    me.steps += 1
    key = f"{_PREFIX}/{me.steps}"
    _store().key_value_set(f"{key}/{me.number}", _json(value))

    def compare() -> str:
        texts = (_wait(f"{key}/{number}", f"process {number}", me.timeout) for number in range(me.count))
        return differences(dict(enumerate(map(json.loads, texts))), "processes")

    if wrong := led(compare):
        raise RefusedError(f"the processes differ: {wrong}")


def check_arrays(read: dict[str, Any]) -> None:
    """Raise ``RefusedError`` in all processes if the arrays that they have read differ.

    Args:
        read: pytrees of arrays by the name of their file; ``None`` for no file.
    """
    if are_several():
        check_equal({f"the hash of {name}": hash_of(arrays) for name, arrays in read.items() if arrays is not None})


def check_devices() -> None:
    """Raise ``RefusedError`` if the processes have different devices."""
    devices: dict[int, dict[str, Any]] = {}
    for device in jax.devices():
        row = devices.setdefault(device.process_index, {"devices": 0, "device kind": device.device_kind})
        row["devices"] += 1
    if wrong := differences(devices, "processes"):
        raise RefusedError(f"the processes differ: {wrong}")


def led(function: Callable[[], Result]) -> Result | None:
    """Call a function in process 0 only, and return its result, a JSON value, in all processes.

    If the function raises, the other processes raise ``EndedProcessError``.
    """
    if not are_several():
        return function()
    me = _membership()
    me.steps += 1
    key = f"{_PREFIX}/{me.steps}"
    if me.number:
        return json.loads(_wait(key, "process 0", None))  # type: ignore[no-any-return]
    with reporting():
        result = function()
    _store().key_value_set(key, _json(result))
    return result


def wait_for_all() -> None:
    """Wait until all processes call this. Collectives on CPUs must connect within 30 seconds of each other."""
    check_equal({})


@contextlib.contextmanager
def naming_lost_processes() -> Iterator[None]:
    """Raise ``LostProcessError`` instead of errors of JAX, Gloo and Orbax if another process has ended."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        is_of_jax = isinstance(error, jax.errors.JaxRuntimeError) or "Gloo" in str(error) or "DEADLINE_EXCEEDED" in str(error)
        if is_of_jax and are_several():
            raise LostProcessError(_first_line(error)) from error
        raise


def leave() -> None:
    """Keep process 0 alive until the others have ended, because JAX aborts a process that loses its coordinator."""
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
