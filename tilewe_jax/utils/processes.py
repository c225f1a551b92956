"""Child processes: killing them with their descendants, and their priority."""

import contextlib
import os
import signal
import sys

import psutil


def kill(pid: int) -> None:
    """Kill a process that was started with ``start_new_session=True``, and its descendants."""
    if sys.platform == "win32":  # without sessions
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            for each in (*process.children(recursive=True), process):
                each.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def lower_priority(pid: int, niceness: int) -> None:
    """Lower the priority of a process, by ``niceness`` where the system supports it. An ended process is ignored."""
    with contextlib.suppress(OSError, psutil.Error):
        if sys.platform == "win32":
            psutil.Process(pid).nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            os.setpriority(os.PRIO_PROCESS, pid, niceness)
