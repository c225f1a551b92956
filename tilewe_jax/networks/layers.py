"""Layers shared by several architectures: convolutions, dense layers, RMSNorm, residual blocks, and the value head.

A layer is an Equinox module and a function of one unbatched position. Boards are ``[height, width, channels]``, because CPUs
are fastest with channels last.
"""

import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float32, Int8, PRNGKeyArray


class Conv(eqx.Module):
    """Two-dimensional convolution of ``[height, width, channels]`` with ``SAME`` padding."""

    weight: Float[Array, "rows columns before after"]
    bias: Float[Array, "after"]

    def __init__(self, before: int, after: int, side: int, key: PRNGKeyArray, scale: float = 1.0) -> None:
        self.weight = normal(key, (side, side, before, after), scale * (2 / (side * side * before)) ** 0.5)
        self.bias = jnp.zeros(after, jnp.float32)

    def __call__(self, x: Float[Array, "height width before"]) -> Float[Array, "height width after"]:
        names = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x[None], self.weight.astype(x.dtype), (1, 1), "SAME", dimension_numbers=names)[0]
        return y + self.bias.astype(x.dtype)[None, None]


class Linear(eqx.Module):
    """Dense layer ``x @ weight + bias``, for any number of leading axes."""

    weight: Float[Array, "before after"]
    bias: Float[Array, "after"]

    def __init__(self, before: int, after: int, key: PRNGKeyArray, scale: float = 1.0) -> None:
        self.weight = normal(key, (before, after), scale * (1 / before) ** 0.5)
        self.bias = jnp.zeros(after, jnp.float32)

    def __call__(self, x: Float[Array, "*rows before"]) -> Float[Array, "*rows after"]:
        y = x @ self.weight.astype(x.dtype)
        return y + jnp.broadcast_to(self.bias.astype(x.dtype), y.shape)


class BFloat16Linear(Linear):
    """Dense layer with bfloat16 products accumulated in float32.

    Processors with matrix units (AMX, tensor cores) compute this several times faster than float32 products, other processors
    about as fast. Weights, outputs and gradients are float32.
    """

    # Without this constructor, type checkers expect the fields as arguments.
    def __init__(self, before: int, after: int, key: PRNGKeyArray, scale: float = 1.0) -> None:
        super().__init__(before, after, key, scale)

    def __call__(self, x: Float[Array, "*rows before"]) -> Float[Array, "*rows after"]:
        y = _bfloat16_product(x, self.weight)
        return y + jnp.broadcast_to(self.bias, y.shape)


class BinaryLinear(Linear):
    """Dense layer of binary inputs (0 or 1), whose weights are rounded to 8 bits with one scale for each output.

    CPUs multiply 8-bit integers several times faster than floats, and read a quarter of the memory; the sums are exact. Stored
    weights, outputs and gradients are float32. Gradients ignore the rounding.
    """

    # Without this constructor, type checkers expect the fields as arguments.
    def __init__(self, before: int, after: int, key: PRNGKeyArray, scale: float = 1.0) -> None:
        super().__init__(before, after, key, scale)

    def __call__(self, x: Int8[Array, "*rows before"]) -> Float32[Array, "*rows after"]:
        y = _binary_product(x, self.weight, *_rounded(self.weight))
        return y + jnp.broadcast_to(self.bias, y.shape)


class RMSNorm(eqx.Module):
    """Root mean square normalisation over all values of a position, with a gain per channel (Zhang and Sennrich 2019)."""

    gain: Float[Array, "channels"]

    def __init__(self, channels: int) -> None:
        self.gain = jnp.ones(channels, jnp.float32)

    def __call__(self, x: Float[Array, "*rows channels"]) -> Float[Array, "*rows channels"]:
        inverse = lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32))) + 1e-6)
        return x * jnp.broadcast_to(inverse.astype(x.dtype) * self.gain.astype(x.dtype), x.shape)


class ConvResidualBlock(eqx.Module):
    """Pre-activation residual block of two 3 x 3 convolutions with global pooling between them (KataGo, Wu 2019)."""

    norm: RMSNorm
    first: Conv
    pooled: Linear
    second: Conv

    def __init__(self, channels: int, key: PRNGKeyArray) -> None:
        key_first, key_pooled, key_second = jax.random.split(key, 3)
        self.norm = RMSNorm(channels)
        self.first = Conv(channels, channels, 3, key_first)
        self.pooled = Linear(2 * channels, channels, key_pooled)
        self.second = Conv(channels, channels, 3, key_second, scale=0.1)  # close to the identity at first

    def __call__(self, x: Float[Array, "height width channels"]) -> Float[Array, "height width channels"]:
        y = self.first(jax.nn.relu(self.norm(x)))
        y = y + self.pooled(global_pool(jax.nn.relu(y)))[None, None]
        return x + self.second(jax.nn.relu(y))


class ResidualTower(eqx.Module):
    """Convolutional stem and residual blocks, from planes to ``[height, width, channels]``.

    Planes that are constant over the board (global features) enter through a dense layer instead of the convolution.
    """

    stem: Conv
    global_features: Linear
    blocks: list[ConvResidualBlock]
    norm: RMSNorm
    spatial: int = eqx.field(static=True)
    """Number of spatial planes, which come before the constant planes."""

    def __init__(self, planes: int, spatial: int, channels: int, blocks: int, key: PRNGKeyArray) -> None:
        key_stem, key_global, *block_keys = jax.random.split(key, 2 + blocks)
        self.spatial = spatial
        self.stem = Conv(spatial, channels, 3, key_stem)
        self.global_features = Linear(planes - spatial, channels, key_global)
        self.blocks = [ConvResidualBlock(channels, block_key) for block_key in block_keys]
        self.norm = RMSNorm(channels)

    def __call__(self, planes: Float[Array, "planes height width"]) -> Float[Array, "height width channels"]:
        x = self.stem(jnp.moveaxis(planes[: self.spatial], 0, -1))
        x = x + self.global_features(planes[self.spatial :, 0, 0])[None, None]
        for block in self.blocks:
            x = block(x)
        return jax.nn.relu(self.norm(x))


