"""Helpers of the page tests: a server process, pages that record their messages, and moves by mouse and keyboard."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from tests.tilewe_jax.web.support import Player

Json = dict[str, Any]
TIMEOUT = 60_000
"""Time limit for expected events, in milliseconds."""
ENGINE = {"kind": "engine", "agent": "level:1"}
HUMAN = {"kind": "human"}


class Server:
    """A server process, which can be killed and restarted."""

    def __init__(self, folder: Path, *command: str, base_path: str = "") -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"http://localhost:{self.port}{base_path}"
        self.folder = folder
        self.command = command
        self.start()

    def start(self) -> None:
        default = ("-m", "tests.tilewe_jax.web.page_server", "{port}", str(self.folder / "games"), str(self.folder))
        command = [sys.executable, *(part.format(port=self.port) for part in self.command or default)]
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

    def create(self, game: str, options: Json | None = None, seats: Sequence[Json] = (HUMAN, ENGINE), **more: Any) -> Json:
        """Create a game through the API; return its id, and its paths with a token by seat."""
        body = json.dumps({"game": game, "options": options or {}, "seats": seats, **more}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.address}/api/games", body)) as response:
            created = json.load(response)
        tokens = {seat["seat"]: seat["token"] for seat in created["seats"]}
        paths = {seat: f"/game/{created['id']}#{token}" for seat, token in tokens.items()}
        return {"id": created["id"], "tokens": tokens, "paths": paths}

    @contextlib.contextmanager
    def player(self, game: Json, seat: int) -> Iterator[Player]:
        """A client without a page."""
        with connect(f"ws://127.0.0.1:{self.port}/api/games/{game['id']}/socket", max_size=None) as socket:
            yield Player(_Socket(socket), game["tokens"][seat])


class _Socket:
    """The methods of Starlette's test client on a real WebSocket."""

    def __init__(self, socket: Any) -> None:
        self.send_text, self.receive_text = socket.send, partial(socket.recv, timeout=TIMEOUT / 1000)


class Page:
    """A page in a separate browser context, with its received messages and its errors."""

    def __init__(self, browser: Any, server: Server, context: Any = None, **settings: Any) -> None:
        self.server = server
        settings.setdefault("viewport", {"width": 1280, "height": 860})
        self.context = context or browser.new_context(reduced_motion="reduce", **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(TIMEOUT)
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
        """The last state that the page received."""
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
        """Create a game with the form of the lobby; options are given as the form shows them."""
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

    def start(self, game: str, /, seats: Sequence[Json] = (HUMAN, ENGINE), **options: Any) -> "Page":
        """Create a game through the API and open it at seat 0."""
        self.game = self.server.create(game, options, seats)
        self.open(self.game["paths"][0]).page.wait_for_selector(".board svg")
        return self

    def wait_for_turn(self) -> bool:
        """Wait until the user may move; return False if the game is over."""
        self.page.wait_for_selector(".your-turn, .result:not([hidden]) h2")
        return not self.over

    def wait_for_move(self, number: int) -> None:
        self.wait(lambda: self.states and self.state["move"] >= number)

    def wait(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + TIMEOUT / 1000
        while not condition():
            assert time.monotonic() < deadline, "timeout"
            self.page.wait_for_timeout(10)

    def fits(self) -> bool:
        """Return whether the page is not wider than its window. On phones ``innerWidth`` grows with too wide elements."""
        width = self.page.viewport_size["width"]
        return bool(self.page.evaluate("width => document.documentElement.scrollWidth <= width", width))

    def check_installable(self) -> None:
        """Assert that Chromium offers to install the page."""
        devtools = self.context.new_cdp_session(self.page)
        manifest = devtools.send("Page.getAppManifest")
        assert manifest["url"].endswith("/static/manifest.json")
        assert manifest["errors"] == []
        errors = devtools.send("Page.getInstallabilityErrors")["installabilityErrors"]
        # Pages of tests are in separate contexts, where nothing is installed.
        assert {error["errorId"] for error in errors} <= {"in-incognito"}

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
        """Move the mouse over a cell marked as legal, located in one step because the board may be redrawn any time."""
        middle = self.page.wait_for_function(
            """cell => {
              const shown = document.querySelector(`.board .tilewe-legal[data-cell="${cell}"]`)?.getBoundingClientRect();
              return shown?.width && [shown.x + shown.width / 2, shown.y + shown.height / 2];
            }""",
            arg=f"{cell[0]},{cell[1]}",
        )
        self.page.mouse.move(*middle.json_value())


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
        # Random passes would end the round too early.
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
    """Choose a piece in the tray, turn it with the buttons, and click its place."""
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
    """Make a legal move by keyboard: find a place for a piece or tile; otherwise draw or pass."""
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
    """Play until the end, or ``most`` moves of the user."""
    chance = random.Random(seed)
    for _ in range(most):
        if not page.wait_for_turn():
            return
        number = page.state["move"]
        move(page, chance)
        page.wait_for_move(number + 1)


def invitation(page: Page) -> str:
    address: str = page.page.locator(".invite input").input_value()
    return address.removeprefix(page.server.address)


def middle(locator: Any) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
