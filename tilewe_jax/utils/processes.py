"""Processes that this one has started: ended with all that they have started themselves, and kept behind others."""

import contextlib
import os
import signal
import sys

import psutil


def kill(pid: int) -> None:
    """Kill a process that was started with ``start_new_session=True``, if it has not ended, and those that it has started."""
    if sys.platform == "win32":  # which has no sessions
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            for each in (*process.children(recursive=True), process):
                each.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def lower_priority(pid: int, niceness: int) -> None:
    """Have a process yield to others, by so much where the system knows degrees; nothing happens where it has ended."""
    with contextlib.suppress(OSError, psutil.Error):
        if sys.platform == "win32":
            psutil.Process(pid).nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            os.setpriority(os.PRIO_PROCESS, pid, niceness)
