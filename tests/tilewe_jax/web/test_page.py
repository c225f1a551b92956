"""The page in a real browser: whole games by mouse and by keyboard, what it receives, and how it comes back."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("there is no browser", allow_module_level=True)

Json = dict[str, Any]
SLOWEST = 60_000
"""Milliseconds after which what should happen has not."""


# ---- A server, a browser, and pages that listen


class Server:
    """A server in a process of its own, which can be killed and started again."""

    def __init__(self, folder: Path, *command: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"http://localhost:{self.port}"
        self.folder = folder
        self.command = command
        self.start()

    def start(self) -> None:
        own = ("-m", "tests.tilewe_jax.web.page_server", "{port}", str(self.folder / "games"), str(self.folder))
        command = [sys.executable, *(part.format(port=self.port) for part in self.command or own)]
        self.process = subprocess.Popen(command, cwd=Path(__file__).parents[3], start_new_session=True)
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/api/catalog").close()
                return
            except (urllib.error.URLError, ConnectionError):
                assert self.process.poll() is None, "the server has ended"
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.05)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    run = folder / "some-run"
    run.mkdir()
    rows = [{"iteration": i, "policy_loss": 2 / i, "returns": [i, -i], "table": [[1], [2]]} for i in range(1, 9)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "config.json").write_text(json.dumps({"game": {"id": "duo"}, "iterations": 8}))
    server = Server(folder)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Page:
    """A page in a browser of its own, with all that it has received and complained about."""

    def __init__(self, browser: Any, server: Server, context: Any = None, **settings: Any) -> None:
        self.server = server
        settings.setdefault("viewport", {"width": 1280, "height": 860})
        self.context = context or browser.new_context(reduced_motion="reduce", **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(SLOWEST)
        self.errors: list[str] = []
        self.received: list[str] = []
        self.states: list[Json] = []
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("websocket", lambda opened: opened.on("framereceived", self._receive))
        self.page.on("response", self._answered)

    def _receive(self, text: str) -> None:
        self.received.append(text)
        message = json.loads(text)
        if message["type"] == "state":
            self.states.append(message)

    def _answered(self, response: Any) -> None:
        assert response.url.startswith((self.server.address, "blob:", "data:")), response.url

    @property
    def state(self) -> Json:
        """The state that the page was told last."""
        return self.states[-1]

    @property
    def your_turn(self) -> bool:
        return self.page.locator(".your-turn").count() > 0

    @property
    def over(self) -> bool:
        return self.page.locator(".result:not([hidden]) h2").count() > 0

    def open(self, path: str = "/") -> "Page":
        self.page.goto(self.server.address + path)
        return self

    def create(self, game: str, /, preset: str = "engine", **options: Any) -> "Page":
        """Begin a game in the lobby."""
        page = self.open().page
        page.click(f'[data-game="{game}"]')
        if preset != "engine" or game != "tilewe":
            page.click(f'[data-focus="preset-{preset}"]')
        for name, value in options.items():
            field = page.locator(f'[data-focus="option-{name}"]')
            if name != "players" and not page.locator("details.more").evaluate("element => element.open"):
                page.click('[data-focus="more"]')
            if isinstance(value, bool):
                field.set_checked(value)
            elif isinstance(value, int):
                if field.evaluate("element => element.localName") == "select":
                    field.select_option(label=str(value))
                else:
                    field.fill(str(value))
                    field.press("Tab")
            else:
                field.select_option(label=value)
        page.click('[data-focus="start"]')
        page.wait_for_selector(".board svg")
        return self

    def wait_for_turn(self) -> bool:
        """Wait until the user may move; False where the game is over."""
        self.page.wait_for_selector(".your-turn, .result:not([hidden]) h2")
        return not self.over

    def wait_for_move(self, number: int) -> None:
        self.wait(lambda: self.states and self.state["move"] >= number)

    def wait(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + SLOWEST / 1000
        while not condition():
            assert time.monotonic() < deadline, "it does not happen"
            self.page.wait_for_timeout(10)

    def fits(self) -> bool:
        """Whether nothing is cut off at the right."""
        return bool(self.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"))

    def click_cell(self, cell: list[int]) -> None:
        x, y = self.page.evaluate(
            """([x, y]) => {
              const svg = document.querySelector(".board svg");
              const size = Number(svg.closest(".board").dataset.size);
              const side = Math.floor(600 / size);
              const point = new DOMPoint(28 + (x + 0.5) * side, 8 + (size - 1 - y + 0.5) * side);
              const shown = point.matrixTransform(svg.getScreenCTM());
              return [shown.x, shown.y];
            }""",
            cell,
        )
        self.page.mouse.click(x, y)

    def hover_legal(self, cell: list[int]) -> None:
        """Move the mouse over a cell that is shown as legal.

        ``Page.hover`` finds the element and its place in two steps, between which the board may be drawn anew.
        """
        middle = self.page.wait_for_function(
            """cell => {
              const shown = document.querySelector(`.board .tilewe-legal[data-cell="${cell}"]`)?.getBoundingClientRect();
              return shown?.width && [shown.x + shown.width / 2, shown.y + shown.height / 2];
            }""",
            arg=f"{cell[0]},{cell[1]}",
        )
        self.page.mouse.move(*middle.json_value())


@pytest.fixture
def open_page(browser: Any, server: Server) -> Iterator[Callable[..., Page]]:
    """Makes pages, of which none may have complained in the end."""
    pages: list[Page] = []

    def make(context: Any = None, **settings: Any) -> Page:
        pages.append(Page(browser, server, context, **settings))
        return pages[-1]

    yield make
    errors = [error for page in pages for error in page.errors]
    for page in pages:
        page.context.close()
    assert errors == []


# ---- Moves by mouse and by keyboard


def move_by_mouse(page: Page, chance: random.Random) -> None:
    """Make a random legal move by mouse alone."""
    state = page.state
    kind = state["view"]["kind"]
    if kind == "polyomino":
        first = next(message for message in page.states if "orientations" in message)
        orientations = {each["id"]: each for each in first["orientations"]}
        size = state["view"]["size"]
        action = chance.choice([action for action in state["legal"] if action < size * size * (1 + max(orientations))])
        place_by_mouse(page, orientations[action // size**2], [action % size**2 % size, action % size**2 // size])
    elif kind == "santorini":
        move = chance.choice(state["legal"])
        for cell in [move["to"]] if move["kind"] == "place" else [move["from"], move["to"], move["build"]]:
            page.click_cell(cell)
    else:
        # Who passes at random, and twice in a row, ends the round before anything was seen.
        move = chance.choice([move for move in state["legal"] if move["kind"] != "pass"] or state["legal"])
        if move["kind"] != "place":
            page.page.click(f'[data-focus="tool-{move["kind"]}"]')
            return
        page.page.click(f'[data-tile="{move["tile"]}"]')
        page.hover_legal(move["cell"])
        for _ in range(3):
            if page.page.locator(".note.good").count():
                break
            page.page.keyboard.press("r")
        page.page.mouse.down()
        page.page.mouse.up()


def place_by_mouse(page: Page, orientation: Json, corner: list[int]) -> None:
    """Choose a piece in the tray, turn it with the buttons, and click where it lies."""
    page.page.click(f'.tray.current [data-piece="{orientation["piece"]}"]')
    tools = page.page.locator(".tools")
    for turn in ("right", "right", "right", "flip", "right", "right", "right"):
        if tools.get_attribute("data-orientation") == orientation["name"]:
            break
        page.page.click(f'[data-focus="tool-{turn}"]')
    assert tools.get_attribute("data-orientation") == orientation["name"]
    width, height = (1 + max(cell[axis] for cell in orientation["cells"]) for axis in (0, 1))
    page.click_cell([corner[0] + (width - 1) // 2, corner[1] + height // 2])


def move_by_keyboard(page: Page, chance: random.Random) -> None:
    """Make a legal move by keyboard alone: look for a place for this piece or tile, then for another one; draw or pass."""
    keyboard, number = page.page.keyboard, page.state["move"]
    if page.state["view"]["kind"] == "santorini":
        for _ in range(1 if page.state["view"]["placing"] else 3):
            for _ in range(chance.randrange(1, 4)):
                keyboard.press("l")
            keyboard.press("Enter")
        page.wait_for_move(number + 1)
        return
    for _ in range(25):
        keyboard.press("l")
        if page.page.locator(".note.good").count():
            keyboard.press("Enter")
            break
        if page.state["view"]["kind"] == "triominos":
            words = [move["kind"] for move in page.state["legal"] if move["kind"] != "place"]
            if words:
                keyboard.press({"draw": "d", "pass": "x"}[words[0]])
                break
        keyboard.press("n")
    page.wait_for_move(number + 1)


def play(page: Page, move: Callable[[Page, random.Random], None], seed: int = 1, most: int = 400) -> None:
    """Play until the end, or so many moves of the user's."""
    chance = random.Random(seed)
    for _ in range(most):
        if not page.wait_for_turn():
            return
        number = page.state["move"]
        move(page, chance)
        page.wait_for_move(number + 1)


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
        assert page.errors == []
    finally:
        page.context.close()
        server.kill()


