"""One server and one browser for the page tests, which are skipped without a browser."""

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.tilewe_jax.web.page import Page, Server

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    run = folder / "some-run"
    run.mkdir()
    rows = [{"iteration": i, "policy_loss": 2 / i, "returns": [i, -i], "table": [[1], [2]]} for i in range(1, 9)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "config.json").write_text(json.dumps({"game": {"id": "duo"}, "iterations": 8}))
    server = Server(folder)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:  # not for the session: its event loop would run during other tests
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens pages; their errors fail the test."""
    pages: list[Page] = []

    def make(context: Any = None, **settings: Any) -> Page:
        pages.append(Page(browser, server, context, **settings))
        return pages[-1]

    yield make
    errors = [error for page in pages for error in page.errors]
    for page in pages:
        page.context.close()
    assert errors == []
