"""The page in Chromium: movements, sound, vibration, notifications, and what browsers need to install it."""

import random
from typing import Any

import pytest

from tests.tilewe_jax.web.page import HUMAN, Json, Page, Server, move_by_mouse

ANIMATED = """
window.animated = [];  // class and first transformation of each moved part of the board
const animate = Element.prototype.animate;
Element.prototype.animate = function (frames, options) {
  if (this.closest(".board")) window.animated.push([this.getAttribute("class").split(" ")[0], frames[0]?.transform ?? null]);
  return animate.call(this, frames, options);
};
"""
RECORD = """
window.recorded = [];
const start = OscillatorNode.prototype.start;
OscillatorNode.prototype.start = function (...given) { window.recorded.push("tone"); return start.apply(this, given); };
Navigator.prototype.vibrate = function (pattern) { window.recorded.push("vibration"); return true; };
window.Notification = class {
  static permission = "default";
  static async requestPermission() {
    window.recorded.push("request");
    return (this.permission = window.answer);
  }
  constructor(title) { window.recorded.push(title); }
  close() {}
};
"""


def after_a_move_of_another_player(page: Page, server: Server, game: str, options: Json) -> None:
    """Open seat 0 of a new game, and let seat 1 answer the first move."""
    created = server.create(game, options, [HUMAN, HUMAN])
    page.open(created["paths"][0]).page.wait_for_selector(".your-turn")
    move_by_mouse(page, random.Random(1))
    with server.player(created, 1) as other:
        other.wait(lambda state: state["legal"])
        other.move_at_random(random.Random(2))
    page.wait_for_move(2)


@pytest.mark.parametrize(("game", "options", "piece"), [("duo", {"size": 9}, "piece"), ("santorini", {}, "worker")])
def test_pieces_of_others_slide_and_their_marks_pulse(
    browser: Any, open_page: Any, server: Server, game: str, options: Json, piece: str
) -> None:
    page = open_page(browser.new_context(reduced_motion="no-preference"))
    page.context.add_init_script(ANIMATED)
    after_a_move_of_another_player(page, server, game, options)
    page.page.wait_for_function("() => window.animated.some(([name]) => name === 'tilewe-last')")
    moved = [transform for name, transform in page.page.evaluate("() => window.animated") if name == f"tilewe-{piece}"]
    assert moved
    assert all(transform.startswith("translate(") for transform in moved)
    page.page.wait_for_function("() => !document.getAnimations().some(({effect}) => effect.target.closest('.board'))")
    if game == "duo":
        shown = [int(text) for text in page.page.locator(".player .score").all_inner_texts()]
        assert shown == page.state["view"]["scores"]
        assert all(shown)


def test_nothing_moves_with_reduced_motion(open_page: Any, server: Server) -> None:
    page = open_page()
    page.context.add_init_script(ANIMATED)
    after_a_move_of_another_player(page, server, "duo", {"size": 9})
    page.page.wait_for_function("() => document.querySelector('.board .tilewe-last')")
    assert page.page.evaluate("() => window.animated") == []
    assert page.page.evaluate("() => document.getAnimations().length") == 0
    shown = [int(text) for text in page.page.locator(".player .score").all_inner_texts()]
    assert shown == page.state["view"]["scores"], "numbers do not count"


def switch(page: Page, name: str) -> None:
    page.page.click("summary[data-focus=view-menu]")
    page.page.locator(f'[data-focus="alert-{name}"]').click()
    page.page.click("summary[data-focus=view-menu]")


def test_sound_and_vibration_are_options(open_page: Any, server: Server) -> None:
    page = open_page(viewport={"width": 375, "height": 812}, has_touch=True, is_mobile=True)
    page.context.add_init_script(RECORD)

    def recorded() -> list[str]:
        texts: list[str] = page.page.evaluate("() => window.recorded.splice(0)")
        return texts

    after_a_move_of_another_player(page, server, "santorini", {"size": 4})
    assert recorded() == []
    switch(page, "sound")
    assert set(recorded()) == {"tone"}
    switch(page, "vibration")
    assert set(recorded()) == {"tone", "vibration"}
    number = page.state["move"]
    move_by_mouse(page, random.Random(3))
    page.wait_for_move(number + 1)
    assert {"tone", "vibration"} <= set(recorded())
    page.page.reload()  # browsers allow neither before the first click or key, and the page does not try
    page.page.wait_for_selector(".board svg")
    assert recorded() == []


def test_a_notification_of_the_turn(open_page: Any, server: Server) -> None:
    page = open_page()
    page.context.add_init_script(RECORD)
    created = server.create("santorini", {}, [HUMAN, HUMAN])
    page.open(created["paths"][1]).page.wait_for_selector(".board svg")
    page.page.evaluate("() => { window.answer = 'denied'; }")
    switch(page, "notification")
    page.page.wait_for_selector(".toast.bad")
    assert not page.page.locator('[data-focus="alert-notification"]').is_checked()
    page.page.evaluate("() => { window.answer = 'granted'; }")
    switch(page, "notification")
    page.page.wait_for_function("() => window.recorded.includes('Notifications are on')")
    chance = random.Random(1)
    with server.player(created, 0) as first:
        first.move_at_random(chance)
        page.page.wait_for_selector(".your-turn")
        assert "Your turn" not in page.page.evaluate("() => window.recorded"), "the page is in front"
        page.page.evaluate("() => Object.defineProperty(document, 'hidden', { value: true })")
        number = page.state["move"]
        move_by_mouse(page, chance)
        page.wait_for_move(number + 1)
        first.wait(lambda state: state["legal"])
        first.move_at_random(chance)
        page.page.wait_for_function("() => window.recorded.includes('Your turn')")
    page.page.evaluate("() => { localStorage.clear(); }")


def test_browsers_can_install_the_page(open_page: Any) -> None:
    page = open_page().open()
    page.page.wait_for_selector('[data-focus="start"]')
    page.check_installable()
