"""The page in Chromium: several people at one screen, phrases, clocks, seats, and the results of this browser."""

import random
from typing import Any

from tests.tilewe_jax.web.page import Page, Server, move_by_keyboard, move_by_mouse
from tilewe_jax.web.messages import PHRASES


def test_hidden_trays_at_one_screen_are_behind_a_curtain(open_page: Any) -> None:
    """Between two players the page covers everything, and it knows no tile of the next player before that one is ready."""
    page = open_page()
    page.create("triominos", preset="here", players=3)
    assert page.state["you"] is None
    page.page.wait_for_selector(f"dialog.curtain[open]:has-text('Player {page.state['view']['current_player'] + 1} is next')")
    assert all(isinstance(tray, int) for tray in page.state["view"]["trays"])
    page.page.keyboard.press("Escape")
    covered = page.page.evaluate(
        "() => { const box = document.querySelector('dialog.curtain[open]').getBoundingClientRect();"
        " return box.width >= innerWidth && box.height >= innerHeight; }"
    )
    assert covered
    chance = random.Random(1)
    for number in range(6):
        mover = page.state["view"]["current_player"]
        page.page.click("dialog.curtain .primary")
        page.wait(lambda mover=mover: page.state["you"] == mover)
        page.page.wait_for_selector("dialog.curtain", state="detached")
        trays = page.state["view"]["trays"]
        assert [isinstance(tray, list) for tray in trays] == [seat == mover for seat in range(3)]
        while page.state["view"]["current_player"] == mover:
            before = page.state["move"]
            move_by_mouse(page, chance)
            page.wait_for_move(before + 1)
        page.page.wait_for_selector(
            f"dialog.curtain[open]:has-text('Player {page.state['view']['current_player'] + 1} is next')"
        )
        assert page.state["move"] > number
    page.states.clear()
    page.page.reload()  # nobody has a seat before a player is ready
    page.page.wait_for_selector("dialog.curtain[open]")
    assert page.state["you"] is None


def test_undo_and_redo_at_one_screen(open_page: Any) -> None:
    page = open_page()
    page.create("santorini", preset="here", size=4)
    chance = random.Random(2)
    for number in range(3):
        page.wait(lambda number=number: page.state["you"] == page.state["view"]["current_player"] == number % 2)
        move_by_mouse(page, chance)
        page.wait_for_move(number + 1)
    view = page.state["view"]
    for number in (2, 1):
        page.page.click('[data-focus="action-undo"]')
        page.wait(lambda number=number: page.state["move"] == number and page.state["you"] == number % 2)
    for number in (2, 3):
        page.page.keyboard.press("y")
        page.wait(lambda number=number: page.state["move"] == number and page.state["you"] == number % 2)
    assert page.state["view"] == view
    assert page.page.locator('[data-focus="action-redo"]').count() == 0
    page.page.click('[data-focus="action-undo"]')
    page.page.wait_for_selector('[data-focus="action-redo"]')


def test_two_people_at_one_screen_prepare_pieces(open_page: Any) -> None:
    """Each has a tray and a tool bar, and with two gamepads each turns the own piece."""
    page = open_page()
    page.context.add_init_script(
        """
        window.pressed = [new Set(), new Set()];
        navigator.getGamepads = () => window.pads ? window.pressed.map((pressed) => ({
          axes: [0, 0],
          buttons: Array.from({length: 16}, (_, index) => ({pressed: pressed.has(index)})),
        })) : [];
        """
    )
    page.create("duo_official", preset="here", size=8)
    page.wait(lambda: page.state["you"] == 0)
    page.page.click('.tray.preparing [data-piece="L5"]')
    page.page.click('.tray.preparing [data-focus^="tool-right"]')
    page.page.evaluate("() => { window.pads = true; dispatchEvent(new Event('gamepadconnected')); }")

    def press(pad: int, button: int) -> None:
        page.page.evaluate("([pad, button]) => window.pressed[pad].add(button)", [pad, button])
        page.page.wait_for_timeout(100)
        page.page.evaluate("pad => window.pressed[pad].clear()", pad)
        page.page.wait_for_timeout(50)

    press(1, 1)
    press(1, 13)
    assert page.page.locator(".board .tilewe-ghost").count() == 0, "the player who waits does not move the cursor"
    press(0, 3)
    assert page.page.locator('.tray.preparing [aria-checked="true"]').get_attribute("data-piece") == "L5"
    move_by_keyboard(page, random.Random(1))
    page.wait(lambda: page.state["you"] == 1)
    tools = page.page.locator(".tools-place .tools")
    page.wait(lambda: tools.get_attribute("data-orientation") == "L5ef")
    assert page.page.locator(".tray.preparing h2").inner_text().startswith("Player 1")


def test_phrases_in_place_of_chat(open_page: Any, server: Server) -> None:
    created = server.create("santorini", {}, [{"kind": "human", "name": "Ada"}, {"kind": "human", "name": "Bo"}])
    first, second = open_page(), open_page(viewport={"width": 375, "height": 812})
    for seat, page in enumerate((first, second)):
        page.open(created["paths"][seat]).page.wait_for_selector(".board svg")
    board = second.page.locator(".board").bounding_box()
    first.page.focus('[data-focus="phrases"]')
    buttons = first.page.locator("[data-phrase]")
    assert [button.get_attribute("data-phrase") for button in buttons.all()] == list(PHRASES)
    for key in ("Enter", "Tab", "Tab", "Enter"):
        first.page.keyboard.press(key)
    assert not buttons.first.is_visible(), "the menu closes"
    second.page.wait_for_selector(".player:has-text('Ada') .said:has-text('Good luck!')")
    assert second.page.locator(".board").bounding_box() == board
    second.page.wait_for_function("() => document.getElementById('live').textContent.includes('Ada: Good luck!')")
    second.page.wait_for_selector(".said", state="detached")
    alone = open_page().start("santorini")
    assert alone.page.locator('[data-focus="phrases"]').count() == 0, "engines do not listen"


