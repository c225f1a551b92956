"""The page in Chromium: review of games, studies, and the dashboard of training."""

import json
import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.page import HUMAN, Server, move_by_keyboard, play
from tests.tilewe_jax.web.support import play_out


def test_stepping_hints_and_analysis(open_page: Any) -> None:
    page = open_page()
    page.start("duo_official", size=8)
    page.page.click('[data-focus="action-bulb"]')
    page.page.wait_for_selector(".tilewe-ghost.tilewe-good")
    play(page, move_by_keyboard, most=3)
    if page.wait_for_turn():
        page.page.click('[data-focus="action-flag"]')
        page.page.click("dialog .danger")
    page.page.wait_for_selector('[data-focus="review"]')
    last = page.state["move"]
    page.page.click('[data-focus="review"]')
    page.page.wait_for_selector(".accuracy")
    page.page.wait_for_selector(".candidates")
    assert page.page.locator(".tilewe-heat").count() > 0
    page.page.keyboard.press("m")
    page.page.wait_for_selector(".tilewe-heat", state="detached")
    assert page.page.locator(".chart").count() == 1
    line = page.page.locator(".chart .line:not(.dashed)").get_attribute("d")
    assert page.page.locator(".chart .line.dashed").count() == 1  # the opinion of the opponent
    assert line.count("M") == 1
    assert line.count("L") == last
    page.page.keyboard.press("End")
    page.page.wait_for_selector(".result:not([hidden])")
    page.page.keyboard.press(",")
    assert page.page.locator(".timeline output").inner_text() == f"{last - 1} / {last}"
    chart = page.page.locator(".chart").bounding_box()
    page.page.mouse.click(chart["x"] + chart["width"] / 2, chart["y"] + 20)
    assert page.page.locator(".timeline output").inner_text() not in (f"{last - 1} / {last}", f"{last} / {last}")
    page.page.click('[data-focus="action-share"]')
    links = [link.get_attribute("href") for link in page.page.locator("dialog .downloads a").all()]
    kinds = [page.context.request.get(page.server.address + link).headers["content-type"].split(";")[0] for link in links]
    assert kinds[:2] == ["image/svg+xml", "image/gif"]
    assert len(kinds) == 4
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("t")
    assert "cells" in page.page.locator(".board-text").inner_text()


def test_a_study_of_a_record(open_page: Any, server: Server, tmp_path: Path) -> None:
    created = server.create("santorini", {"size": 3}, [HUMAN, HUMAN])
    with server.player(created, 0) as first, server.player(created, 1) as second:
        play_out([first, second], random.Random(0))
    page = open_page()
    answer = page.context.request.get(f"{server.address}/api/games/{created['id']}/record?format=jsonl")
    record = tmp_path / "game.jsonl"
    record.write_bytes(answer.body())
    page.open("/study").page.set_input_files("#record-file", record)
    page.page.wait_for_selector(".board svg")
    page.page.keyboard.press("ArrowRight")
    assert page.page.locator(".timeline output").inner_text().startswith("1 /")
    page.page.click("#tab-analysis")
    page.page.click('[data-focus="analyse-all"]')
    page.page.wait_for_selector(".accuracy")
    assert page.page.locator(".accuracy dd").count() == 2
    card = page.page.locator(".mistake-card").first
    assert card.locator(".picture svg .tilewe-legal").count() > 0  # the better move on the board
    assert card.locator(".reason").inner_text().endswith(".")
    card.focus()
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.className").startswith("mistake-card")  # the focus stays
    shown = page.page.locator(".mistake-card.shown b").first.inner_text().split(".")[0]
    assert page.page.locator(".timeline output").inner_text().startswith(f"{int(shown) - 1} /")
    page.page.keyboard.press("Home")
    page.page.keyboard.press("ArrowRight")
    address = page.page.url
    page.page.click('[data-focus="action-share"]')
    shared = page.page.locator("dialog input").input_value()
    assert shared.startswith(address)
    assert shared.endswith("move=1")
    files = []
    for ending in ("svg", "json"):
        with page.page.expect_download() as download:
            page.page.click(f'[data-focus="download-{ending}"]')
        files.append(Path(download.value.path()).read_text())
    assert ET.fromstring(files[0]).tag.endswith("svg")
    assert "var(" not in files[0]
    assert json.loads(files[1])["game"] == "santorini"
    other = open_page()
    other.open(shared.removeprefix(page.server.address)).page.wait_for_selector(".board svg")
    assert other.page.locator(".timeline output").inner_text().startswith("1 /")


