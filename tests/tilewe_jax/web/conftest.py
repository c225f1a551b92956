"""One server and one browser for the page tests, which are skipped without a browser."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser import chromium
from tests.tilewe_jax.web.page import Page, Server


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


@pytest.fixture(scope="module")  # not for the session: its event loop would run during other tests
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


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
