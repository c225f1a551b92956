"""Layers of networks."""

import jax
import jax.numpy as jnp
import pytest
from jax import export

from tilewe_jax.networks.layers import BFloat16Linear, Linear

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
