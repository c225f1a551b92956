"""Layers of networks."""

import jax
import jax.numpy as jnp
import pytest
from jax import export

from tilewe_jax.networks.layers import BFloat16Linear, BinaryLinear, Linear

BEFORE, AFTER = 24, 16


@pytest.fixture(scope="module")
def layer():
    return BFloat16Linear(BEFORE, AFTER, jax.random.key(0))


def rows(*shape):
    return jax.random.normal(jax.random.key(1), (*shape, BEFORE))


@pytest.mark.parametrize(("shape", "dtype"), [((1,), "f32"), ((8,), "bf16"), ((64,), "bf16")])
def test_dtype_depends_on_the_number_of_rows(layer, shape, dtype):
    text = jax.jit(jax.vmap(layer)).lower(rows(*shape)).as_text()
    (product,) = [line for line in text.splitlines() if "dot_general" in line]
    assert f"x{dtype}>, tensor<{BEFORE}x{AFTER}x{dtype}>" in product
    assert product.endswith("f32>") or "f32> loc" in product


def test_rows_of_nested_vmaps_are_counted(layer):
    x = rows(4, 4)
    nested = jax.jit(jax.vmap(jax.vmap(layer)))
    assert "bf16" in nested.lower(x).as_text()
    assert jnp.array_equal(nested(x).reshape(-1, AFTER), jax.jit(jax.vmap(layer))(x.reshape(-1, BEFORE)))


def test_agrees_with_float32_up_to_rounding(layer):
    exact = Linear(BEFORE, AFTER, jax.random.key(0))
    x = rows(32)

    def loss(layer):
        return jnp.mean(jnp.square(jax.vmap(layer)(x)))

    assert jnp.allclose(jax.vmap(layer)(x), jax.vmap(exact)(x), atol=0.05)
    gradients, expected = jax.grad(loss)(layer), jax.grad(loss)(exact)
    assert gradients.weight.dtype == jnp.float32
    assert jnp.allclose(gradients.weight, expected.weight, atol=0.02)
    assert jnp.allclose(gradients.bias, expected.bias, atol=0.02)


def test_export_for_batches_of_any_size(layer):
    (batch,) = export.symbolic_shape("batch")
    exported = export.export(jax.jit(jax.vmap(layer)))(jax.ShapeDtypeStruct((batch, BEFORE), jnp.float32))
    for size in (1, 8, 32):
        x = rows(size)
        assert jnp.allclose(exported.call(x), jax.vmap(layer)(x), atol=0.05)


@pytest.fixture(scope="module")
def binary():
    return BinaryLinear(BEFORE, AFTER, jax.random.key(0))


def bits(*shape):
    return jax.random.bernoulli(jax.random.key(1), 0.4, (*shape, BEFORE)).astype(jnp.int8)


def test_weights_of_binary_inputs_are_rounded_to_parts_of_the_largest(binary):
    largest = jnp.max(jnp.abs(binary.weight), axis=0)
    rows = jax.vmap(binary)(jnp.eye(BEFORE, dtype=jnp.int8)) - binary.bias[None]
    assert jnp.max(jnp.abs(rows - binary.weight) / largest[None]) <= 0.5 / 127 + 1e-6
    assert jnp.max(jnp.abs(rows - binary.weight)) > 0


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (2, 3), (32,)])
def test_binary_inputs_of_any_number_of_rows_agree(binary, shape):
    x, function = bits(*shape), binary.__call__
    for _ in shape:
        function = jax.vmap(function)
    sums = jnp.array([binary(row) for row in x.reshape(-1, BEFORE)]).reshape(*shape, AFTER)
    assert jnp.array_equal(function(x), sums)
    assert jnp.array_equal(jax.jit(function)(x), sums)


def test_products_of_binary_inputs_are_products_of_integers(binary):
    text = jax.jit(jax.vmap(binary)).lower(bits(2)).as_text()
    (product,) = [line for line in text.splitlines() if "dot_general" in line]
    assert f"tensor<4x{BEFORE}xi8>, tensor<{BEFORE}x{AFTER}xi8>" in product


def test_several_layers_of_binary_inputs(binary):
    layers = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), binary)
    x = bits(5)
    both = jax.vmap(lambda layer: jax.vmap(layer)(x))(layers)
    assert jnp.allclose(both, jnp.stack([jax.vmap(binary)(x), 2 * jax.vmap(binary)(x)]), rtol=1e-6)


def test_weights_of_zero_are_kept(binary):
    zeros = jax.tree.map(jnp.zeros_like, binary)
    assert jnp.array_equal(jax.jit(lambda layer, x: layer(x))(zeros, bits()), jnp.zeros(AFTER))


def test_gradients_ignore_the_rounding(binary):
    exact, x = Linear(BEFORE, AFTER, jax.random.key(0)), bits(32)

    def loss(layer, x):
        return jnp.sum(jax.vmap(layer)(x)[:, 0])

    gradients, expected = jax.grad(loss)(binary, x), jax.grad(loss)(exact, x.astype(jnp.float32))
    assert jnp.array_equal(gradients.weight, expected.weight)
    assert jnp.array_equal(gradients.bias, expected.bias)
