"""The server as a process, as people start it."""

import asyncio
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from experiments.examples import web_bot
from tests.experiments.test_cli import run
from tests.tilewe_jax.web.killing import Process, kill_often

HUMANS = [{"kind": "human"}] * 2


def test_a_bot_plays_by_an_invite_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = Process(tmp_path / "games", "--no-engine")
    try:
        made = server.post("/api/games", {"game": "duo_official", "seats": HUMANS})
        links = [f"http://127.0.0.1:{server.port}/game/{made['id']}#{seat['token']}" for seat in made["seats"]]

        async def play() -> list[dict[str, object]]:
            return await asyncio.gather(*map(web_bot.play, links))

        first, second = asyncio.run(asyncio.wait_for(play(), 60))
        assert first == second
        assert first["reason"] == "finished"
        code, _, err = run(capsys, "serve", "--port", str(server.port), "--data", str(tmp_path / "other"))
        assert code == 2
        assert err == (
            f"tilewe-jax: cannot listen on port {server.port} of 127.0.0.1: Address already in use; another program uses it,"
            " so choose another one\n"
        )
        code, _, err = run(capsys, "serve", "--port", "0", "--data", str(tmp_path / "games"))
        assert (code, "is used by another server" in err) == (2, True)
        code, err = server.end()
        assert (code, err) == (0, "")
    finally:
        server.kill()
    log = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(seat["token"].encode() in log for seat in made["seats"])


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"noise" * 1000)
    cases = [
        (["--data", str(noise)], "noise cannot be used (file is not a database)"),
        (["--data", str(tmp_path / "no" / "games")], "cannot be written: No such file or directory"),
        (["--port", "70000"], "--port must be 0 to 65535"),
        (["--host", "not.an.address.invalid"], "is no address of this machine"),
        (["--runs", str(tmp_path / "missing")], "there is no folder"),
        (["--agents", "chess=puct"], "there is no game 'chess'"),
    ]
    for arguments, expected in cases:
        code, _, err = run(capsys, "serve", "--port", "0", *arguments)
        assert code == 2
        assert expected in err
        assert err.count("\n") == 1, err


def test_the_server_imports_no_jax() -> None:
    code = (
        "import sys; from experiments import cli; from experiments.commands.serve import Serve, offered_agents;"
        "import tilewe_jax.web.app, tilewe_jax.web.exports; offered_agents(()); print('jax' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\n"


def test_a_server_that_is_killed_loses_no_acknowledged_move(tmp_path: Path) -> None:
    result = kill_often(tmp_path / "games", 2, games=4)
    assert result["acknowledged"] > 50


@pytest.mark.slow
def test_a_server_that_is_killed_twenty_times(tmp_path: Path) -> None:
    result = kill_often(tmp_path / "games", 20)
    assert result["acknowledged"] > 500


def test_the_first_page_comes_soon(tmp_path: Path) -> None:
    """It takes half a second of the processor; how long that takes depends on what else the machine does."""
    server = Process(tmp_path / "games")
    try:
        times = psutil.Process(server.process.pid).cpu_times()
        assert times.user + times.system < 1.2
    finally:
        server.kill()
