"""The page of a server that browsers keep for times without the server: its files, and games in Chromium."""

import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.page import Page, Server, move_by_mouse, play
from tests.tilewe_jax.web.pyodide import unpacked_pyodide
from tests.tilewe_jax.web.support import serving
from tests.tilewe_jax.web.test_site import RECORD_MESSAGES
from tilewe_jax.cli import main as cli

BASE = "/our/club"
SITE = {"index.html": b"<!doctype html>", "static/worker.js": bytes(200_000), "pyodide/pyodide.asm.wasm": b"wasm"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    pyodide = unpacked_pyodide(tmp_path_factory.mktemp("npm"))
    command = ("-m", "tilewe_jax", "serve", "--engines", "0", "--port", "{port}", "--data", str(folder / "games"))
    server = Server(folder, *command, "--base-path", BASE, "--offline", str(pyodide), base_path=BASE)
    yield server
    server.kill()


class Proxy(http.server.BaseHTTPRequestHandler):
    """Answers as a reverse proxy whose server is away."""

    def do_GET(self) -> None:
        self.send_error(502)

    def log_message(self, *given: Any) -> None:
        del given


def keep(page: Page) -> None:
    """Keep the games in the browser, and load the page again, so that the service worker controls it."""
    shown = page.page
    page.open()
    assert re.search(r"1[0-9][.,]\d MB", shown.locator('[data-focus="keep"]').inner_text())
    shown.click('[data-focus="keep"]')
    shown.wait_for_selector('.offline [data-focus="play-offline"]')
    shown.reload()
    shown.wait_for_selector('.offline [data-focus="play-offline"]')
    assert shown.evaluate("navigator.serviceWorker.controller.scriptURL") == f"{page.server.address}/offline.js"


@pytest.mark.parametrize("language", ["en", "de"])
def test_games_against_engines_while_the_server_is_away(browser: Any, server: Server, language: str) -> None:
    play_offline, unreachable = {
        "en": ("Play offline", "The server cannot be reached"),
        "de": ("Offline spielen", "Der Server ist nicht erreichbar"),
    }[language]
    page = Page(browser, server, locale=language)
    shown = page.page
    shown.expose_function("recordMessage", page._receive)
    shown.add_init_script(RECORD_MESSAGES)
    keep(page)
    page.check_installable()
    assert page.errors == []
    server.kill()
    try:
        shown.wait_for_selector(f".away:has-text('{unreachable}')")  # the lobby asks for games now and then
        page.open("/game/some-game")
        shown.wait_for_selector(f".away:has-text('{unreachable}')")
        shown.click(f".away >> text={play_offline}")
        shown.wait_for_url(f"{server.address}/offline/")
        shown.click('[data-game="santorini"]')
        shown.click('[data-focus="preset-engine"]')
        shown.click('[data-focus="start"]')
        shown.wait_for_selector(".board svg")
        play(page, move_by_mouse, most=2)
        page.wait_for_move(4)
        shown.reload()
        shown.wait_for_selector(".your-turn")
        assert page.state["move"] == 4
    finally:
        server.start()
    shown.click(".top nav >> text=Online")
    shown.wait_for_selector('.offline [data-focus="play-offline"]')
    assert shown.url == f"{server.address}/"
    assert not shown.locator(".away").count()
    assert all("ERR_CONNECTION_REFUSED" in error for error in page.errors), page.errors
    # One copy of the files is kept, and the offline page has no other service worker.
    assert len(shown.evaluate("caches.keys()")) == 1
    assert shown.evaluate("navigator.serviceWorker.getRegistrations().then((found) => found.length)") == 1
    page.context.close()


def test_a_proxy_without_its_server(browser: Any, server: Server) -> None:
    page = Page(browser, server)
    keep(page)
    server.kill()
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", server.port), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        page.page.reload()
        page.page.wait_for_selector(".away >> text=Play offline")
    finally:
        proxy.shutdown()
        proxy.server_close()
        server.start()
    page.page.wait_for_selector(".away", state="hidden")
    page.page.wait_for_selector(".cards [data-game]")
    page.context.close()


def test_a_visit_to_the_offline_page_keeps_it(browser: Any, server: Server) -> None:
    page = Page(browser, server)
    page.open("/offline/").page.wait_for_selector(".engine-state.ready")
    page.page.evaluate("async () => { await navigator.serviceWorker.ready; }")
    page.open().page.wait_for_selector('.offline [data-focus="play-offline"]')
    assert page.errors == []
    page.context.close()


def test_files(tmp_path: Path) -> None:
    with serving(tmp_path / "games", base_path=BASE, offline=SITE) as client:
        client.base_url = client.base_url.join(BASE)
        script = client.get("/offline.js").text
        files = json.loads(script.split("new Set(")[1].split(".map(")[0])
        assert {"./", "static/main.js", "static/games.js", "offline/", "offline/static/worker.js"} <= set(files)
        kept = [client.get(f"/{name.removeprefix('./')}") for name in files]
        assert {response.status_code for response in kept} == {200}
        assert client.get("/api/catalog").json()["offline"] == sum(len(response.content) for response in kept)
        worker = client.get("/offline/static/worker.js")
        assert worker.content == SITE["static/worker.js"]
        assert "'wasm-unsafe-eval'" in worker.headers["content-security-policy"]
        assert "wasm" not in client.get("/").headers["content-security-policy"]
        assert client.get("/offline/pyodide/pyodide.asm.wasm").headers["content-type"] == "application/wasm"
        tag = worker.headers["etag"]
        for given in (tag, f"W/{tag}"):  # a proxy that compresses weakens tags
            again = client.get("/offline/static/worker.js", headers={"if-none-match": given})
            assert (again.status_code, again.content) == (304, b"")
        assert client.get("/offline/", headers={"if-none-match": tag}).content == SITE["index.html"]
        assert client.get("/offline/static/none.js").status_code == 404
    with serving(tmp_path / "games", base_path=BASE, offline={**SITE, "static/worker.js": b"new"}) as client:
        assert client.get(f"{BASE}/offline.js").text.split("const FILES")[0] != script.split("const FILES")[0]
    with serving(tmp_path / "games") as client:
        assert client.get("/offline.js").status_code == client.get("/offline/").status_code == 404
        assert client.get("/api/catalog").json()["offline"] is None


def test_a_folder_without_pyodide_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        cli.main(["serve", "--engines", "0", "--data", str(tmp_path / "games"), "--offline", str(tmp_path)])
    assert refused.value.code == 2
    assert "--offline: " in (error := capsys.readouterr().err)
    assert "npm pack pyodide" in error
    assert not (tmp_path / "games").exists()
