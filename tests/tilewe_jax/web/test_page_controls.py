"""The page in Chromium: mouse, touch, keyboard, gamepad, options and themes."""

import json
import random
from typing import Any

import pytest

from tests.tilewe_jax.web.page import HUMAN, Json, Server, middle, move_by_keyboard


def test_from_the_lobby_to_the_first_move_by_keyboard(open_page: Any) -> None:
    """Screen readers receive each step."""
    page = open_page()
    page.context.add_init_script(
        """
        window.spoken = [];
        addEventListener("DOMContentLoaded", () => {
          const live = document.getElementById("live");
          new MutationObserver(() => window.spoken.push(live.textContent)).observe(live, {childList: true});
        });
        """
    )
    page.open().page.wait_for_selector('[data-focus="start"]')
    keyboard = page.page.keyboard

    def tab_to(selector: str) -> None:
        for _ in range(40):
            if page.page.locator(f"{selector}:focus").count():
                return
            keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached")

    def was_spoken(text: str) -> None:
        page.page.wait_for_function("text => window.spoken.some(spoken => spoken.includes(text))", arg=text)

    tab_to('[role="radio"].game')
    while not page.page.locator('[data-game="santorini"]:focus').count():
        keyboard.press("ArrowRight")
    tab_to('[data-focus="start"]')
    keyboard.press("Enter")
    page.page.wait_for_selector(".your-turn")
    keyboard.press("ArrowUp")
    was_spoken("level 0")
    move_by_keyboard(page, random.Random(1))
    was_spoken("Engine moves from")
    assert page.page.locator(".board:focus").count()
    keyboard.press("v")
    was_spoken("workers")


