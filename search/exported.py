"""User-supplied networks: files with weights and computation (``jax.export``), and factories in Python modules."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import jax
import jax.numpy as jnp
from jax import export
from jaxtyping import Array, Float32, Int32

from tilewe_jax.game import Game, observation_shape, state_shapes
from tilewe_jax.utils import factories
from tilewe_jax.utils.files import read_input, replacing

F = TypeVar("F", bound=Callable[..., Any])
Network = Callable[[Any], tuple[Array, Array]]
"""Maps an observation to logits, see ``Game.gather_logits``, and to expected outcomes by seat from the player to move on. An
attribute ``interface`` (``NetworkInterface``) replaces the observation and the meaning of the logits."""

PLATFORMS = ("cpu", "cuda", "tpu")
FILE_LIMIT = 1 << 32
"""Maximum size of a network file, in bytes."""


@runtime_checkable
class NetworkInterface(Protocol):
    """The encoding of positions and actions that a network uses. Every ``Game`` is one."""

    @property
    def num_logits(self) -> int:
        """Number of policy logits of the network."""
        ...

    def observe(self, state: Any, player: Int32[Array, ""]) -> Any:
        """Return the input of the network, a pytree of arrays; ``player`` is the player to move."""
        ...

    def gather_logits(
        self, state: Any, logits: Float32[Array, "num_logits"], actions: Int32[Array, "k"]
    ) -> Float32[Array, "k"]:
        """Return the logits of legal actions, differentiable in ``logits``; padding (-1) may get any logit."""
        ...


def network_interface(game: Game[Any], network: Any) -> NetworkInterface:
    """Return the attribute ``interface`` of a network, or the game if the network has none."""
    interface: NetworkInterface | None = getattr(network, "interface", None)
    return game if interface is None else interface


def observation_spec(interface: NetworkInterface, game: Game[Any]) -> Any:
    """Return the ``jax.ShapeDtypeStruct`` tree of the inputs of a network with this interface."""
    return jax.eval_shape(lambda state: interface.observe(state, jnp.int32(0)), state_shapes(game))


def as_tree(function: F) -> F:
    """Wrap a function as a pytree, so that it can be an argument of jitted functions; pytrees are returned unchanged."""
    return cast(F, jax.tree_util.Partial(function)) if jax.tree_util.all_leaves([function]) else function


def save(game: Game[Any], apply: Network, path: Path) -> None:
    """Write a network and the weights that it closes over to a file for ``load`` or ``jax.export``.

    ``apply`` takes one observation; the exported program takes batches of any size. ``jax.export`` guarantees compatibility for
    six months; keep the weights to export them again.
    """
    (batch,) = export.symbolic_shape("batch")
    observations = jax.ShapeDtypeStruct((batch, *observation_shape(game)), jnp.float32)
    exported = export.export(jax.jit(jax.vmap(apply)), platforms=PLATFORMS)(observations)
    with replacing(path, "wb") as file:
        file.write(exported.serialize())


def load(game: Game[Any], name: str) -> Network:
    """Load a network from a file written by ``save``, or call ``module:factory`` with the game.

    Both execute code, so load them only from trusted sources. The size and the shapes of a file are checked before its program
    is compiled.

    Raises ``ValueError`` if the network is missing, unreadable, or does not fit the observations of this game.
    """
    if ":" in name:
        network: Network = factories.call(f"network {name!r}", factories.find("network", name), game)
        if not callable(network):
            raise ValueError(f"network {name!r} must return a function of observations, got {network!r}")
        return network
    exported = _read(game, name)

    # An exported function does not support vmap, but takes batches of any size.
    @jax.custom_batching.custom_vmap
    def call(observations: Array) -> Any:
        return exported.call(observations)

    @call.def_vmap
    def batched(size: int, mapped: list[bool], observations: Array) -> tuple[Any, Any]:
        del mapped
        out = call(observations.reshape(-1, *observations.shape[2:]))
        return jax.tree.map(lambda leaf: leaf.reshape(size, -1, *leaf.shape[1:]), out), jax.tree.map(lambda _: True, out)

    def apply(observation: Array) -> tuple[Array, Array]:
        logits, values = call(observation[None])
        return logits[0], values[0]

    return apply


def _read(game: Game[Any], name: str) -> export.Exported:
    """Read the exported function in a file and check that it fits the observations of a game; nothing is compiled."""
    try:
        content = read_input(name, FILE_LIMIT)
    except OSError as error:
        raise ValueError(f"network {name!r}: {error.strerror}; give a file, or module:factory") from None
    try:
        exported = export.deserialize(bytearray(content))
        exported.mlir_module()  # checks the version of the module format
        oldest = export.minimum_supported_calling_convention_version
        newest = export.maximum_supported_calling_convention_version
        version = exported.calling_convention_version
        if not oldest <= version <= newest:
            raise ValueError(f"calling convention version must be {oldest} to {newest}, got {version}")
        inputs, outputs = exported.in_avals, exported.out_avals
        given, ranks = [tuple(aval.shape[1:]) for aval in inputs], [len(aval.shape) for aval in outputs]
    except Exception as error:  # the exceptions of the deserializer are undocumented
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(
            f"network {name!r} is not a network file for this version of JAX ({reason}); files of jax.export are readable for"
            " six months, save_network writes them again from the weights"
        ) from None
    needed = observation_shape(game)
    if len(given) == 1 and given != [needed]:
        raise ValueError(f"network {name!r} takes observations of shape {given[0]}, but {game.id} has shape {needed}")
    if len(given) != 1 or ranks != [2, 2] or exported.nr_devices != 1:
        raise ValueError(f"network {name!r} must map a batch of observations to logits and values")
    return exported
