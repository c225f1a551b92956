"""The page in a real browser: whole games, people against each other, what the page receives, and how it comes back."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tilewe_jax.web.page import Json, Page, Server, invitation, move_by_keyboard, move_by_mouse, play

GAMES = [
    ("duo_official", {"size": 6}),
    ("santorini", {"size": 3}),
    ("triominos", {"players": 2, "tiles": 20}),
]
"""Small games, one of every kind of board."""
MORE_GAMES = [
    ("duo_official", {}),
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
        assert f"{view['empty']} cell" in page.page.locator(".result").inner_text()
        void = sum(color["void"] for color in view["colors"])
        assert sum(int(text) for text in page.page.locator(".result tbody td:nth-child(4)").all_inner_texts()) == void


@pytest.mark.parametrize(("game", "options"), GAMES, ids=[game for game, _ in GAMES])
def test_a_whole_game_against_the_engine(open_page: Any, game: str, options: Json) -> None:
    check_whole_game(open_page(), game, options, move_by_mouse)


@pytest.mark.slow  # other tests play games of the first two kinds by keyboard, and look back at them
@pytest.mark.parametrize(("game", "options"), GAMES, ids=[game for game, _ in GAMES])
def test_a_whole_game_by_keyboard(open_page: Any, game: str, options: Json) -> None:
    check_whole_game(open_page(), game, options, move_by_keyboard)


@pytest.mark.slow
@pytest.mark.parametrize(("game", "options"), MORE_GAMES, ids=[game for game, _ in MORE_GAMES])
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


# ---- People


def test_two_people_play_undo_resign_and_play_again(open_page: Any) -> None:
    first, second, spectator = open_page(), open_page(), open_page()
    first.create("duo", preset="friend", size=8)
    link = invitation(first)
    game = link.split("#")[0]
    second.open(link).page.wait_for_selector(".board svg")
    spectator.open(game).page.wait_for_selector(".board svg")
    assert "#" not in second.page.url, "the token stays in nobody's address"
    assert (first.state["you"], second.state["you"], spectator.state["you"]) == (0, 1, None)
    first.page.wait_for_selector(".invite", state="hidden")

    chance = random.Random(3)
    for page, _ in zip([first, second] * 2, range(3), strict=False):
        assert page.wait_for_turn()
        move_by_mouse(page, chance)
        for each in (first, second, spectator):
            each.wait_for_move(page.state["move"])
    spectator.wait(lambda: spectator.page.locator(".move").count() == 3)
    assert spectator.page.locator(".place").count() == 0

    first.page.keyboard.press("u")
    second.page.click("text=Agree")
    first.wait(lambda: first.state["move"] == 2)
    first.wait_for_turn()
    move_by_keyboard(first, chance)
    second.wait_for_move(3)

    second.page.click('[data-focus="action-flag"]')
    second.page.click("dialog .danger")
    for page in (first, second, spectator):
        page.page.wait_for_selector(".result:not([hidden])")
    assert "You win" in first.page.locator(".result").inner_text()
    assert "has resigned" in first.page.locator(".result").inner_text()

    first.page.click('[data-focus="rematch"]')
    first.wait(lambda: first.state["id"] not in game)
    second.page.click("text=Join the rematch")
    second.wait(lambda: second.state["id"] == first.state["id"])
    assert (first.state["you"], second.state["you"]) == (1, 0)


def test_anyone_takes_an_open_seat_from_the_lobby(open_page: Any) -> None:
    first, second = open_page(), open_page()
    first.create("santorini", preset="open", size=4)
    second.open().page.click(f'[data-focus="join-{first.state["id"]}"]')
    second.page.wait_for_selector(".board svg")
    assert second.state["you"] == 1
    first.wait(lambda: first.state["seats"][1]["kind"] == "human")


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
    play(page, move_by_mouse, most=200)
    page.page.wait_for_selector(".result h2:has-text('Player')")
    page.page.click('[data-focus="rematch"]')
    page.wait(lambda: page.state["move"] == 0)
    page.page.wait_for_selector(".your-turn:has-text('Player 1')")


@pytest.mark.slow
def test_two_tabs_hold_one_seat(open_page: Any) -> None:
    first = open_page()
    first.create("duo_official", size=8)
    second = open_page(first.context)
    second.open(f"/game/{first.state['id']}").page.wait_for_selector(".your-turn")
    move_by_keyboard(first, random.Random(1))
    second.wait_for_turn()
    second.wait_for_move(2)
    move_by_keyboard(second, random.Random(1))
    first.wait_for_move(3)
    assert first.state["you"] == second.state["you"] == 0


def test_nobody_receives_the_tray_of_another_player(open_page: Any) -> None:
    """Whatever a page has received about a position names no tile that the other player holds then."""
    first, second = open_page(), open_page()
    first.create("triominos", preset="friend", tiles=56)
    second.open(invitation(first)).page.wait_for_selector(".board svg")
    chance = random.Random(5)
    for _ in range(16):
        mover = (first, second)[first.state["view"]["current_player"]]
        assert mover.wait_for_turn()
        number = mover.state["move"]
        move_by_mouse(mover, chance)
        for page in (first, second):
            page.wait_for_move(number + 1)
    compared = 0
    for page, other in ((first, second), (second, first)):
        trays = {state["move"]: state["view"]["trays"][other.state["you"]] for state in other.states}
        for text in page.received:
            message = json.loads(text)
            if message["type"] == "state":
                assert isinstance(message["view"]["trays"][other.state["you"]], int)
                tray = trays[message["move"]]
                assert not [tile for tile in tray if f'"{tile}' in text]
                compared += 1
    assert compared >= 32
    assert first.page.locator(".small-tray .back").count() == first.state["view"]["trays"][1] > 0
    html = first.page.content()
    assert not [tile for tile in second.state["view"]["trays"][1] if f'data-tile="{tile}"' in html]


def test_a_friend_by_a_link_is_called_by_the_name_that_was_given(open_page: Any) -> None:
    first, second = open_page(), open_page()
    first.create("santorini", preset="friend", size=3)
    assert "player 2" in first.page.locator(".invite").inner_text()
    second.open(invitation(first)).page.wait_for_selector(".name-card")
    second.page.fill(".name-card input", "Grace")
    second.page.keyboard.press("Enter")
    first.page.wait_for_selector(".player .name:has-text('Grace')")
    second.page.wait_for_selector(".name-card", state="detached")
    third = open_page()
    third.create("santorini", preset="friend", size=3)
    second.open(invitation(third)).page.wait_for_selector(".board svg")
    third.page.wait_for_selector(".player .name:has-text('Grace')")


@pytest.mark.parametrize("reason", ["resignation", "time"])
def test_the_result_and_not_the_points_says_who_has_won(open_page: Any, server: Server, reason: str) -> None:
    """Of three the leader in points gives up, or has no time left: last in the table, and nobody is to move."""
    seats = [{"kind": "human", "name": name} for name in ("Ada", "Bo", "Cy")]
    clock = {"seconds": 1, "increment": 0} if reason == "time" else None
    body = {"game": "tilewe", "options": {"players": 3, "size": 8}, "seats": seats, "clock": clock}
    pages = [open_page() for _ in seats]
    made = pages[0].context.request.post(f"{server.address}/api/games", data=body).json()
    for page, seat in zip(pages, made["seats"], strict=True):
        page.open(f"/game/{made['id']}#{seat['token']}").page.wait_for_selector(".board svg")
    move_by_keyboard(pages[0], random.Random(1))
    if reason == "resignation":
        pages[0].page.click('[data-focus="action-flag"]')
        pages[0].page.click("dialog .danger")
    loser = 0 if reason == "resignation" else 1
    page = pages[2]
    page.page.wait_for_selector(".result:not([hidden])")
    over = page.state["over"]
    assert (over["reason"], over["seat"]) == (reason, loser)
    names = ["Ada", "Bo", "You"]
    rows = page.page.locator(".result tbody tr")
    assert rows.last.locator("td").first.inner_text() == names[loser]
    winners = {names[seat] for seat, value in enumerate(over["returns"]) if value == max(over["returns"])}
    assert set(page.page.locator(".result tr.winner td:first-child").all_inner_texts()) == winners
    assert page.page.locator(".player.to-move").count() == 0
    page.page.keyboard.press(",")
    page.page.wait_for_selector(".player.winner")
    shown = page.page.locator(".player.winner .name").all_inner_texts()
    assert set(shown) == winners


def test_ones_own_games_are_listed_for_oneself(open_page: Any) -> None:
    """Also one that is not listed for others, and until it is over."""
    page = open_page()
    page.open().page.click('[data-game="santorini"]')
    page.page.click('[data-focus="preset-friend"]')
    page.page.click('[data-focus="more"]')
    page.page.locator("label.switch:has-text('Listed') input").uncheck()
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector(".board svg")
    game, link = page.state["id"], invitation(page)
    friend = open_page()
    friend.open(link).page.wait_for_selector(".board svg")
    for each in (page, friend):
        each.open().page.wait_for_selector(f'[data-focus="own-{game}"]')
    stranger = open_page()
    stranger.open().page.wait_for_selector("h2:has-text('Open games')")
    assert game not in stranger.page.content()
    page.page.click(f'[data-focus="own-{game}"]')
    page.page.click('[data-focus="action-flag"]')
    page.page.click("dialog .danger")
    page.page.wait_for_selector(".result:not([hidden])")
    page.open().page.wait_for_selector("h2:has-text('Open games')")
    assert page.page.locator(f'[data-focus="own-{game}"]').count() == 0


# ---- When things go wrong


def test_clocks_stand_still_without_a_connection(browser: Any, tmp_path: Path) -> None:
    server = Server(tmp_path)
    page, other = Page(browser, server), Page(browser, server)
    try:
        page.open().page.click('[data-game="duo_official"]')
        page.page.click('[data-focus="preset-friend"]')
        page.page.click('[data-focus="more"]')
        page.page.locator('[data-focus="clock"]').select_option(index=1)
        page.page.click('[data-focus="start"]')
        page.page.wait_for_selector(".clock")
        other.open(invitation(page)).page.wait_for_selector(".clock")
        move_by_keyboard(page, random.Random(1))
        other.page.wait_for_selector(".clock.running")
        server.kill()
        other.page.wait_for_selector(".connection:has-text('lost')")
        assert other.page.locator(".clock.running").count() == 0
        assert other.page.locator(".clock.stopped").count() == 2
        texts = other.page.evaluate(
            """async () => {  // over many frames, while the page tries to connect
              const seen = new Set();
              for (let tick = 0; tick < 90; tick++) {
                await new Promise(requestAnimationFrame);
                seen.add([...document.querySelectorAll(".clock")].map((each) => each.textContent).join());
              }
              return [...seen];
            }"""
        )
        assert len(texts) == 1
        server.start()
        other.page.wait_for_selector(".clock.running")
        other.page.wait_for_selector(".connection", state="detached")
    finally:
        page.context.close()
        other.context.close()
        server.kill()


def test_the_page_comes_back_after_the_server_was_killed(browser: Any, tmp_path: Path) -> None:
    server = Server(tmp_path)
    page = Page(browser, server)
    try:
        page.create("duo_official", size=8)
        move_by_keyboard(page, random.Random(1))
        page.wait_for_turn()
        number = page.state["move"]
        server.kill()
        page.page.wait_for_selector(".connection")
        server.start()
        page.page.wait_for_selector(".connection", state="detached")
        assert page.state["move"] == number
        assert page.page.locator(".move").count() == number
        move_by_keyboard(page, random.Random(1))
        assert page.wait_for_turn()
        assert [error for error in page.errors if "WebSocket" not in error and "ERR_CONNECTION" not in error] == []
    finally:
        page.context.close()
        server.kill()


@pytest.mark.slow
def test_a_wrong_token_is_refused_and_the_game_can_be_watched(open_page: Any) -> None:
    page = open_page()
    page.create("duo_official", size=8)
    stranger = open_page()
    stranger.open(f"/game/{page.state['id']}#{'x' * 32}")
    stranger.page.wait_for_selector(".notice")
    stranger.page.click("text=Watch instead")
    stranger.page.wait_for_selector(".board svg")
    assert stranger.state["you"] is None
    stranger.errors.clear()  # a refusal is in the console


def test_a_wrong_invitation_takes_no_seat_away(open_page: Any) -> None:
    page = open_page()
    page.create("duo_official", size=8)
    other = open_page(page.context)
    other.open(f"/game/{page.state['id']}#{'x' * 32}").page.wait_for_selector(".your-turn")
    assert other.state["you"] == 0
    other.errors.clear()  # a refusal is in the console


def test_what_the_rules_forbid_is_said_in_words(open_page: Any) -> None:
    page = open_page()
    page.create("duo_official", size=8)
    page.page.locator(".board").hover(position={"x": 300, "y": 300})
    page.page.wait_for_selector(".note.bad:has-text('start cell')")
    assert page.page.locator(".tilewe-ghost.tilewe-bad").count()
    page.page.mouse.down()
    page.page.mouse.up()
    assert page.state["move"] == 0
    page.page.keyboard.press("l")
    page.page.wait_for_selector(".note.good")
    assert page.page.locator(".tilewe-ghost.tilewe-good").count()


@pytest.mark.parametrize("game", ["duo_official", "santorini"])
def test_what_was_refused_is_forgotten_with_its_position(open_page: Any, game: str) -> None:
    """A reason belongs to one position: after the next moves it is not said any more."""
    page = open_page()
    page.create(game, **({"size": 8} if game == "duo_official" else {"size": 3}))
    page.wait_for_turn()
    if game == "duo_official":
        move_by_mouse(page, random.Random(1))
    else:
        page.click_cell(
            next(cell for cell in ([x, y] for x in range(3) for y in range(3)) if cell not in page.state["view"]["workers"])
        )
        page.page.wait_for_selector(".note.bad")
        move_by_keyboard(page, random.Random(1))
    page.wait_for_move(2)
    page.wait_for_turn()
    page.page.wait_for_selector(".note.info")
    assert page.page.locator(".note.bad").count() == 0
