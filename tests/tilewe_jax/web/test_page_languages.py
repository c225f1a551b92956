"""The page in Chromium in other languages: no English text is left, and German texts fit into their places."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from tests.tilewe_jax.web.page import ENGINE, HUMAN, Page, Server, move_by_keyboard, play
from tests.tilewe_jax.web.page_texts import messages, texts
from tests.tilewe_jax.web.support import play_out
from tests.tilewe_jax.web.test_page_layout import check

ADA = {"kind": "human", "name": "Ada"}
OPEN, CLOSE = "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}", "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}"
NAMES = r"tilewe|jax|duo|Ada|Deutsch|English|[ABC]{3}|SVG|jsonl|blksgf"
"""Words that are the same in each language: names of games, people, languages, orientations and formats."""
SHOWN = """() => {
  const found = [document.title];
  for (const element of document.querySelectorAll("*")) {
    if (element.closest("script, style, noscript, pre:not(.board-text), kbd, [translate=no]")) continue;
    for (const name of ["title", "aria-label", "placeholder", "alt", "aria-roledescription", "aria-valuetext"]) {
      if (element.hasAttribute(name)) found.push(element.getAttribute(name));
    }
    for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE) found.push(node.data);
  }
  return found;
}"""


def tour(page: Page, server: Server) -> Iterator[str]:
    """Visit the views and dialogs of the page, and yield the name of each."""
    for part in (lobby, game_against_the_engine, other_games, positions, puzzles, studies):
        yield from part(page, server)


def lobby(page: Page, server: Server) -> Iterator[str]:
    server.create("triominos", {"players": 3, "game": "target"}, [{"kind": "open"}, ADA, ENGINE])
    page.open()
    for game in ("tilewe", "santorini", "triominos"):
        page.page.click(f'[data-game="{game}"]')
        page.page.locator("details.more").evaluate("element => (element.open = true)")
        yield f"lobby, {game}"
    for preset in ("watch", "open", "here", "friend"):
        page.page.click(f'[data-focus="preset-{preset}"]')
        page.page.select_option('[data-focus="clock"]', index=len(page.page.locator('[data-focus="clock"] option').all()) - 1)
        yield f"lobby, {preset}"
    for button in ("help", "language"):
        page.page.click(f'[data-focus="{button}"]')
        page.page.wait_for_selector("dialog[open]")
        yield button
        page.page.keyboard.press("Escape")


def game_against_the_engine(page: Page, server: Server) -> Iterator[str]:
    click, wait, press = page.page.click, page.page.wait_for_selector, page.page.keyboard.press
    page.start("duo_official", [ADA, ENGINE], size=8)
    yield "duo"
    for _ in range(7):
        press("ArrowUp")  # to the edge, far from the start cell
    wait(".note.bad")
    yield "a piece that does not fit"
    for key in "tvh":
        press(key)
    wait(".tilewe-ghost.tilewe-good")
    click("summary[data-focus=view-menu]")
    yield "hint, menu and board as text"
    click("summary[data-focus=view-menu]")
    play(page, move_by_keyboard, most=2)
    page.wait_for_turn()
    for tab in ("moves", "rules", "analysis"):
        click(f"#tab-{tab}")
        yield f"duo, {tab}"
    click('[data-focus="analyse"]')
    wait(".candidates")
    yield "candidates"
    for button, name in (("share", "share"), ("flag", "resign")):
        click(f'[data-focus="action-{button}"]')
        wait("dialog[open]")
        yield name
        if name == "share":
            press("Escape")
    click("dialog .danger")
    wait(".result:not([hidden])")
    yield "result"
    click('[data-focus="review"]')
    wait(".accuracy")
    yield "review"


def other_games(page: Page, server: Server) -> Iterator[str]:
    wait, press = page.page.wait_for_selector, page.page.keyboard.press
    page.start("santorini", [HUMAN, ENGINE])
    press("l")
    press("Enter")
    yield "santorini, move"
    for key in ("ArrowUp", "ArrowRight"):
        for _ in range(4):
            press(key)
    press("Enter")  # a corner, which no worker reaches
    wait(".note.bad")
    yield "santorini, refused"
    page.start("triominos", [HUMAN, ENGINE], players=2, game="target")
    for _ in range(2):
        play(page, move_by_keyboard, most=1)
        page.wait_for_turn()
        yield "triominos"
    page.page.click("#tab-rounds")
    yield "triominos, rounds"
    created = server.create("classic_2", {}, [HUMAN, ADA])
    with server.player(created, 1) as other:
        page.open(created["paths"][0])
        wait(".board svg")
        yield "classic_2"
        play(page, move_by_keyboard, most=1)
        other.wait(lambda state: state["legal"])
        other.move_at_random(random.Random(1))
        page.wait_for_turn()
        other.ask({"type": "undo"})
        wait(".requests .bar")
        yield "a request"
    created = server.create("duo", {}, [HUMAN, {"kind": "open"}])
    for who, path in (("a player", created["paths"][0]), ("a spectator", f"/game/{created['id']}")):
        page.open(path)
        wait(".board svg")
        yield f"an open seat, {who}"


def positions(page: Page, server: Server) -> Iterator[str]:
    for game in ("classic_2", "santorini", "triominos"):
        page.open(f"/editor?game={game}").page.wait_for_selector(".board svg")
        yield f"editor, {game}"
    page.page.click('[data-focus="editor-text"]')
    yield "editor, text"


def puzzles(page: Page, server: Server) -> Iterator[str]:
    for game in ("santorini", "duo_official"):
        page.open(f"/puzzle/{game}/1").page.wait_for_selector(".board svg")
        yield f"puzzle, {game}"
        page.page.click('[data-focus="action-bulb"]')
        page.page.wait_for_selector('[data-focus="next-puzzle"]')
        yield f"solution, {game}"


def studies(page: Page, server: Server) -> Iterator[str]:
    click, wait = page.page.click, page.page.wait_for_selector
    created = server.create("santorini", {"size": 3}, [HUMAN, ADA])
    with server.player(created, 0) as first, server.player(created, 1) as second:
        play_out([first, second], random.Random(0))
    page.open(f"/game/{created['id']}?move=2")
    click('[data-focus="action-open"]')
    wait(".study-notes")
    click('[data-focus="action-open"]')
    wait('[data-focus="opponent"]')
    yield "playing on"
    click("#tab-explorer")
    wait(".explorer .caption")
    yield "explorer"
    click('[data-focus="action-share"]')
    wait("dialog[open]")
    yield "share a study"
    for path, part in (("/study", "h1"), ("/dashboard", "figcaption"), ("/game/nothing", ".notice"), ("/nothing", ".notice")):
        page.open(path)
        wait(part)
        yield path
    page.errors.clear()  # Chromium logs the status of the last addresses


def left_over(text: str) -> str | None:
    """Return the untranslated rest of a text in the language of ``pseudo``; ``None`` if it is translated."""
    while text != (text := re.sub(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}", "", text)):
        pass
    return text if re.search(r"[^\W\d_]{3}", re.sub(NAMES, "", text)) else None


def pseudo() -> str:
    """A language whose texts are the English ones in quotation marks."""
    parts = {"texts": texts(), "messages": messages()}
    entries = {part: {key: f"{OPEN}{key}{CLOSE}" for key in keys} for part, keys in parts.items()}
    return json.dumps({"language": "Deutsch", **entries})


def test_no_english_text_is_left(open_page: Any, server: Server) -> None:
    page = open_page(locale="de-DE")
    page.page.route("**/languages/de.json", lambda route: route.fulfill(body=pseudo(), content_type="application/json"))
    faults = []
    for view in tour(page, server):
        faults += [(view, rest) for text in page.page.evaluate(SHOWN) if (rest := left_over(text))]
        assert page.page.evaluate("document.documentElement.lang") == "de"
    assert faults == []


def test_german_texts_fit(open_page: Any, server: Server) -> None:
    page = open_page(locale="de-AT", has_touch=True)
    for view in tour(page, server):
        for width, height in ((375, 812), (812, 375), (1280, 800)):
            page.page.set_viewport_size({"width": width, "height": height})
            check(page, f"{view}, German")


def test_choice_of_the_language(open_page: Any) -> None:
    page = open_page(locale="fr-FR")
    page.open().page.wait_for_selector(".cards .title")
    html, title = page.page.locator("html"), page.page.locator("h1")
    assert (html.get_attribute("lang"), title.inner_text()) == ("en", "Choose a game")
    page.page.click('[data-focus="language"]')
    page.page.click('[data-language="de"]')
    page.page.wait_for_selector('html[lang="de"] h1')
    page.open().page.wait_for_selector(".cards .title")  # the browser keeps the choice
    assert (html.get_attribute("lang"), title.inner_text()) == ("de", "Wähle ein Spiel")
