"""Devices to compile for: how XLA describes them, and what their data sheets say they can do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A GPU; figures from the data sheets and whitepapers of NVIDIA, dense, without sparsity."""

    name: str
    """Its name, as CUDA reports it."""
    capability: str
    """Compute capability, ``9.0``."""
    multiprocessors: int
    clock_ghz: float
    """Boost clock."""
    memory_bytes: int
    bandwidth: float
    """Bytes a second to and from memory."""
    l2_bytes: int
    shared_bytes: int
    """Shared memory of a multiprocessor."""
    threads: int
    """Threads resident on a multiprocessor."""
    fp32_lanes: int
    """Single-precision units of a multiprocessor."""
    tensor_ops: float
    """Multiplications and additions a second in bfloat16 on the tensor cores, accumulated in float32."""
    int8_ops: float
    """The same in int8."""
    integer_lanes: int = 64
    """32-bit integer and logical operations that a multiprocessor does in a clock cycle (CUDA Programming Guide, throughput of
    arithmetic instructions)."""

    @property
    def architecture(self) -> str:
        """What ``ptxas`` calls it."""
        number = self.capability.replace(".", "")
        return f"sm_{number}a" if number == "90" else f"sm_{number}"

    @property
    def integer_ops(self) -> float:
        """Integer operations a second."""
        return self.multiprocessors * self.integer_lanes * self.clock_ghz * 1e9

    @property
    def fp32_ops(self) -> float:
        """Single-precision operations a second, a fused multiplication and addition as two."""
        return 2 * self.multiprocessors * self.fp32_lanes * self.clock_ghz * 1e9

    def config(self) -> str:
        """The description from which XLA compiles, in the text format of its ``GpuTargetConfigProto``."""
        major, minor = self.capability.split(".")
        block = self.shared_bytes - 1024  # the system keeps 1 KB of each block
        return f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: {self.shared_bytes}
  threads_per_core_limit: {self.threads} core_count: {self.multiprocessors} fpus_per_core: {self.fp32_lanes}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {int(self.bandwidth)} l2_cache_size: {self.l2_bytes} clock_rate_ghz: {self.clock_ghz}
  device_memory_size: {self.memory_bytes} shared_memory_per_block_optin: {block}
  driver_version: "13.0.0" runtime_version: "13.0.0" dnn_version: "9.10.0"
  cuda_compute_capability {{ major: {major} minor: {minor} }} registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 10 }} runtime_version {{ major: 13 minor: 0 patch: 0 }}
device_description_str: "{self.name}"
"""


_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30
TARGETS = {
    "h100": Target(
        "NVIDIA H100 80GB HBM3", "9.0", 132, 1.98, 80 * _GB, 3.35e12, 50 * _MB, 228 * _KB, 2048, 128, 989e12, 1979e12
    ),
    "h200": Target("NVIDIA H200", "9.0", 132, 1.98, 141 * _GB, 4.8e12, 50 * _MB, 228 * _KB, 2048, 128, 989e12, 1979e12),
    "a100": Target(
        "NVIDIA A100-SXM4-80GB", "8.0", 108, 1.41, 80 * _GB, 2.039e12, 40 * _MB, 164 * _KB, 2048, 64, 312e12, 624e12
    ),
    "rtx4090": Target(
        "NVIDIA GeForce RTX 4090", "8.9", 128, 2.52, 24 * _GB, 1.008e12, 72 * _MB, 100 * _KB, 1536, 128, 165e12, 660e12
    ),
}
"""The devices by name."""