class ValueHead(eqx.Module):
    """Hidden layer and, for each of the P seats, a logit of the outcome and a logit of the score."""

    hidden: Linear
    out: Linear

    def __init__(self, features: int, players: int, key: PRNGKeyArray) -> None:
        key_hidden, key_out = jax.random.split(key)
        self.hidden = Linear(features, 64, key_hidden)
        self.out = Linear(64, 2 * players, key_out, scale=0.1)

    def __call__(self, features: Float[Array, "features"]) -> tuple[Float32[Array, "P"], Float32[Array, "P"]]:
        outcome, score = self.out(jax.nn.relu(self.hidden(features))).astype(jnp.float32).reshape(2, -1)
        return outcome, score


def global_pool(x: Float[Array, "height width channels"]) -> Float[Array, "2*channels"]:
    """Return the mean and the maximum of each channel over the board."""
    return jnp.concatenate([jnp.mean(x, axis=(0, 1)), jnp.max(x, axis=(0, 1))])


def normal(key: PRNGKeyArray, shape: tuple[int, ...], deviation: float) -> Array:
    """Sample initial weights from a normal distribution with mean 0."""
    return deviation * jax.random.normal(key, shape, jnp.float32)


@jax.custom_jvp
def _bfloat16_product(x: Float[Array, "*rows before"], weight: Float[Array, "before after"]) -> Float32[Array, "*rows after"]:
    """Return ``x @ weight`` with bfloat16 products accumulated in float32, and float32 derivatives."""
    y: Array = _product(x, weight)
    return y


@_bfloat16_product.defjvp
def _bfloat16_product_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (x, weight), (x_tangent, weight_tangent) = primals, tangents
    dtype = weight.dtype
    return _bfloat16_product(x, weight), x_tangent.astype(dtype) @ weight + x.astype(dtype) @ weight_tangent


@jax.custom_batching.custom_vmap
def _product(x: Array, weight: Array) -> Array:
    # XLA is slow for few rows on CPUs: one row and 512 x 512 weights take 13 times as long as in float32.
    # In an export for batches of any size, the number of rows is symbolic.
    rows = math.prod(x.shape[:-1])
    dtype = jnp.bfloat16 if isinstance(rows, int) and rows >= 8 else jnp.float32
    return _matmul(x.astype(dtype), weight.astype(dtype))


def _rounded(weight: Float32[Array, "before after"]) -> tuple[Int8[Array, "before after"], Float32[Array, "after"]]:
    """Return weights as integers from -127 to 127, and the scale of each output."""
    # NumPy for weights that are constants of a program, because XLA would take seconds to evaluate this.
    xp: Any = jnp if isinstance(weight, jax.core.Tracer) else np
    weight = xp.asarray(weight)
    scale = xp.maximum(xp.max(xp.abs(weight), axis=0), np.float32(1e-30)) / np.float32(127)
    return jnp.asarray(xp.round(weight / scale[None]).astype(np.int8)), jnp.asarray(scale)


@jax.custom_jvp
def _binary_product(
    x: Int8[Array, "*rows before"],
    weight: Float32[Array, "before after"],
    rounded: Int8[Array, "before after"],
    scale: Float32[Array, "after"],
) -> Float32[Array, "*rows after"]:
    """Return ``x @ rounded * scale``, with the derivatives of ``x @ weight``."""
    del weight
    y: Array = _integer_product(x, rounded).astype(jnp.float32)
    return y * jnp.broadcast_to(scale, y.shape)


@_binary_product.defjvp
def _binary_product_jvp(primals: tuple[Array, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    x, weight, _, _ = primals
    return _binary_product(*primals), x.astype(weight.dtype) @ tangents[1]


@jax.custom_batching.custom_vmap
def _integer_product(x: Array, weight: Array) -> Array:
    # XLA computes products of fewer than four rows by a loop that takes twice as long as the product of four rows.
    leading = x.shape[:-1]
    rows = math.prod(leading)
    if isinstance(rows, int) and rows < 4:
        x = jnp.pad(x.reshape(rows, -1), ((0, 4 - rows), (0, 0)))
        return _matmul(x, weight)[:rows].reshape(*leading, -1)
    return _matmul(x, weight)


def _matmul(x: Array, weight: Array) -> Array:
    """Return ``x @ weight``, summed in int32 for integers and in float32 otherwise."""
    return jnp.matmul(x, weight, preferred_element_type=jnp.int32 if x.dtype == jnp.int8 else jnp.float32)


def _batched(product: Any, size: Any, mapped: list[bool], x: Array, weight: Array) -> tuple[Array, bool]:
    """Batch a product by adding rows, so that it sees the total number of rows."""
    del size
    if mapped[1]:
        return jax.vmap(_matmul, in_axes=(0 if mapped[0] else None, 0))(x, weight), True
    return product(x, weight), True


_product.def_vmap(partial(_batched, _product))
_integer_product.def_vmap(partial(_batched, _integer_product))
