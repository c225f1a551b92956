"""Pages in Debian's Chromium, for tests of what people see."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def browser_page(width: int = 1280, height: int = 900, **options: Any) -> Iterator[Any]:
    """A page of a browser, of this size; errors on it fail the test. Skips the test without Chromium or Playwright."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("needs Chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    errors: list[str] = []
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": width, "height": height}, **options)
        page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("requestfailed", lambda request: errors.append(f"no answer to {request.url}"))
        yield page
        chromium.close()
    assert not errors
