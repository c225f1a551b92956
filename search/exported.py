"""Networks from outside: from a file that holds weights and computation, or from a factory in a Python module."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import export
from jaxtyping import Array

from tilewe_jax.files import replacing
from tilewe_jax.game import Game, state_shapes

F = TypeVar("F", bound=Callable[..., Any])
Network = Callable[[Array], tuple[Array, Array]]
"""Maps an observation to logits, see ``Game.gather_logits``, and to the shares of the win by seat, from the mover's on."""

PLATFORMS = ("cpu", "cuda", "tpu")


def as_tree(function: F) -> F:
    """A function that may be an argument of compiled ones: with its weights, where it is a pytree that holds some."""
    return cast(F, jax.tree_util.Partial(function)) if jax.tree_util.all_leaves([function]) else function


def observation_shape(game: Game[Any]) -> tuple[int, ...]:
    """The shape of what a network of this game gets."""
    shape: tuple[int, ...] = jax.eval_shape(lambda state: game.observe(state, jnp.int32(0)), state_shapes(game)).shape
    return shape


def save(game: Game[Any], apply: Network, path: Path) -> None:
    """Write a network, with the weights that it closes over, to a file that ``load`` and any program with ``jax.export`` reads.

    ``apply`` takes one observation; the file holds it for batches of any size.
    """
    (batch,) = export.symbolic_shape("batch")
    observations = jax.ShapeDtypeStruct((batch, *observation_shape(game)), jnp.float32)
    exported = export.export(jax.jit(jax.vmap(apply)), platforms=PLATFORMS)(observations)
    with replacing(path, "wb") as file:
        file.write(exported.serialize())


def load(game: Game[Any], name: str) -> Network:
    """The network in a file that ``save`` has written, or what ``module:factory`` gives for the game.

    Raises ``ValueError`` where there is none, or where it is not for observations of this game.
    """
    module, colon, factory = name.partition(":")
    if colon:
        try:
            made: Network = getattr(importlib.import_module(module), factory)(game)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"network {name!r}: {error}") from None
        return made
    try:
        exported = export.deserialize(bytearray(Path(name).read_bytes()))
    except OSError as error:
        raise ValueError(f"network {name!r}: {error.strerror}; give a file, or module:factory") from None
    except Exception:  # what the parser of the format raises is not documented
        raise ValueError(f"network {name!r} is not a file of a network, as search.exported.save writes it") from None
    given, needed = exported.in_avals[0].shape[1:], observation_shape(game)
    if given != needed:
        raise ValueError(f"network {name!r} is for observations of shape {given}; those of {game.id} are {needed}")

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