def start_with_clock(page: Page, *fields: str) -> Any:
    page.open().page.click('[data-game="santorini"]')
    page.page.click('[data-focus="preset-friend"]')
    page.page.click('[data-focus="more"]')
    page.page.locator('[data-focus="clock"]').select_option(label="your own")
    for name, value in zip(("clock-0", "clock-1"), fields, strict=False):
        page.page.fill(f'[data-focus="{name}"]', value)
        page.page.keyboard.press("Tab")


def test_a_clock_to_ones_own_taste(open_page: Any) -> None:
    page = open_page()
    start_with_clock(page, "3", "12")
    page.page.locator('[data-focus="clock-unit-0"]').select_option(label="days")
    page.page.locator('[data-focus="clock-unit-1"]').select_option(label="hours")
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector(".clock:has-text('3 d 0 h')")
    assert page.state["clock"]["remaining"] == [259_200, 259_200]
    start_with_clock(page, "999")  # the units were kept
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector(".refusal:has-text('2,592,000')")
    page.errors.clear()  # Chromium logs the refusal


def test_seats_are_drawn(open_page: Any) -> None:
    page = open_page()
    seats = set()
    for _ in range(12):
        page.open().page.click('[data-game="santorini"]')
        page.page.click('[data-focus="preset-engine"]')
        page.page.set_checked('[data-focus="drawn"]', True)
        page.states.clear()
        page.page.click('[data-focus="start"]')
        page.wait(lambda: page.states)
        seats.add(page.state["you"])
        if len(seats) == 2:
            return
    raise AssertionError(f"the user always had seat {seats}")


def test_results_against_the_levels(open_page: Any) -> None:
    """Two games lost, one of them after an undo, which does not count for the rating."""
    page = open_page()
    for undo in (False, True):
        page.create("duo_official", size=8)
        if undo:
            page.wait_for_turn()
            move_by_keyboard(page, random.Random(1))
            page.wait_for_turn()
            page.page.keyboard.press("u")
            page.wait(lambda: page.state["move"] == 0)
        page.page.click('[data-focus="action-flag"]')
        page.page.click("dialog .danger")
        page.page.wait_for_selector(".result:not([hidden])")
    page.open().page.wait_for_selector(".own-results")
    assert page.page.locator(".own-results tbody td").all_inner_texts() == ["beginner", "0", "0", "0", "2"]
    assert "from 1 game" in page.page.locator(".own-results").inner_text()
    page.page.click('[data-game="santorini"]')
    page.page.wait_for_selector(".own-results", state="detached")


def test_the_rating_makes_the_results_most_likely(open_page: Any) -> None:
    page = open_page().open()
    rating = page.page.evaluate(
        """async () => {
          const { ratingOf } = await import("/static/results.js");
          const games = [...Array(64).fill(1), ...Array(36).fill(0)].map((won) => ({ elo: 500, won }));
          return { many: ratingOf(games), one: ratingOf([{ elo: 500, won: 1 }]) };
        }"""
    )
    assert abs(rating["many"]["rating"] - 600) < 5
    assert 60 < rating["many"]["error"] < 80
    assert abs(rating["one"]["rating"] - 691) < 2  # as 1.5 points of 2
    assert rating["one"]["error"] > 400


def test_a_first_game_explains_itself(open_page: Any) -> None:
    """The board marks the start cells, then the cells along edges; the rules have pictures. The next game is without marks."""
    page = open_page().start("duo", size=9)
    shown = page.page
    shown.wait_for_selector(".rules figure")
    assert shown.locator(".rules figcaption").count() == 4
    assert shown.locator(".lesson text").all_text_contents() == ["Start"] * len(page.state["view"]["start_cells"])
    for number in range(3):
        assert page.wait_for_turn()
        move_by_keyboard(page, random.Random(number))
        page.wait_for_turn()
        shown.keyboard.press("Escape")
        crosses = shown.locator(".lesson path")
        if number < 2:
            shown.wait_for_function("() => document.querySelector('.lesson path')?.getAttribute('d')")
            cells, size = page.state["view"]["cells"], page.state["view"]["size"]
            own = [index for index, cell in enumerate(cells) if cell == "0"]
            beside = {index + step for index in own for step in (-size, size)}
            beside |= {index + step for index in own for step in (-1, 1) if (index + step) // size == index // size}
            closed = [index for index in beside if 0 <= index < size * size and cells[index] == "."]
            assert crosses.get_attribute("d").count("M") == 2 * len(closed)
        else:
            shown.wait_for_function("() => !document.querySelector('.lesson')")
    page.start("duo", size=9)
    shown.wait_for_selector(".your-turn")
    assert shown.locator(".lesson").count() == 0


def test_pictures_of_the_rules_follow_the_rules(open_page: Any) -> None:
    """In each picture of Triominos, a good tile agrees with its neighbours, and a bad one does not."""
    page = open_page().open()
    pictures = page.page.evaluate(
        """async () => {
          const { PICTURES } = await import("/static/lessons.js");
          return PICTURES.triominos.map(([view, { ghost }]) => [view.tiles, ghost]);
        }"""
    )
    for tiles, ghost in pictures:
        numbers: dict[tuple[float, ...], int] = {}
        for tile in tiles:
            for point, number in zip(tile["points"], tile["numbers"], strict=True):
                assert numbers.setdefault(tuple(point), number) == number
        fits = all(
            numbers.get(tuple(point), number) == number for point, number in zip(ghost["points"], ghost["numbers"], strict=True)
        )
        assert fits == ghost["legal"]
