"""Pages in Chromium, for tests of their content."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium. Skips the test without Chromium or Playwright."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        pytest.skip("needs Chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def browser_page(width: int = 1280, height: int = 900, **options: Any) -> Iterator[Any]:
    """Open a page of this size. Errors on the page fail the test."""
    errors: list[str] = []
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("requestfailed", lambda request: errors.append(f"no answer to {request.url}"))
        yield page
    assert not errors
