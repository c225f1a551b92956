"""Batches on several devices, with ``jax.shard_map`` over a one-dimensional mesh."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import PyTree

from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count


def over_devices(function: Callable[..., PyTree], devices: int | None = None) -> Callable[..., PyTree]:
    """Run a function on several devices in parallel, each with its own slice of the arguments.

    Args:
      function: a function of pytrees without the device axis.
      devices: number of devices; by default all devices.

    Returns:
      A function whose arguments and results have a leading axis of length ``devices`` in every leaf::

        games = over_devices(lambda key: rollout(game, key, 1024), 4)(jax.random.split(key, 4))

    Raises ``ValueError`` if there are fewer devices.
    """

    def local(*args: PyTree) -> PyTree:
        out = function(*jax.tree.map(lambda leaf: leaf[0], args))
        return jax.tree.map(lambda leaf: leaf[None], out)

    return split_over_devices(local, devices)


def split_over_devices(function: Callable[..., PyTree], devices: int | None = None, shared: int = 0) -> Callable[..., PyTree]:
    """Run a batched function on several devices in parallel, each with its part of the batch.

    Args:
      function: a function of pytrees with leaves ``[batch, ...]``.
      devices: number of devices; by default all devices.
      shared: number of leading arguments that are the same for all devices, such as weights.

    Returns:
      The function of the whole batch::

        actions = split_over_devices(jax.vmap(search), 4)(states, keys)

    Raises ``ValueError`` if there are fewer devices, and on a call with a batch size that ``devices`` does not divide.
    """
    require_backend()
    available = jax.devices()
    count = len(available) if devices is None else devices
    check_count("devices", count, 1, len(available))
    if count == 1:  # without shard_map, whose mesh would have JAX trace the same functions again
        return function
    spec = PartitionSpec("data")
    # check_vma would fail: loops start from constants, which vary over the devices only from the second iteration on.
    mesh = Mesh(np.array(available[:count]), ("data",))

    def checked(*args: PyTree) -> PyTree:
        specs = (PartitionSpec(),) * shared + (spec,) * (len(args) - shared)
        mapped = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
        batch = jax.tree.leaves(args[shared:])[0].shape[0]
        if batch % count:
            raise ValueError(f"the batch size must be a multiple of {count}, the number of devices, got {batch}")
        return mapped(*args)

    return checked
