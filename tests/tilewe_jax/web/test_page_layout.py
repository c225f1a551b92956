"""The page in Chromium at the sizes of phones and screens: nothing is cut off, covered or outside the window."""

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.page import Json, Page, Server

SIZES = [(320, 640), (375, 740), (568, 320), (667, 375), (812, 375), (1280, 860)]
LONG = "Wilhelmina Featherstonehaugh-Smythe"
GAMES: list[tuple[str, Json, int]] = [
    ("classic", {}, 4),
    ("santorini", {}, 2),
    ("triominos", {"players": 6, "game": "target"}, 6),
    ("tilewe", {"players": 1, "size": 8}, 1),
    ("classic_2", {}, 2),
    ("duo_official", {}, 2),
    ("triominos", {"players": 2, "game": "target"}, 2),
]
FAST = {(320, "classic-4"), (320, "santorini-2"), (320, "triominos-6"), (812, "triominos-6"), (1280, "classic-4")}
CASES = [
    pytest.param((width, height), *game, id=f"{name}-{width}", marks=() if (width, name) in FAST else pytest.mark.slow)
    for width, height in SIZES
    for game in GAMES
    for name in [f"{game[0]}-{game[2]}"]
]
MEASURE = """width => {  // not innerWidth, which grows with too wide elements on phones
  const faults = [];
  const shown = (element) => element.checkVisibility({visibilityProperty: true}) && !element.closest(".visually-hidden, .skip");
  const scope = document.querySelector("dialog[open]") ?? document.body;
  const says = (element) => `${element.localName}.${element.className} ${element.textContent.trim().slice(0, 40)}`;
  const sideways = (element) => {
    for (let at = element; at; at = at.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(at).overflowX) && at.scrollWidth > at.clientWidth) return true;
    }
    return false;
  };
  if (document.documentElement.scrollWidth > width) faults.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const element of scope.querySelectorAll("button, a, input, select, summary, th, td, h1, h2, h3, dd, dt, p, .name")) {
    if (!shown(element)) continue;
    const box = element.getBoundingClientRect();
    if (!box.width || sideways(element)) continue;
    if (box.left < -1 || box.right > width + 1) faults.push(`outside: ${says(element)}`);
    const frame = element.closest(".card, .result, .panel, .players, .tray, .setup, dialog")?.getBoundingClientRect();
    const isBeyond = frame && (box.left < frame.left - 1 || box.right > frame.right + 1);
    if (isBeyond) faults.push(`beyond its frame: ${says(element)}`);
    const isText = element.matches("button, summary, .tab, th, dt, dd");
    const isCut = isText && element.clientWidth && element.scrollWidth > element.clientWidth + 1;
    if (isCut) faults.push(`cut: ${says(element)}`);
  }
  for (const element of [scope, ...scope.querySelectorAll(".panel-content, .player-name, .tools, .actions, .top")]) {
    if (!shown(element)) continue;
    if (element.scrollWidth > element.clientWidth + 1) faults.push(`is wider than its place: ${says(element)}`);
  }
  for (const player of scope.querySelectorAll(".player, .result tr, .rounds tr, .game-list li, .mistake-card")) {
    if (!shown(player)) continue;
    const all = player.querySelectorAll(".swatch, .name, .clock, .score, td.number, .what, .button, .loss");
    const parts = [...all].filter(shown);
    const boxes = parts.map((part) => part.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
      const other = parts[i + 1 + j];
      if (parts[i].contains(other) || other.contains(parts[i])) return;
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) faults.push(`${says(parts[i])} is covered by ${says(other)}`);
    }));
    const name = player.querySelector(".name")?.getBoundingClientRect();
    if (name && name.width < 48) faults.push(`${name.width} px of a name: ${says(player)}`);
  }
  return faults;
}"""
BOARD = """() => {
  const box = document.querySelector(".board svg").getBoundingClientRect();
  const top = document.querySelector(".top").getBoundingClientRect().bottom;
  const tools = document.querySelector(".tools-place:has(.tool)")?.getBoundingClientRect();
  const bottom = tools && tools.left < box.right && tools.right > box.left ? tools.top : innerHeight;
  const seen = Math.max(0, Math.min(box.bottom, bottom) - Math.max(box.top, top));
  return [seen / box.height, box.width, box.height];
}"""


def check(page: Page, what: str) -> None:
    """Assert that no element is cut off, covered or outside the window; SCREENSHOTS names a folder for pictures."""
    if folder := os.environ.get("SCREENSHOTS"):
        size = page.page.viewport_size
        name = re.sub(r"[^\w-]+", "-", what)
        page.page.screenshot(path=str(Path(folder) / f"{size['width']}-{name}.png"), full_page=False)
    width = page.page.viewport_size["width"]
    faults = page.page.evaluate(MEASURE, width)
    assert not faults, (what, width, faults)