def test_variations_and_comments_are_kept(open_page: Any, server: Server, tmp_path: Path) -> None:
    created = server.create("santorini", {"size": 3}, [HUMAN, HUMAN])
    with server.player(created, 0) as first, server.player(created, 1) as second:
        play_out([first, second], random.Random(0))
    page = open_page()
    page.open(f"/game/{created['id']}?move=2").page.click('[data-focus="action-open"]')  # a study of the finished game
    page.page.wait_for_selector(".study-notes")
    keyboard, output = page.page.keyboard, page.page.locator(".timeline output")
    count = int(output.inner_text().split("/")[1])
    assert output.inner_text() == f"2 / {count}"

    def turn(number: int) -> None:
        for _ in range(3):
            keyboard.press("l")
            keyboard.press("Enter")
        page.wait(lambda: output.inner_text() == f"{number} / {number}")

    page.page.click('[data-focus="action-open"]')
    page.page.wait_for_selector('[data-focus="opponent"]')
    turn(3)
    page.page.fill('[data-focus="comment-3"]', "a ] try")
    page.page.locator(".board").focus()
    turn(4)
    page.page.select_option('[data-focus="opponent"]', "level:1")
    page.page.locator(".board").focus()
    for _ in range(3):
        keyboard.press("l")
        keyboard.press("Enter")
    page.wait(lambda: output.inner_text() == "6 / 6")  # the engine answers
    page.page.click('[data-focus="action-close"]')
    keyboard.press("Home")
    for _ in range(3):
        keyboard.press(".")
    assert page.page.locator(".badge:has-text('variation')").count() == 1
    assert page.page.locator(".moves .comment").inner_text() == "a ] try"
    page.page.reload()  # kept in the browser
    page.page.wait_for_selector(".moves .others button")
    page.page.locator(".moves .others button").first.click()
    assert output.inner_text() == "3 / 6"
    page.page.click('[data-focus="share"], [data-focus="action-share"]')
    with page.page.expect_download() as download:
        page.page.click('[data-focus="download-jsonl"]')
    record = json.loads(Path(download.value.path()).read_text().splitlines()[1])
    (line,) = record["variations"]
    assert (line["move"], len(line["actions"]), line["comments"]) == (2, 4, {"3": "a ] try"})
    page.page.click('[data-focus="publish"]')
    page.page.wait_for_selector("dialog[open]", state="detached")
    other = open_page()  # another browser
    other.open(page.page.url.removeprefix(page.server.address)).page.wait_for_selector(".moves .others button")
    other.page.locator(".moves .others button").first.click()
    other.page.click('[data-focus="action-undo"]')
    assert other.page.locator(".moves .others button").count() == 0
    assert other.page.locator(".timeline output").inner_text() == f"2 / {count}"


def test_curves_of_a_run(open_page: Any) -> None:
    page = open_page().open("/dashboard")
    page.page.wait_for_selector("figcaption:has-text('Policy loss')")
    assert page.page.locator("figcaption:has-text('Policy loss') b").inner_text() == "0.25"
    assert page.page.locator("figcaption:has-text('Returns') b").inner_text() == "8 · −8"
    assert page.page.locator(".stat:has-text('State')").inner_text().endswith("finished")


@pytest.mark.slow
def test_live_self_play_games(open_page: Any) -> None:
    page = open_page()

    def catalog(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(json={**answer.json(), "live": True})

    def grids(opened: Any) -> None:
        grid = {"type": "grid", "game": "duo", "kind": "polyomino", "size": 5, "step": 1, "over": [2]}
        opened.send(json.dumps({**grid, "cells": ["." * 20 + "00011"] * 300}))

    page.page.route("**/api/catalog", catalog)
    page.page.route_web_socket("**/api/live", grids)
    page.open("/dashboard").page.wait_for_selector(".live:not([hidden]) canvas")
    assert {"300", "1"} <= set(page.page.locator(".live h2").inner_text().split())
    blue = page.page.evaluate(
        """() => {
          const canvas = document.querySelector(".live canvas");
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let blue = 0;
          for (let at = 0; at < data.length; at += 4) blue += data[at + 2] > 150 && data[at] < 60;
          return blue;
        }"""
    )
    assert blue > 300
