"""Versions and other values that must agree in several jobs, and messages about their differences."""

import hashlib
import json
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilewe_jax.utils.words import noun_of

_MAX_NAMED = 8
"""Maximum number of jobs that a message names."""


def versions() -> dict[str, str]:
    """Return the versions of Python, JAX and this package, which must agree."""
    result = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in ("tilewe-jax", "jax", "jaxlib"):
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "not installed"
    return result


def hash_of(arrays: Any) -> str:
    """Return a hash of the values, dtypes and shapes of all arrays of a pytree, 16 hexadecimal digits; empty without arrays."""
    import jax
    import numpy as np

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arrays) if hasattr(leaf, "dtype")]
    content = hashlib.sha256()
    for leaf in leaves:
        content.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
    return content.hexdigest()[:16] if leaves else ""


def numbered(numbers: Iterable[int], nouns: str) -> str:
    """Name jobs in a message, at most eight of them.

    >>> numbered([3, 1], "processes"), numbered([2], "shards")
    ('processes 1, 3', 'shard 2')
    """
    ordered = sorted(numbers)
    more = f" and {len(ordered) - _MAX_NAMED} more" if len(ordered) > _MAX_NAMED else ""
    return f"{noun_of(len(ordered), nouns)} {', '.join(map(str, ordered[:_MAX_NAMED]))}{more}"


def differences(values: dict[int, dict[str, Any]], nouns: str) -> str:
    """Describe how the values of jobs differ from the values of the first job; empty if they are all equal.

    Args:
        values: values by name for the number of each job.
        nouns: name of the jobs, "processes" or "shards".
    """
    (first, reference), parts = next(iter(values.items())), []
    for name in dict.fromkeys(name for value in values.values() for name in value):
        others: dict[str, list[int]] = {}
        for number, value in values.items():
            if value.get(name) != reference.get(name):
                others.setdefault(_json(value.get(name)), []).append(number)
        for text, numbers in others.items():
            here = f"{_json(reference.get(name))} in {numbered([first], nouns)}"
            parts.append(f"{name} is {here} and {text} in {numbered(numbers, nouns)}")
    return ", ".join(parts)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
