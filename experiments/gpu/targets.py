"""Target devices: XLA's descriptions and the rates of the data sheets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """An NVIDIA GPU."""

    name: str
    capability: str
    """Compute capability, ``9.0``."""
    multiprocessors: int
    clock_ghz: float
    """Boost clock."""
    memory_gb: int
    bandwidth: float
    """Memory bandwidth in bytes per second."""
    l2_mb: int
    shared_kb: int
    """Shared memory per multiprocessor."""
    threads: int
    """Maximum number of resident threads per multiprocessor."""
    fp32_lanes: int
    """Single-precision units per multiprocessor."""

    @property
    def architecture(self) -> str:
        """Architecture name for ``ptxas``."""
        number = self.capability.replace(".", "")
        return f"sm_{number}a" if number == "90" else f"sm_{number}"

    @property
    def fp32_ops(self) -> float:
        """Single-precision operations per second; a fused multiply-add counts as two."""
        return 2 * self.multiprocessors * self.fp32_lanes * self.clock_ghz * 1e9

    def config(self) -> str:
        """Return the description for XLA, in the text format of ``GpuTargetConfigProto``."""
        major, minor = self.capability.split(".")
        shared = self.shared_kb << 10
        return f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: {shared}
  threads_per_core_limit: {self.threads} core_count: {self.multiprocessors} fpus_per_core: {self.fp32_lanes}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {int(self.bandwidth)} l2_cache_size: {self.l2_mb << 20} clock_rate_ghz: {self.clock_ghz}
  device_memory_size: {self.memory_gb << 30} shared_memory_per_block_optin: {shared - 1024}
  driver_version: "13.0.0" runtime_version: "13.0.0" dnn_version: "9.10.0"
  cuda_compute_capability {{ major: {major} minor: {minor} }} registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 10 }} runtime_version {{ major: 13 minor: 0 patch: 0 }}
device_description_str: "{self.name}"
"""


TARGETS = {
    "h100": Target("NVIDIA H100 80GB HBM3", "9.0", 132, 1.98, 80, 3.35e12, 50, 228, 2048, 128),
    "h200": Target("NVIDIA H200", "9.0", 132, 1.98, 141, 4.8e12, 50, 228, 2048, 128),
    "a100": Target("NVIDIA A100-SXM4-80GB", "8.0", 108, 1.41, 80, 2.039e12, 40, 164, 2048, 64),
    "rtx4090": Target("NVIDIA GeForce RTX 4090", "8.9", 128, 2.52, 24, 1.008e12, 72, 100, 1536, 128),
}
