"""Check whether JAX can compute in this process, before a call that would hang or fail without a reason."""

import os
import sys

import jax

from tilewe_jax.utils.checks import BackendError

FORKED = (
    "JAX was used before this process was forked from its parent, so that it cannot compute here and would hang."
    " Start processes with the method 'spawn' or 'forkserver' (gymnasium: AsyncVectorEnv(..., context='spawn'); torch:"
    " DataLoader(..., multiprocessing_context='spawn')), or step many games in one process: GameVectorEnv, Environment"
)


class _Process:
    is_forked = False
    """This process was forked from a process in which JAX had started."""


def require_backend() -> None:
    """Raise ``BackendError`` in one line if JAX cannot compute in this process. Starts no backend.

    After a fork the threads of JAX do not exist, and the first computation would wait for them forever. With
    ``JAX_PLATFORMS=cuda`` on a machine without an NVIDIA GPU, JAX fails with a bare ``AssertionError``.
    """
    if _Process.is_forked:
        raise BackendError(FORKED)
    if not _has_started() and _lacks_cuda():
        raise BackendError(
            "JAX_PLATFORMS=cuda needs an NVIDIA GPU, and none is visible. Leave it unset, or set JAX_PLATFORMS=cpu"
        )


def _has_started() -> bool:
    """Return whether the backends of JAX are initialized, in this process or in the process that it was forked from."""
    bridge = sys.modules.get("jax._src.xla_bridge")  # JAX has no public name for this
    return bool(getattr(bridge, "backends_are_initialized", lambda: False)())


def _lacks_cuda() -> bool:
    """Return whether CUDA is the only platform that JAX may use, without a GPU."""
    if jax.config.jax_platforms != "cuda":  # type: ignore[attr-defined]
        return False
    hardware = sys.modules.get("jax._src.hardware_utils")
    return not getattr(hardware, "has_visible_nvidia_gpu", lambda: True)()


def _after_fork() -> None:
    # ``_has_started`` takes a lock that a thread of the parent may have held.
    _Process.is_forked |= bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
