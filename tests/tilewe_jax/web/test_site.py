"""The page without a server in Chromium: whole games, other pages of it, later visits without a network; and the command."""

import functools
import http.server
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tilewe_jax.web.page import Page, move_by_keyboard, move_by_mouse, play
from tests.tilewe_jax.web.pyodide import unpacked_pyodide
from tilewe_jax.cli import main as cli
from tilewe_jax.host_games import OFFERS
from tilewe_jax.web.site import PYODIDE, PYODIDE_VERSION

MAX_BYTES = 15_000_000
SMALL: dict[str, dict[str, Any]] = {
    "tilewe": {"players": 2, "size": 6},
    "duo": {"size": 7},
    "duo_official": {"size": 6},
    "classic": {"size": 8},
    "classic_2": {"size": 8},
    "santorini": {"size": 3},
    "triominos": {"players": 2, "tiles": 20},
}
RECORD_MESSAGES = """
const Original = Worker;
window.Worker = class extends Original {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => data.type === "message" && window.recordMessage(data.text));
  }
};
"""


class Files(http.server.SimpleHTTPRequestHandler):
    """The files of a folder, without a log."""

    def log_message(self, *given: Any) -> None:
        del given


class Host(SimpleNamespace):
    """A web host on the loopback with the site in a folder of it."""

    def __init__(self, folder: Path) -> None:
        self._files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=folder))
        self.address = f"http://127.0.0.1:{self._files.server_port}/some/games"
        threading.Thread(target=self._files.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._files.shutdown()
        self._files.server_close()


class SitePage(Page):
    """A page of the site. Requests to other hosts fail the test."""

    def __init__(self, browser: Any, host: Host, **settings: Any) -> None:
        super().__init__(browser, host, **settings)  # type: ignore[arg-type]
        self.page.expose_function("recordMessage", self._receive)
        self.page.add_init_script(RECORD_MESSAGES)
        self.page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.server.address, "blob:", "data:")):
            self.errors.append(f"a request to {request.url}")

    def open(self, path: str = "/") -> "SitePage":
        self.page.goto(f"{self.server.address}/#{path}")
        return self

    def close(self) -> None:
        self.context.close()
        assert self.errors == []


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    pyodide = unpacked_pyodide(tmp_path_factory.mktemp("npm"))
    cli.main(["site", "--out", str(folder / "some" / "games"), "--pyodide", str(pyodide)])
    host = Host(folder)
    host.folder = folder / "some" / "games"
    yield host
    host.close()


@pytest.mark.parametrize("game", ["duo_official", "triominos"])
def test_a_whole_game_by_mouse(browser: Any, host: Host, game: str) -> None:
    page = SitePage(browser, host)
    page.create(game, **SMALL[game])
    play(page, move_by_mouse)
    assert page.state["over"]["reason"] == "finished"
    if game == "triominos":  # the messages have shown no tile of the engine's tray before the end
        assert all(isinstance(state["view"]["trays"][1], int) for state in page.states if not state["over"])
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("game", OFFERS)
def test_a_whole_game_of_full_size_by_keyboard(browser: Any, host: Host, game: str) -> None:
    page = SitePage(browser, host)
    page.create(game)
    play(page, move_by_keyboard)
    assert page.state["over"]["reason"] == "finished"
    page.close()


def test_undo_hint_analysis_records_and_studies(browser: Any, host: Host) -> None:
    page = SitePage(browser, host)
    page.create("duo_official")
    chance, shown = random.Random(1), page.page
    assert page.wait_for_turn()
    move_by_mouse(page, chance)
    page.wait(lambda: page.state["move"] == 2)
    shown.click('[data-focus="action-undo"]')
    page.wait(lambda: page.state["move"] == 0)
    page.wait_for_turn()
    shown.click('[data-focus="action-bulb"]')
    shown.wait_for_selector(".note.good")
    play(page, move_by_mouse, most=2)
    page.wait_for_turn()
    shown.click('button:has-text("Analysis")')
    shown.click('[data-focus="analyse"]')
    shown.wait_for_selector(".candidates")
    shown.click('[data-focus="action-flag"]')
    shown.click("dialog .danger")
    shown.wait_for_selector(".result:not([hidden])")

    shown.click('[data-focus="action-share"]')
    assert shown.locator("dialog input").count() == 0, "there are no links for spectators"
    saved = {}
    for name in ("Record", "Record (.blksgf)", "Picture (SVG)", "Animation (SVG)"):
        with shown.expect_download() as download:
            shown.locator("dialog a", has_text=name).first.click()
        saved[download.value.suggested_filename.partition(".")[2]] = Path(download.value.path()).read_text()
    assert json.loads(saved["jsonl"].splitlines()[1])["scores"] == page.state["over"]["scores"]
    assert saved["blksgf"].startswith("(;")
    assert saved["svg"].startswith("<svg")

    page.open("/study")
    shown.set_input_files("#record-file", {"name": "game.jsonl", "mimeType": "text/plain", "buffer": saved["jsonl"].encode()})
    shown.wait_for_selector(".board svg")
    assert "#/study/" in shown.url
    shown.reload()
    shown.wait_for_selector(".board svg")
    shown.click('button:has-text("Analysis")')
    shown.click('[data-focus="analyse"]')
    shown.wait_for_selector(".candidates")
    page.close()


