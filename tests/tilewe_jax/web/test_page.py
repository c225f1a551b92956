"""The page in Chromium: whole games, people against each other, received messages, and lost connections."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.page import HUMAN, Json, Page, Server, invitation, move_by_keyboard, move_by_mouse, play

GAMES: list[tuple[str, Json]] = [
    ("duo_official", {"size": 6}),
    ("santorini", {"size": 3}),
    ("triominos", {"players": 2, "tiles": 20}),
]
"""Small games, one for each kind of board."""
LARGER_GAMES: list[tuple[str, Json]] = [
    ("duo", {"size": 9}),
    ("classic", {"size": 10}),
    ("classic_2", {"size": 10}),
    ("tilewe", {"players": 3, "size": 8}),
    ("santorini", {"placement": "placed by the players"}),
    ("triominos", {"players": 6, "game": "rounds to a target", "target": 60}),
]


def check_whole_game(page: Page, game: str, options: Json, move: Callable[[Page, random.Random], None]) -> None:
    page.create(game, **options)
    assert page.state["game"] == game
    play(page, move)
    assert page.over
    over, view = page.state["over"], page.state["view"]
    assert over["reason"] == "finished"
    if game != "santorini":
        shown = page.page.locator(".result tbody td:nth-child(2)").all_inner_texts()
        assert sorted(int(text.replace("−", "-")) for text in shown) == sorted(over["scores"])
    if view["kind"] == "polyomino":
        assert str(view["empty"]) in page.page.locator(".result").inner_text()
        void = sum(color["void"] for color in view["colors"])
        assert sum(int(text) for text in page.page.locator(".result tbody td:nth-child(4)").all_inner_texts()) == void


def test_a_whole_game_against_the_engine(open_page: Any) -> None:
    check_whole_game(open_page(), *GAMES[0], move_by_mouse)


@pytest.mark.parametrize(("game", "options"), GAMES[1:], ids=[game for game, _ in GAMES[1:]])
def test_moves_by_mouse(open_page: Any, game: str, options: Json) -> None:
    page = open_page().start(game, **options)
    play(page, move_by_mouse, most=3)
    assert page.over or page.state["move"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("game", "options"), GAMES + LARGER_GAMES, ids=[game for game, _ in GAMES + LARGER_GAMES])
@pytest.mark.parametrize("move", [move_by_mouse, move_by_keyboard], ids=["mouse", "keyboard"])
def test_larger_games_against_the_engine(open_page: Any, game: str, options: Json, move: Any) -> None:
    check_whole_game(open_page(), game, options, move)


@pytest.mark.slow
def test_a_game_against_a_real_engine(browser: Any, tmp_path: Path) -> None:
    command = ("-m", "tilewe_jax", "serve", "--port", "{port}", "--data", str(tmp_path / "games"))
    server = Server(tmp_path, *command)
    page = Page(browser, server)
    page.page.set_default_timeout(300_000)
    try:
        page.create("santorini", size=3)
        play(page, move_by_keyboard)
        assert page.state["over"]["reason"] == "finished"
        page.page.click('[data-focus="review"]')
        page.page.wait_for_selector(".candidates")
        page.page.wait_for_selector(".analysis progress", state="detached")
        answers = [message for text in page.received if (message := json.loads(text))["type"] == "analysis"]
        assert {answer["move"] for answer in answers} == set(range(page.state["move"] + 1))
        assert {answer["agent"] for answer in answers} == {"puct:num_simulations=64"}
        (last,) = [answer for answer in answers if answer["move"] == page.state["move"]]
        assert last["value"] == page.state["over"]["returns"]
        assert page.errors == []
    finally:
        page.context.close()
        server.kill()


def test_a_page_below_a_base_path(browser: Any, tmp_path: Path) -> None:
    """Pages, requests, sockets, downloads and links that are shared stay below the base path."""
    command = ("-m", "tilewe_jax", "serve", "--engines", "0", "--port", "{port}", "--data", str(tmp_path / "games"))
    server = Server(tmp_path, *command, "--base-path", "/our/club", base_path="/our/club")
    try:
        first = Page(browser, server)
        first.create("santorini", preset="friend", size=3)
        assert first.page.url.startswith(f"{server.address}/game/")
        second = Page(browser, server)
        second.open(invitation(first)).page.wait_for_selector(".board svg")
        chance = random.Random(1)
        for number, page in enumerate((first, second, first)):
            page.wait_for_turn()
            move_by_mouse(page, chance)
            second.wait_for_move(number + 1)
        first.page.click('[data-focus="action-share"]')
        with first.page.expect_download() as download:
            first.page.click("dialog a[download$='.jsonl']")
        assert json.loads(Path(download.value.path()).read_text().splitlines()[0])["game"] == "santorini"
        shared = first.page.locator("dialog input").input_value()
        first.page.keyboard.press("Escape")
        spectator = Page(browser, server)
        spectator.open(shared.removeprefix(server.address)).page.wait_for_selector(".board svg")
        assert spectator.state["move"] == 3
        for name in ("Study", "Training", "Play"):
            spectator.page.click(f"nav >> text={name}")
            spectator.page.wait_for_selector(f"nav [aria-current=page]:has-text('{name}')")
        assert spectator.page.url == f"{server.address}/"
        spectator.open("/nowhere").page.click("text=Choose a game")
        spectator.page.wait_for_selector(".cards")
        assert first.errors == second.errors == []
        assert all("404" in error for error in spectator.errors), spectator.errors
        for page in (first, second, spectator):
            page.context.close()
    finally:
        server.kill()


# ---- People


def test_two_people_play_undo_resign_and_play_again(open_page: Any) -> None:
    first, second = open_page(), open_page()
    first.create("duo", preset="friend", size=8)
    link = invitation(first)
    second.open(link).page.wait_for_selector(".board svg")
    assert "#" not in second.page.url, "the token must not stay in the address"
    assert (first.state["you"], second.state["you"]) == (0, 1)
    first.page.wait_for_selector(".invite", state="detached")

    chance = random.Random(3)
    for page in (first, second, first):
        assert page.wait_for_turn()
        number = page.state["move"]
        move_by_mouse(page, chance)
        for each in (first, second):
            each.wait_for_move(number + 1)
    first.page.keyboard.press("u")
    second.page.click('.requests button:has-text("Agree")')
    first.wait(lambda: first.state["move"] == 2)
    first.wait_for_turn()
    move_by_keyboard(first, chance)
    second.wait_for_move(3)

    second.page.click('[data-focus="action-flag"]')
    second.page.click("dialog .danger")
    for page in (first, second):
        page.page.wait_for_selector(".result:not([hidden])")
    assert "You win" in first.page.locator(".result").inner_text()
    first.page.click('[data-focus="rematch"]')
    first.wait(lambda: first.state["id"] not in link)
    second.page.click('[data-focus="rematch"]')
    second.wait(lambda: second.state["id"] == first.state["id"])
    assert (first.state["you"], second.state["you"]) == (1, 0)


def test_anyone_takes_an_open_seat_from_the_lobby(open_page: Any, server: Server) -> None:
    created = server.create("santorini", {"size": 4}, [HUMAN, {"kind": "open"}])
    with server.player(created, 0) as first:
        page = open_page().open()
        page.page.click(f'[data-focus="join-{created["id"]}"]')
        page.page.wait_for_selector(".board svg")
        assert page.state["you"] == 1
        first.wait(lambda state: state["seats"][1]["kind"] == "human")


def test_two_people_play_at_one_screen(open_page: Any) -> None:
    page = open_page()
    page.create("santorini", preset="here", size=3)
    chance = random.Random(2)
    for number in range(3):
        page.wait(lambda number=number: page.state["you"] == page.state["view"]["current_player"] == number % 2)
        page.page.wait_for_selector(f".your-turn:has-text('Player {number % 2 + 1}')")
        move_by_mouse(page, chance)
        page.wait_for_move(number + 1)
    page.page.keyboard.press("u")
    page.wait(lambda: page.state["move"] == 2 and page.state["undo"] is None)
    page.wait(lambda: page.state["you"] == 0)
    page.page.click('[data-focus="action-flag"]')
    page.page.click("dialog .danger")
    page.page.wait_for_selector(".result h2:has-text('Player')")
    page.page.click('[data-focus="rematch"]')
    page.wait(lambda: page.state["move"] == 0)
    page.page.wait_for_selector(".your-turn:has-text('Player 1')")


def test_a_page_never_receives_the_tray_of_another_player(open_page: Any, server: Server) -> None:
    """The messages and the HTML of a page name no tile that the other player has."""
    page = open_page().start("triominos", [HUMAN, HUMAN], tiles=56)
    chance = random.Random(5)
    with server.player(page.game, 1) as other:
        states = [other.state]
        for number in range(12):
            if page.state["view"]["current_player"] == 0:
                assert page.wait_for_turn()
                move_by_mouse(page, chance)
            else:
                other.wait(lambda state: state["legal"])
                other.move_at_random(chance)
            page.wait_for_move(number + 1)
            states.append(other.wait_for_move(number + 1))
        trays = {state["move"]: state["view"]["trays"][1] for state in states}
        compared = 0
        for text in page.received:
            message = json.loads(text)
            if message["type"] == "state":
                assert isinstance(message["view"]["trays"][1], int)
                assert not [tile for tile in trays[message["move"]] if f'"{tile}' in text]
                compared += 1
        assert compared >= 12
        assert page.page.locator(".small-tray .back").count() == page.state["view"]["trays"][1] > 0
        assert not [tile for tile in trays[12] if f'data-tile="{tile}"' in page.page.content()]


def test_an_invited_friend_enters_a_name(open_page: Any, server: Server) -> None:
    created, later = (server.create("santorini", {"size": 3}, [HUMAN, HUMAN]) for _ in range(2))
    with server.player(created, 0) as first, server.player(later, 0) as third:
        page = open_page().open(created["paths"][1])
        page.page.wait_for_selector(".name-bar")
        page.page.fill(".name-bar input", "Grace")
        page.page.keyboard.press("Enter")
        first.wait(lambda state: state["seats"][1]["name"] == "Grace")
        page.page.wait_for_selector(".name-bar", state="detached")
        page.open(later["paths"][1])
        third.wait(lambda state: state["seats"][1]["name"] == "Grace")


@pytest.mark.parametrize("reason", ["resignation", "time"])
def test_the_result_names_the_winners_of_a_game_that_was_given_up(open_page: Any, server: Server, reason: str) -> None:
    """The player who resigned or lost on time is last in the table, whatever the points."""
    seats = [{"kind": "human", "name": name} for name in ("Ada", "Bo", "Cy")]
    clock = {"seconds": 1, "increment": 0} if reason == "time" else None
    created = server.create("tilewe", {"players": 3, "size": 8}, seats, clock=clock)
    page = open_page().open(created["paths"][2])
    page.page.wait_for_selector(".board svg")
    with server.player(created, 0) as leader:
        leader.move_at_random(random.Random(1))
        if reason == "resignation":
            leader.ask({"type": "resign"})
    loser = 0 if reason == "resignation" else 1
    page.page.wait_for_selector(".result:not([hidden])")
    over = page.state["over"]
    assert (over["reason"], over["seat"]) == (reason, loser)
    names = ["Ada", "Bo", "You"]
    assert page.page.locator(".result tbody tr").last.locator("td").first.inner_text() == names[loser]
    winners = {names[seat] for seat, value in enumerate(over["returns"]) if value == max(over["returns"])}
    assert set(page.page.locator(".result tr.winner td:first-child").all_inner_texts()) == winners
    assert page.page.locator(".player.to-move").count() == 0
    page.page.keyboard.press(",")
    page.page.wait_for_selector(".player.winner")
    assert set(page.page.locator(".player.winner .name").all_inner_texts()) == winners


def test_the_lobby_lists_own_games(open_page: Any) -> None:
    """An unlisted game too, with the seat to move; finished games are folded."""
    page = open_page()
    page.open().page.click('[data-game="santorini"]')
    page.page.click('[data-focus="preset-friend"]')
    page.page.click('[data-focus="more"]')
    page.page.locator("label.switch input").last.uncheck()
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector(".board svg")
    game = page.state["id"]
    page.open().page.wait_for_selector(f'[data-focus="own-{game}"]:has-text("Your turn")')
    stranger = open_page()
    stranger.open().page.wait_for_selector(".lists h2")
    assert game not in stranger.page.content()
    page.page.click(f'[data-focus="own-{game}"]')
    page.page.click('[data-focus="action-flag"]')
    page.page.click("dialog .danger")
    page.page.wait_for_selector(".result:not([hidden])")
    page.open().page.click('[data-focus="finished"]')
    page.page.click(f'details [data-focus="own-{game}"]:has-text("View")')
    page.page.wait_for_selector(".result:not([hidden])")


# ---- Errors


def test_the_page_reconnects_after_a_crash_of_the_server(browser: Any, tmp_path: Path) -> None:
    """Clocks stop without a connection. After the restart the game continues from its last move."""
    server = Server(tmp_path)
    page = Page(browser, server)
    try:
        created = server.create("duo_official", {"size": 8}, [HUMAN, HUMAN], clock={"seconds": 60, "increment": 1})
        with server.player(created, 0) as first:
            page.open(created["paths"][1]).page.wait_for_selector(".clock")
            first.move_at_random(random.Random(1))
        page.page.wait_for_selector(".clock.running")
        server.kill()
        page.page.wait_for_selector(".connection")
        page.page.wait_for_function("() => document.querySelectorAll('.clock.stopped').length === 2")
        assert page.page.locator(".clock.running").count() == 0
        texts = page.page.evaluate(
            """async () => {  // over many frames, while the page tries to connect
              const seen = new Set();
              for (let tick = 0; tick < 60; tick++) {
                await new Promise(requestAnimationFrame);
                seen.add([...document.querySelectorAll(".clock")].map((each) => each.textContent).join());
              }
              return [...seen];
            }"""
        )
        assert len(texts) == 1
        server.start()
        page.page.wait_for_selector(".clock.running")
        page.page.wait_for_selector(".connection", state="detached")
        page.page.click("#tab-moves")
        assert page.page.locator(".move").count() == page.state["move"] == 1
        move_by_keyboard(page, random.Random(1))
        assert [error for error in page.errors if "WebSocket" not in error and "ERR_CONNECTION" not in error] == []
    finally:
        page.context.close()
        server.kill()


def test_wrong_tokens(open_page: Any) -> None:
    """A wrong token does not replace the right one of this browser; without a right one the user may watch."""
    page = open_page().start("duo_official", size=8)
    wrong = f"/game/{page.game['id']}#{'x' * 32}"
    other = open_page(page.context)
    other.open(wrong).page.wait_for_selector(".your-turn")
    assert other.state["you"] == 0
    stranger = open_page()
    stranger.open(wrong).page.wait_for_selector(".notice")
    stranger.page.click(".notice button")
    stranger.page.wait_for_selector(".board svg")
    assert stranger.state["you"] is None
    assert stranger.page.locator(".place").count() == 0
    for each in (other, stranger):
        each.errors.clear()  # Chromium logs the refusals


def test_illegal_placements_are_explained(open_page: Any) -> None:
    """The explanation disappears with its position."""
    page = open_page().start("duo_official", size=8)
    page.page.locator(".board").hover(position={"x": 300, "y": 300})
    page.page.wait_for_selector(".note.bad:has-text('start cell')")
    assert page.page.locator(".board .tilewe-ghost.tilewe-bad").count()
    page.page.mouse.down()
    page.page.mouse.up()
    assert page.state["move"] == 0
    page.page.keyboard.press("l")
    page.page.wait_for_selector(".note.good")
    assert page.page.locator(".board .tilewe-ghost.tilewe-good").count()
    move_by_mouse(page, random.Random(1))
    page.wait_for_move(2)
    page.wait_for_turn()
    page.page.wait_for_selector(".note.info")
    assert page.page.locator(".note.bad").count() == 0


def test_wrong_cells_of_santorini_are_explained(open_page: Any) -> None:
    page = open_page().start("santorini", size=3)
    page.wait_for_turn()
    cells = ([x, y] for x in range(3) for y in range(3))
    page.click_cell(next(cell for cell in cells if cell not in page.state["view"]["workers"]))
    page.page.wait_for_selector(".note.bad")
    move_by_keyboard(page, random.Random(1))
    page.wait_for_move(2)
    page.wait_for_turn()
    page.page.wait_for_selector(".note.info")
    heights = ["00000", "00030", "01200", "00000", "00000"]
    position = {"heights": heights, "workers": [["c3", "a1"], ["b3", "e1"]], "current_player": 0}
    created = page.server.create("santorini", position={**position, "workers": [["c4", "a1"], ["b3", "e1"]]})
    page.open(created["paths"][0]).page.wait_for_selector(".your-turn")
    for cell, text in (([2, 3], "move to"), ([1, 2], "stands there"), ([2, 2], "not from c4 (0) to c3 (2)")):
        page.click_cell(cell)
        page.page.wait_for_selector(f".note:has-text('{text}')")
    created = page.server.create("santorini", position=position)
    page.open(created["paths"][0]).page.wait_for_selector(".your-turn")
    page.click_cell([2, 2])
    page.click_cell([3, 3])
    page.page.wait_for_selector(".result:has-text('A worker has reached the third level.')")
