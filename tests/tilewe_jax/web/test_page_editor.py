"""The position editor in Chromium: by mouse and keys, its checks, play, study and links."""

import json
from typing import Any

import pytest

from tests.tilewe_jax.web.page import HUMAN, Page, move_by_keyboard, play
from tests.tilewe_jax.web.test_page_layout import MEASURE


def keys(page: Page, *names: str) -> None:
    page.page.locator(".board").focus()
    for name in names:
        page.page.keyboard.press(name)


def facts(page: Page) -> Any:
    page.page.click('[data-focus="editor-text"]')
    text = page.page.locator("dialog textarea").input_value()
    page.page.keyboard.press("Escape")
    page.page.wait_for_selector("dialog", state="detached")
    return json.loads(text)


def opened(open_page: Any, game: str, **settings: Any) -> Page:
    page: Page = open_page(**settings).open(f"/editor?game={game}")
    page.page.wait_for_selector(".board svg")
    return page


def test_pieces_are_put_checked_played_and_shared(open_page: Any) -> None:
    page = opened(open_page, "duo_official")
    page.page.click('[data-focus="piece-O1"]')
    page.click_cell([0, 0])
    page.page.wait_for_selector(".note.bad:has-text('A piece of blue must cover e10')")
    assert page.page.locator('[data-focus="editor-person"]').is_disabled()
    page.click_cell([0, 0])  # removes the piece
    page.page.wait_for_selector(".note.good")
    page.click_cell([4, 9])
    page.page.click('[data-focus="color-1"]')
    page.page.click('[data-focus="piece-I2"]')
    page.click_cell([9, 4])
    page.page.click('[data-focus="mover-yellow"]')
    page.page.wait_for_selector(".note.good:has-text('Yellow is to move')")
    found = facts(page)
    assert (found["placed"]["blue"], found["current_color"]) == (["e10"], "yellow")
    assert len(found["placed"]["yellow"]) == 1

    page.page.click('[data-focus="editor-share"]')
    link = page.page.locator("dialog input").input_value()
    page.page.keyboard.press("Escape")
    other = open_page().open(link.removeprefix(page.server.address))
    other.page.wait_for_selector(".note.good:has-text('Yellow is to move')")
    assert facts(other) == found
    other.page.click('[data-focus="editor-chart"]')
    other.page.wait_for_url("**/study/**")
    other.page.wait_for_selector(".board svg")
    other.page.click('[data-focus="action-text"]')
    other.page.wait_for_selector(".note.good:has-text('Yellow is to move')")
    assert facts(other)["placed"] == found["placed"]

    page.page.click('[data-focus="editor-person"]')
    page.page.click('dialog [data-focus="preset-here"]')
    page.page.click("dialog [type=submit]")
    page.page.wait_for_url("**/game/**")
    page.page.wait_for_selector(".board svg")
    page.wait(lambda: page.states)
    assert page.state["set_up"]
    assert page.state["view"]["scores"] == [1, 2]
    assert page.state["view"]["current_color"] == 1


def test_santorini_is_set_up_by_keys(open_page: Any) -> None:
    page = opened(open_page, "santorini")
    keys(page, "Enter", "Enter", "Enter", "n", "n", "ArrowUp", "ArrowUp", "Enter")
    page.page.wait_for_selector(".note.good")
    found = facts(page)
    assert found["heights"] == ["00000", "00000", "00200", "00000", "00000"]
    assert found["workers"] == [["c2", "c5"], ["b3", "d3"]]
    page.page.keyboard.press("Control+z")
    page.page.wait_for_function("document.querySelector('.note').classList.contains('good')")
    assert facts(page)["workers"] == [["c4", "c2"], ["b3", "d3"]]
    page.page.click('[data-focus="editor-close"]')
    page.page.wait_for_selector(".note.good")
    assert facts(page)["heights"] == ["00000"] * 5
    page.page.click('[data-focus="editor-text"]')
    page.page.fill("dialog textarea", "4101202110011400102000100/2/mortal:A3,C3/mortal:E4,A1")
    page.page.click('[data-focus="apply-text"]')
    page.page.wait_for_selector(".note.good:has-text('Player 2 is to move')")


def test_tiles_are_put_on_the_table_and_given_to_players(open_page: Any) -> None:
    page = opened(open_page, "triominos")
    keys(page, "Enter", "Enter")
    page.page.wait_for_function("document.querySelectorAll('.board .tilewe-tile').length === 1")
    keys(page, "ArrowRight", "Enter", "ArrowLeft", "Delete")  # puts a second tile and removes the first one
    page.page.wait_for_function("document.querySelectorAll('.board .tilewe-tile').length === 1")
    page.page.wait_for_selector(".note.good")
    page.page.locator('[data-focus^="pile-"]').first.click()
    before = page.page.locator('[data-focus^="tray1-"]').count()
    page.page.locator('[data-focus="editor-owner"]').select_option("1")
    assert page.page.locator('[data-focus^="tray1-"]').count() == before + 1
    page.page.fill('[data-focus="points-0"]', "17")
    page.page.keyboard.press("Tab")
    page.page.wait_for_selector(".note.good")
    found = facts(page)
    assert (found["points"], len(found["placed"]), len(found["trays"][1])) == ([17, 0], 1, before + 1)