def test_touch_places_with_the_button(open_page: Any) -> None:
    page = open_page(viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.start("duo_official", size=8)
    page.page.locator(".board").tap(position={"x": 150, "y": 150})
    assert page.state["move"] == 0
    page.page.keyboard.press("l")  # a legal place
    page.page.locator(".tools .place").tap()
    page.wait_for_move(2)


def test_a_dragged_piece_lies_above_the_finger(open_page: Any) -> None:
    page = open_page(viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.start("duo_official", size=8)
    box = page.page.locator(".board").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page.page)

    def send(kind: str, *points: tuple[float, float]) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    def lowest() -> float:
        ghost = "document.querySelector('.board .tilewe-ghost')"
        bottom: float = page.page.evaluate(f"() => {ghost}?.getBoundingClientRect().bottom ?? 0")
        return bottom

    page.wait_for_turn()
    send("touchStart", (x, y))
    for step in range(1, 6):
        send("touchMove", (x + 4 * step, y))
    page.wait(lambda: 0 < lowest() < y - box["height"] / 9 / 2)
    send("touchEnd")
    assert page.state["move"] == 0


def test_incompatible_options(open_page: Any) -> None:
    """The reason stays in the form until an option changes."""
    page = open_page().open()
    page.page.click('[data-game="triominos"]')
    page.page.click('[data-focus="more"]')
    page.page.locator('[data-focus="option-players"]').select_option(label="3")
    page.page.locator('[data-focus="option-tiles"]').select_option(label="20")
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector(".refusal:has-text('tiles')")
    page.page.locator('[data-focus="option-tiles"]').select_option(label="56")
    page.page.wait_for_selector(".refusal", state="hidden")
    page.errors.clear()  # Chromium logs the refusal


def test_wheel_keys_and_gamepad_turn_the_piece(open_page: Any) -> None:
    page = open_page()
    page.context.add_init_script(
        """
        window.pressed = new Set();
        navigator.getGamepads = () => window.pad ? [{
          axes: [0, 0],
          buttons: Array.from({length: 16}, (_, index) => ({pressed: window.pressed.has(index)})),
        }] : [];
        """
    )
    page.start("duo_official", size=8)
    page.page.click('.tray [data-piece="L5"]')
    tools = page.page.locator(".tools")

    def turns(to: str) -> None:
        page.wait(lambda: tools.get_attribute("data-orientation") == to)

    turns("L5n")
    page.page.locator(".board").hover(position={"x": 200, "y": 200})
    page.page.mouse.wheel(0, 100)
    turns("L5e")
    page.page.keyboard.press("Shift+R")
    turns("L5n")
    page.page.mouse.click(*middle(page.page.locator(".board")), button="right")
    turns("L5nf")
    page.page.evaluate(
        "() => { window.pad = true; window.dispatchEvent(new Event('gamepadconnected')); window.pressed.add(1); }"
    )
    turns("L5n")
    page.page.evaluate("() => { window.pressed.delete(1); window.pressed.add(3); }")
    page.wait(lambda: tools.get_attribute("data-orientation") == "N5n")
    page.page.evaluate("() => window.pressed.clear()")


def test_pass_undo_and_redo(open_page: Any) -> None:
    page = open_page()
    page.start("duo", size=8, voluntary_pass=True)
    move_by_keyboard(page, random.Random(1))
    page.wait_for_turn()
    page.page.keyboard.press("u")
    page.wait(lambda: page.state["move"] == 0)
    page.wait_for_turn()
    page.page.keyboard.press("y")
    page.wait(lambda: page.state["move"] == 2)
    page.wait_for_turn()
    page.page.click('[data-focus="tool-pass"]')
    page.page.click("dialog .primary")
    page.wait(lambda: page.state["view"]["colors"][0]["out"])
    page.page.wait_for_selector(".player .badge:has-text('out'), .result:not([hidden])")


@pytest.mark.slow
def test_clocks_tick(open_page: Any, server: Server) -> None:
    created = server.create("duo_official", {}, [HUMAN, HUMAN], clock={"seconds": 60, "increment": 1})
    other = open_page().open(created["paths"][1])
    other.page.wait_for_selector(".clock")
    with server.player(created, 0) as first:
        first.move_at_random(random.Random(1))
    clock = other.page.locator(".clock").nth(1)
    assert clock.inner_text() == "1:00"
    other.wait(lambda: clock.inner_text() == "0:59")


def test_themes_and_help(open_page: Any) -> None:
    page = open_page(color_scheme="dark").open()
    page.page.wait_for_selector('[data-focus="start"]')

    def background() -> str:
        color: str = page.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        return color

    dark = background()
    page.page.click('[data-focus="theme"]')
    light = background()
    assert dark != light
    page.page.click('[data-focus="theme"]')
    assert background() == dark
    page.page.reload()
    assert background() == dark
    page.page.keyboard.press("?")
    assert page.page.locator("dialog[open] kbd").count() > 20
    page.page.keyboard.press("Escape")
    assert page.page.locator("dialog[open]").count() == 0


def test_games_without_a_board_have_a_list_of_moves(open_page: Any) -> None:
    """A third-party game: the text of its board, and its legal moves by name."""
    page = open_page()
    sent: list[Json] = []
    common: Json = {"kind": "text", "num_players": 2, "terminal": False, "scores": [0, 0]}
    state: Json = {
        **{"type": "state", "id": "other", "game": "connect_four", "options": {}, "move": 0, "you": 0, "casual": True},
        **{"seats": [{"kind": "human", "name": name, "connected": True} for name in "ab"], "over": None, "clock": None},
        **{"undo": None, "thinking": False, "moves": [], "frames": []},
        "view": {**common, "current_player": 0, "text": ". . .\n. X ."},
        "legal": [{"id": 3, "name": "column 4", "kind": "other"}, {"id": 5, "name": "column 6", "kind": "other"}],
    }

    def serve(opened: Any) -> None:
        def answer(text: str) -> None:
            message = json.loads(text)
            sent.append(message)
            if message["type"] == "join":
                opened.send(json.dumps({**state, "start": state["view"]}))

        opened.on_message(answer)

    page.page.route_web_socket("**/api/games/other/socket", serve)
    page.open("/game/other").page.wait_for_selector("text=column 6")
    assert ". X ." in page.page.locator(".text-board").inner_text()
    page.page.click("text=column 6")
    page.wait(lambda: sent[-1]["type"] == "move")
    assert (sent[-1]["action"], sent[-1]["move"]) == (5, 0)
