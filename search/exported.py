"""Networks from outside: from a file that holds weights and computation, or from a factory in a Python module."""

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
"""Maps an observation to logits, see ``Game.gather_logits``, and to the shares of the win by seat, from the mover's on. With an
attribute ``interface`` it observes something else, or its logits mean something else, see ``NetworkInterface``."""

PLATFORMS = ("cpu", "cuda", "tpu")
FILE_LIMIT = 1 << 32
"""Maximum size of a file that is read, in bytes."""


@runtime_checkable
class NetworkInterface(Protocol):
    """How a network reads positions, and what its logits say of actions. Every ``Game`` is one."""

    @property
    def num_logits(self) -> int:
        """Number of policy logits that the network gives for a position."""
        ...

    def observe(self, state: Any, player: Int32[Array, ""]) -> Any:
        """What the network reads, a pytree of arrays; ``player`` is the one to move."""
        ...

    def gather_logits(
        self, state: Any, logits: Float32[Array, "num_logits"], actions: Int32[Array, "k"]
    ) -> Float32[Array, "k"]:
        """The logits of legal actions, differentiable by the logits of the network; -1, for none, gets any logit."""
        ...


def network_interface(game: Game[Any], network: Any) -> NetworkInterface:
    """The interface of a network: one of its own where it has an attribute ``interface``, else the game."""
    interface: NetworkInterface | None = getattr(network, "interface", None)
    return game if interface is None else interface


def observation_spec(interface: NetworkInterface, game: Game[Any]) -> Any:
    """Shapes and dtypes (``jax.ShapeDtypeStruct``) of what a network with this interface reads."""
    return jax.eval_shape(lambda state: interface.observe(state, jnp.int32(0)), state_shapes(game))


def as_tree(function: F) -> F:
    """A function that may be an argument of compiled ones: with its weights, where it is a pytree that holds some."""
    return cast(F, jax.tree_util.Partial(function)) if jax.tree_util.all_leaves([function]) else function


def save(game: Game[Any], apply: Network, path: Path) -> None:
    """Write a network, with the weights that it closes over, to a file that ``load`` and any program with ``jax.export`` reads.

    ``apply`` takes one observation; the file holds it for batches of any size. Versions of JAX read it for six months, the
    compatibility that ``jax.export`` promises; keep the weights to write it again.
    """
    (batch,) = export.symbolic_shape("batch")
    observations = jax.ShapeDtypeStruct((batch, *observation_shape(game)), jnp.float32)
    exported = export.export(jax.jit(jax.vmap(apply)), platforms=PLATFORMS)(observations)
    with replacing(path, "wb") as file:
        file.write(exported.serialize())


def load(game: Game[Any], name: str) -> Network:
    """The network in a file that ``save`` has written, or what ``module:factory`` gives for the game.

    Both are programs: they do what their authors want, so take them only from people you trust. Size and shapes are checked
    before a program in a file is compiled.

    JAX promises to read an exported program for six months after it was written. ``save`` with a current version of JAX writes
    it again.

    Raises ``ValueError`` if the network is missing, cannot be read, or is not for observations of this game.
    """
    if ":" in name:
        network: Network = factories.call(f"network {name!r}", factories.find("network", name), game)
        if not callable(network):
            raise ValueError(f"network {name!r} gave {network!r}, which is not a function of observations")
        return network
    exported = _read(game, name)

    # An exported function knows no vmap, but batches of any size.
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
    """The function in a file, which fits observations of a game. It is not compiled yet."""
    try:
        content = read_input(name, FILE_LIMIT)
    except OSError as error:
        raise ValueError(f"network {name!r}: {error.strerror}; give a file, or module:factory") from None
    try:
        exported = export.deserialize(bytearray(content))
        exported.mlir_module()  # which is in a format with versions, too
        oldest, newest = (
            export.minimum_supported_calling_convention_version,
            export.maximum_supported_calling_convention_version,
        )
        if not oldest <= exported.calling_convention_version <= newest:
            raise ValueError(
                f"its calling convention has version {exported.calling_convention_version}, not {oldest} to {newest}"
            )
        inputs, outputs = exported.in_avals, exported.out_avals
        given, ranks = [tuple(aval.shape[1:]) for aval in inputs], [len(aval.shape) for aval in outputs]
    except Exception as error:  # what the parser of the format raises is not documented
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(
            f"network {name!r} is not a file of a network that this version of JAX reads ({reason}). JAX reads a file of"
            " jax.export for six months after it was written; write it again from its weights with search.exported.save"
        ) from None
    needed = observation_shape(game)
    if len(given) == 1 and given != [needed]:
        raise ValueError(f"network {name!r} is for observations of shape {given[0]}; those of {game.id} are {needed}")
    if len(given) != 1 or ranks != [2, 2] or exported.nr_devices != 1:
        raise ValueError(f"network {name!r} is not a function of a batch of observations that gives logits and values")
    return exported