def test_a_game_continues_after_a_reload_and_two_people_play_at_one_screen(browser: Any, host: Host) -> None:
    page = SitePage(browser, host)
    page.create("santorini", preset="here", size=3)
    chance = random.Random(2)
    for number in range(3):
        page.wait(lambda number=number: page.state["you"] == page.state["view"]["current_player"] == number % 2)
        move_by_mouse(page, chance)
        page.wait_for_move(number + 1)
    page.states.clear()
    page.page.reload()
    page.page.wait_for_selector(".board svg")
    page.wait(lambda: page.states and page.state["move"] == 3 and page.state["you"] == 1)
    page.page.click(".brand")
    page.page.click('.lists a:has-text("Your turn")')
    page.page.wait_for_selector(".your-turn")
    page.close()


def test_hidden_tiles_at_one_screen(browser: Any, host: Host) -> None:
    page = SitePage(browser, host)
    page.create("triominos", preset="here")
    page.page.click("dialog.curtain .primary")
    page.wait(lambda: page.state["you"] == page.state["view"]["current_player"])
    number = page.state["move"]
    move_by_mouse(page, random.Random(1))
    page.wait_for_move(number + 1)
    page.page.wait_for_selector("dialog.curtain[open]")
    assert isinstance(page.state["view"]["trays"][page.state["view"]["current_player"]], int)
    page.close()


def test_later_visits_need_no_network(browser: Any, host: Host) -> None:
    page = SitePage(browser, host)
    page.create("santorini", size=3)
    page.page.evaluate("async () => { await navigator.serviceWorker.ready; }")
    page.check_installable()
    page.context.set_offline(True)
    page.page.reload()
    page.page.wait_for_selector(".board svg")
    page.create("duo_official", size=6)
    play(page, move_by_mouse, most=2)
    assert page.states
    page.close()


def test_a_browser_without_python_says_so(browser: Any, host: Host) -> None:
    page = SitePage(browser, host)
    page.page.route("**/pyodide.asm.wasm", lambda route: route.abort())
    page.open()
    page.page.click('[data-game="santorini"]')
    page.page.wait_for_selector(".engine-state.failed")
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector('.toast:has-text("The games did not start in this browser")')
    page.context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (375, 812)])
def test_the_pages_fit(browser: Any, host: Host, width: int, height: int) -> None:
    page = SitePage(browser, host, viewport={"width": width, "height": height})
    page.open()
    page.page.wait_for_selector(".engine-state.ready")
    assert page.fits()
    assert page.page.locator("text=Training").count() == 0
    assert page.page.locator('[data-focus^="preset-"]').all_inner_texts() == ["Engine", "Same screen", "Watch engines"]
    page.create("classic", size=8)
    assert page.fits()
    page.close()


def test_the_folder_is_small_and_written_again(host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(file.stat().st_size for file in host.folder.rglob("*") if file.is_file()) <= MAX_BYTES
    assert "Mozilla Public License" in (host.folder / "pyodide" / "LICENSE.txt").read_text()
    before = (host.folder / "offline.js").read_text()
    cli.main(["site", "--out", str(host.folder), "--pyodide", str(host.folder / "pyodide"), "--json"])
    assert json.loads(capsys.readouterr().out)["files"] > 50
    again = (host.folder / "offline.js").read_text()
    assert before.split("VERSION = ")[0] == again.split("VERSION = ")[0]
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SystemExit) as refused:
        cli.main(["site", "--out", str(tmp_path), "--pyodide", str(host.folder / "pyodide")])
    assert refused.value.code == 1
    assert "has other files" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_missing_arguments_and_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code, text in [
        (["--pyodide", str(tmp_path)], 2, "--out is needed"),
        (["--out", str(tmp_path / "out")], 2, f"npm pack pyodide@{PYODIDE_VERSION}"),
        (["--out", str(tmp_path / "out"), "--pyodide", str(tmp_path)], 1, f"{PYODIDE[0]} is missing"),
    ]:
        with pytest.raises(SystemExit) as refused:
            cli.main(["site", *arguments])
        assert refused.value.code == code
        assert text in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
