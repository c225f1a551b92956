"""Batched play for any game: rollouts, endless streams of games, and a stepping environment.

All arguments and results are batch-first, ``[batch, ...]``. Internally the batch axis is last, see ``tilewe_jax.lanes``.
"""

from tilewe_jax.batching.environment import Environment, EnvironmentState, TimeStep, zero_sum
from tilewe_jax.batching.reset import auto_reset
from tilewe_jax.batching.rollout import Rollout, Trajectory, rollout, trajectories
from tilewe_jax.batching.sharding import over_devices, split_over_devices
from tilewe_jax.batching.stream import Stream, StreamSteps, init_stream, run_stream, stream_states

__all__ = [
    "Environment",
    "EnvironmentState",
    "Rollout",
    "Stream",
    "StreamSteps",
    "TimeStep",
    "Trajectory",
    "auto_reset",
    "init_stream",
    "over_devices",
    "rollout",
    "run_stream",
    "split_over_devices",
    "stream_states",
    "trajectories",
    "zero_sum",
]