def set_option(page: Page, name: str, value: int) -> None:
    """Change a number among the options, and wait until the changed position is checked."""
    page.page.fill(f'[data-focus="option-{name}"]', str(value))
    with page.page.expect_response(lambda response: '"position"' in (response.request.post_data or "")):
        page.page.keyboard.press("Tab")


def wait_for_pieces(page: Page, count: int) -> None:
    page.wait(lambda: page.page.locator(".board .tilewe-piece").count() == count)


def test_options_change_and_the_position_is_kept_as_far_as_it_fits(open_page: Any) -> None:
    page = opened(open_page, "tilewe")
    page.page.select_option('[data-focus="option-players"]', label="2")
    page.wait(lambda: page.page.locator('[data-focus^="mover-"]').count() == 2)
    set_option(page, "size", 8)
    page.page.click('[data-focus="piece-O1"]')
    page.click_cell([0, 0])
    page.page.click('[data-focus="piece-I2"]')
    page.click_cell([6, 3])
    wait_for_pieces(page, 2)
    set_option(page, "size", 6)
    wait_for_pieces(page, 1)
    assert page.page.locator(".board").get_attribute("data-size") == "6"
    assert facts(page)["placed"]["blue"] == ["a1"]
    page.page.click('[data-focus="editor-undo"]')
    wait_for_pieces(page, 2)
    assert page.page.input_value('[data-focus="option-size"]') == "8"

    page = opened(open_page, "santorini")
    keys(page, "Enter", "Enter")  # to the middle, and a level there
    page.page.select_option('[data-focus="option-size"]', label="3")
    page.page.wait_for_selector(".note.bad:has-text('must have two workers')")
    found = facts(page)
    assert (found["heights"], found["workers"]) == (["001", "000", "000"], [["c2"], ["b3"]])
    page.page.click('[data-focus="editor-options"]')
    page.page.select_option('[data-focus="option-placement"]', label="placed by the players")
    page.page.wait_for_selector(".note.bad:has-text('While workers are missing, all heights must be 0')")


def test_players_of_triominos(open_page: Any) -> None:
    page = opened(open_page, "triominos")
    keys(page, "Enter", "Enter")
    page.wait(lambda: page.page.locator(".board .tilewe-tile").count() == 1)
    before = facts(page)
    page.page.select_option('[data-focus="option-players"]', label="4")
    page.page.wait_for_selector('[data-focus="points-3"]')
    page.page.wait_for_selector(".note.good")
    found = facts(page)
    assert (found["placed"], found["trays"][:2], len(found["trays"])) == (before["placed"], before["trays"], 4)
    assert all(found["trays"])


@pytest.mark.parametrize("size", [(375, 812), (812, 375), (1280, 800)])
@pytest.mark.parametrize("game", ["duo_official", "classic", "santorini", "triominos"])
def test_nothing_is_cut_off(open_page: Any, game: str, size: tuple[int, int]) -> None:
    page = opened(open_page, game, viewport={"width": size[0], "height": size[1]})
    page.page.wait_for_selector(".note.good")
    assert page.page.evaluate(MEASURE, size[0]) == []


def test_a_running_game_is_opened_in_the_editor(open_page: Any) -> None:
    page = open_page().start("santorini", size=4)
    play(page, move_by_keyboard, most=2)
    page.wait_for_turn()
    page.page.keyboard.press(",")  # the position on display is opened
    page.page.click("#tab-moves")
    page.page.click('[data-focus="action-text"]')
    page.page.wait_for_url("**/editor#*")
    page.page.wait_for_selector(".note.good:has-text('Player 2 is to move')")
    found = facts(page)
    assert (len(found["heights"]), sum(map(int, "".join(found["heights"])))) == (4, 3)
    assert page.page.input_value('[data-focus="option-size"]') == "4"
    other = open_page().start("santorini", [HUMAN, HUMAN])
    other.page.click("#tab-moves")
    assert not other.page.locator('[data-focus="action-text"]').count(), "the other player is a person"
    hidden = open_page().start("triominos", players=2)
    hidden.page.click("#tab-moves")
    assert not hidden.page.locator('[data-focus="action-text"]').count()


def test_touch_shows_a_piece_before_it_is_put(open_page: Any) -> None:
    page = opened(open_page, "duo_official", viewport={"width": 375, "height": 812}, has_touch=True)
    box = page.page.locator(".board svg").bounding_box()
    page.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.page.wait_for_selector(".tilewe-ghost")
    page.page.click('[data-focus="tool-place"]')
    page.page.wait_for_function("document.querySelectorAll('.board .tilewe-piece').length === 1")
