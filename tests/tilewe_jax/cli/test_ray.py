"""Shards as tasks on a local cluster of Ray with two nodes."""

import json
from collections.abc import Iterator

import pytest

from tests.tilewe_jax.cli.test_shards import LADDER, MATCH, without_times
from tilewe_jax.cli import main as cli

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster.address
    cluster.shutdown()


@pytest.mark.parametrize("command", [MATCH, LADDER], ids=["match", "ladder"])
def test_two_nodes_play_like_one_process(address: str, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([*command, "--json"])
    whole = json.loads(capsys.readouterr().out)
    cli.main([*command, "--ray", address, "--json"])
    assert without_times(json.loads(capsys.readouterr().out)) == without_times(whole)


def test_errors_of_shards_name_the_host(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([*MATCH, "radnom", "--ray", address, "--json"])
    assert stop.value.code == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("tilewe-jax: ")]
    assert "/2 on host " in line
    assert "did you mean random?" in line


def test_unreachable_cluster_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([*MATCH, "--ray", "localhost:1", "--json"])
    assert stop.value.code == 1
    assert "cannot join the cluster of Ray at localhost:1: " in capsys.readouterr().err
