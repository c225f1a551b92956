"""Batches on several devices, by ``jax.shard_map`` over a mesh of one axis."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import PyTree

from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import check_count


def over_devices(function: Callable[..., PyTree], devices: int | None = None) -> Callable[..., PyTree]:
    """Run a function on several devices at once, each with its own slice of the arguments.

    Args:
      function: takes and gives pytrees without the device axis.
      devices: number of devices; by default all of them.

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
    """Run a function of a batch on several devices at once, each with its part of the batch.

    Args:
      function: takes and gives pytrees whose leaves are ``[batch, ...]``.
      devices: number of devices; by default all of them.
      shared: the first so many arguments are the same for all devices, like weights.

    Returns:
      The function of the whole batch::

        actions = split_over_devices(jax.vmap(search), 4)(states, keys)

    Raises ``ValueError`` where there are fewer devices, and when called with a batch that cannot be divided among them.
    """
    require_backend()
    available = jax.devices()
    count = len(available) if devices is None else devices
    check_count("devices", count, 1, len(available))
    spec = PartitionSpec("data")
    # check_vma: loops start from constants, which vary over the devices only from the second iteration on.
    mesh = Mesh(np.array(available[:count]), ("data",))

    def checked(*args: PyTree) -> PyTree:
        specs = (PartitionSpec(),) * shared + (spec,) * (len(args) - shared)
        mapped = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=spec, check_vma=False)
        batch = jax.tree.leaves(args[shared:])[0].shape[0]
        if batch % count:
            raise ValueError(f"a batch of {batch} cannot be divided among {count} devices; ask for a multiple of {count}")
        return mapped(*args)

    return checked
