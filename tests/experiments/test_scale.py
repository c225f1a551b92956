"""The pauses of a simulated run with many hosts."""

import pytest

from experiments.scale.__main__ import ITERATIONS, simulated

ROWS = {"play_cpu_seconds": [1.0, 2.0], "learn_cpu_seconds": [0.0, 1.0]}
PARTS = {
    "evaluation_seconds": [50.0, 70.0],
    "checkpoint_seconds": [[1.0, 2.0], [1.0, 4.0], [1.0, 3.0]],
    "report_seconds": [10.0, 20.0],
}


def test_all_hosts_wait_for_the_slowest_one() -> None:
    alone, many = simulated(ROWS, PARTS, 1), simulated(ROWS, PARTS, 100)
    assert alone["waiting for the slowest host"] == 0
    # With 100 hosts, one of them nearly always takes 3 seconds, and the mean is 2.
    total = 3 * ITERATIONS + 8 * 50 + 8 * 3 + 10
    assert many["waiting for the slowest host"] == pytest.approx(ITERATIONS / total, rel=0.05)
    assert many["evaluation"] == pytest.approx(8 * 50 / total)
    assert many["checkpoints, all on one disk"] == pytest.approx(8 * 300 / (total - 8 * 3 + 8 * 300))