@pytest.fixture
def page(request: Any, open_page: Any) -> Page:
    width, height = request.param
    is_phone = width < 1000
    return open_page(viewport={"width": width, "height": height}, has_touch=is_phone, is_mobile=is_phone)


def created(server: Server, game: str, options: Json, players: int) -> str:
    """Create a game of people with long names and clocks; return the path of seat 0."""
    seats = [{"kind": "human", "name": LONG if seat else f"{LONG} {seat}"} for seat in range(players)]
    path: str = server.create(game, options, seats, clock={"seconds": 7_000, "increment": 5})["paths"][0]
    return path


@pytest.mark.parametrize("page", [SIZES[0], SIZES[-1], pytest.param(SIZES[4], marks=pytest.mark.slow)], indirect=True)
def test_pages_and_dialogs(page: Page, server: Server) -> None:
    path = created(server, "triominos", {"players": 6, "game": "target"}, 6)
    page.open(path).page.wait_for_selector(".board svg")
    page.open().page.wait_for_selector('[data-focus^="own-"]')
    check(page, "lobby")
    page.page.click('[data-focus="more"]')
    for game in ("tilewe", "classic", "triominos"):
        page.page.click(f'[data-game="{game}"]')
        page.page.click('[data-focus="preset-friend"]')
        check(page, f"set-up of {game}")
    page.page.click("#top-tools button:last-child")
    check(page, "help")
    page.page.keyboard.press("Escape")
    page.open("/study").page.wait_for_selector("h1")
    check(page, "study")
    page.open("/dashboard").page.wait_for_selector("figcaption")
    for summary in page.page.locator("details.others summary").all():
        summary.click()
    check(page, "dashboard")
    page.open("/nothing/here").page.wait_for_selector(".notice")
    check(page, "an unknown address")
    page.errors.clear()  # Chromium logs the status of that address


@pytest.mark.parametrize(("page", "game", "options", "players"), CASES, indirect=["page"])
def test_a_game(page: Page, server: Server, game: str, options: Json, players: int) -> None:
    page.open(created(server, game, options, players)).page.wait_for_selector(".board svg")
    what = f"{game} of {players}"
    check(page, what)
    seen, width, height = page.page.evaluate(BOARD)
    size = page.page.viewport_size
    assert size is not None
    assert seen > (0.99 if size["width"] > 400 else 0.7), (what, seen)
    if game != "triominos":  # the tiles determine the shape of its board
        assert min(width, height) > 0.6 * min(size["width"], size["height"]), (what, width, height)
    for name in page.page.locator(".tab").all_inner_texts():
        page.page.click(f".tab:has-text('{name}')")
        check(page, f"{what}, {name}")
    page.page.click("summary[data-focus=view-menu]")
    check(page, f"{what}, menu")
    page.page.click("summary[data-focus=view-menu]")
    page.page.click('[data-focus="action-share"]')
    page.page.wait_for_selector("dialog[open]")
    check(page, f"{what}, share")
    page.page.keyboard.press("Escape")
    page.page.click('[data-focus="action-flag"]')
    check(page, f"{what}, resign")
    page.page.click("dialog .danger")
    page.page.wait_for_selector(".result:not([hidden])")
    check(page, f"{what}, result")
    page.page.click('[data-focus="review"]')
    page.page.wait_for_selector(".analysis progress", state="detached")
    check(page, f"{what}, analysis")


PHONES = [pytest.param((375, 812), id="upright"), pytest.param((812, 375), id="landscape")]


@pytest.mark.parametrize("page", PHONES, indirect=True)
def test_nothing_moves_under_the_finger(page: Page, server: Server) -> None:
    """Notes and requests of other players move neither the board nor the button that places the piece."""
    created = server.create("duo_official", {}, [{"kind": "human"}, {"kind": "human", "name": LONG}])
    with server.player(created, 1) as other:
        page.open(created["paths"][0]).page.wait_for_selector(".board svg")
        places = []

        def measure() -> None:
            places.append([page.page.locator(each).bounding_box() for each in (".board", ".tools .place")])

        measure()
        page.page.keyboard.press("ArrowUp")
        page.page.wait_for_selector(".note.bad")
        measure()
        page.page.evaluate("() => document.querySelector('.note').append(' and so on'.repeat(6))")
        measure()
        page.page.keyboard.press("l")
        page.page.wait_for_selector(".note.good")
        measure()
        page.page.keyboard.press("Enter")
        other.wait(lambda state: state["legal"])
        other.move_at_random(random.Random(1))
        page.wait_for_turn()
        other.ask({"type": "undo"})
        page.page.wait_for_selector(".requests .bar")
        measure()
        bar, board = (page.page.locator(each).bounding_box() for each in (".requests", ".board"))
        assert bar["y"] + bar["height"] <= board["y"] or bar["x"] >= board["x"] + board["width"], "a bar covers the board"
        check(page, "a request")
        assert all(place == places[0] for place in places), places
        button = places[0][1]
        assert button["y"] + button["height"] <= page.page.viewport_size["height"]
