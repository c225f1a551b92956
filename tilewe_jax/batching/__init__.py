"""Batches of games of any kind: whole games, endless streams of games, and a stepping environment.

Every array that enters or leaves this package is batch-first, ``[batch, ...]``. Inside its loops the games stand on the last
axis, see ``tilewe_jax.lanes``.
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