# ---- People


def invitation(page: Page) -> str:
    address: str = page.page.locator(".invite input").input_value()
    return address.removeprefix(page.server.address)


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


# ---- When things go wrong


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


def test_from_the_lobby_to_the_first_moves_by_keyboard_alone(open_page: Any) -> None:
    """Nothing is clicked, and what happens is said to screen readers."""
    page = open_page()
    page.context.add_init_script(
        """
        window.said = [];
        addEventListener("DOMContentLoaded", () => {
          const live = document.getElementById("live");
          new MutationObserver(() => window.said.push(live.textContent)).observe(live, {childList: true});
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
        raise AssertionError(f"{selector} is not reached")

    def was_said(text: str) -> None:
        page.page.wait_for_function("text => window.said.some(said => said.includes(text))", arg=text)

    tab_to('[role="radio"].game')
    while not page.page.locator('[data-game="santorini"]:focus').count():
        keyboard.press("ArrowRight")
    tab_to('[data-focus="start"]')
    keyboard.press("Enter")
    page.page.wait_for_selector(".your-turn")
    keyboard.press("ArrowUp")
    was_said("level 0")
    move_by_keyboard(page, random.Random(1))
    was_said("Engine moves from")
    assert page.page.locator(".board:focus").count()
    keyboard.press("v")
    was_said("workers")


def test_touch_places_with_the_button(open_page: Any) -> None:
    page = open_page(viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.create("duo_official", size=8)
    page.page.locator(".board").tap(position={"x": 150, "y": 150})
    assert page.state["move"] == 0
    page.page.keyboard.press("l")  # where it fits
    page.page.locator(".tools .place").tap()
    page.wait_for_move(2)


def test_a_dragged_piece_lies_above_the_finger(open_page: Any) -> None:
    page = open_page(viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.create("duo_official", size=8)
    box = page.page.locator(".board").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page.page)

    def send(kind: str, *points: tuple[float, float]) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    def lowest() -> float:
        bottom: float = page.page.evaluate("() => document.querySelector('.tilewe-ghost')?.getBoundingClientRect().bottom ?? 0")
        return bottom

    page.wait_for_turn()
    send("touchStart", (x, y))
    for step in range(1, 6):
        send("touchMove", (x + 4 * step, y))
    page.wait(lambda: 0 < lowest() < y - box["height"] / 9 / 2)
    send("touchEnd")
    assert page.state["move"] == 0


def test_options_that_do_not_go_together(open_page: Any) -> None:
    """What the server says of them stays beside them until one of them is changed."""
    page = open_page().open()
    page.page.click('[data-game="triominos"]')
    page.page.click('[data-focus="more"]')
    page.page.locator('[data-focus="option-players"]').select_option(label="3")
    page.page.locator('[data-focus="option-tiles"]').select_option(label="20")
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector(".refusal:has-text('tiles')")
    page.page.locator('[data-focus="option-tiles"]').select_option(label="56")
    page.page.wait_for_selector(".refusal", state="hidden")
    page.errors.clear()  # a refusal is in the console


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
    page.create("duo_official", size=8)
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


def middle(locator: Any) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_pass_undo_and_redo(open_page: Any) -> None:
    page = open_page()
    page.create("duo", size=8, voluntary_pass=True)
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
def test_clocks_tick(open_page: Any) -> None:
    page = open_page()
    page.open().page.click('[data-game="duo_official"]')
    page.page.click('[data-focus="preset-friend"]')
    page.page.click('[data-focus="more"]')
    page.page.locator('[data-focus="clock"]').select_option(index=1)
    page.page.click('[data-focus="start"]')
    page.page.wait_for_selector(".clock")
    other = open_page()
    other.open(invitation(page)).page.wait_for_selector(".clock")
    move_by_keyboard(page, random.Random(1))
    clock = other.page.locator(".clock").nth(1)
    assert clock.inner_text() == "1:00"
    other.wait(lambda: clock.inner_text() == "0:59")


# ---- Looking back


def test_stepping_hints_and_analysis(open_page: Any) -> None:
    page = open_page()
    page.create("duo_official", size=6)
    page.page.click('[data-focus="action-bulb"]')
    page.page.wait_for_selector(".tilewe-ghost.tilewe-good")
    play(page, move_by_keyboard)
    last = page.state["move"]
    page.page.click('[data-focus="review"]')
    page.page.wait_for_selector(".candidates")
    page.page.wait_for_selector(".progress, progress", state="detached")
    assert page.page.locator(".tilewe-heat").count() > 0
    page.page.keyboard.press("m")
    page.page.wait_for_selector(".tilewe-heat", state="detached")
    assert page.page.locator(".chart").count() == 1
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
    assert "empty cells" in page.page.locator(".board-text").inner_text()


def test_a_record_is_studied(open_page: Any, tmp_path: Path) -> None:
    page = open_page()
    page.create("santorini", size=3)
    play(page, move_by_keyboard)
    answer = page.context.request.get(f"{page.server.address}/api/games/{page.state['id']}/record?format=jsonl")
    record = tmp_path / "game.jsonl"
    record.write_bytes(answer.body())
    page.open("/study").page.set_input_files("#record-file", record)
    page.page.wait_for_selector(".board svg")
    page.page.keyboard.press("ArrowRight")
    assert page.page.locator(".timeline output").inner_text().startswith("1 /")
    page.page.click("#tab-analysis")
    page.page.click('[data-focus="analyse-all"]')
    page.page.wait_for_selector(".chart")
    address = page.page.url
    page.page.click('[data-focus="share"]')
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


def test_curves_of_a_run(open_page: Any) -> None:
    page = open_page().open("/dashboard")
    page.page.wait_for_selector("figcaption:has-text('Policy loss')")
    assert page.page.locator("figcaption:has-text('Policy loss') b").inner_text() == "0.25"
    assert page.page.locator("figcaption:has-text('Returns') b").inner_text() == "8 · -8"
    assert page.page.locator(".stat:has-text('State')").inner_text().endswith("finished")


@pytest.mark.slow
def test_games_of_self_play_are_drawn_as_they_go_on(open_page: Any) -> None:
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
    assert "300 games at once · 1 finished" in page.page.locator(".live h2").inner_text()
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


# ---- The page itself


def test_every_view_fits_a_phone(open_page: Any) -> None:
    page = open_page(viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.open().page.wait_for_selector('[data-focus="start"]')
    assert page.fits()
    for game in ("classic_2", "santorini", "triominos"):
        page.create(game)
        page.wait_for_turn()
        assert page.fits(), game
        for tab in page.page.locator(".tab").all():
            tab.click()
            assert page.fits(), game
    for path in ("/study", "/dashboard"):
        page.open(path).page.wait_for_selector("h1")
        assert page.fits(), path


def test_themes_and_help(open_page: Any) -> None:
    page = open_page(color_scheme="dark").open()
    page.page.wait_for_selector('[data-focus="start"]')

    def background() -> str:
        color: str = page.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        return color

    dark = background()
    page.page.locator("#top-tools button").first.click()
    light = background()
    assert dark != light
    page.page.locator("#top-tools button").first.click()
    assert background() == dark
    page.page.reload()
    assert background() == dark
    page.page.keyboard.press("?")
    assert page.page.locator("dialog[open] kbd").count() > 20
    page.page.keyboard.press("Escape")
    assert page.page.locator("dialog[open]").count() == 0


def test_games_of_others_are_played_by_a_list_of_moves(open_page: Any) -> None:
    """A game without a view of its own: the text of its board, and its legal moves by name."""
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
