"""Every test runs with strict dtype promotion and without rank promotion."""

import os

# Compiling is most of what the tests do; on this level the large functions take half the time, and are as fast.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=1"

import jax

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 4)
