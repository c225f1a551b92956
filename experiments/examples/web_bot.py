"""A bot for the game server that takes a seat by an invite link and plays a game at random.

    python -m experiments.examples.web_bot 'http://127.0.0.1:8080/game/ID#TOKEN'

tilewe_jax/web/README.md describes the interface; any language with WebSockets and JSON can use it.
"""

import contextlib
import json
import random
import sys
from asyncio import run, sleep
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

MAX_DELAY = 60.0
"""Maximum delay between two attempts to connect, in seconds. The delay starts at one second and doubles."""
MAX_FAILURES = 12
"""Maximum number of consecutive failed attempts."""


class BotError(Exception):
    """The bot cannot play; the message is the reason."""


def choose(state: dict[str, Any]) -> int:
    """Return the id of a random action. Replace this by a better policy; ``state["view"]`` has the position."""
    action = random.choice(state["legal"])
    return int(action["id"] if isinstance(action, dict) else action)


async def play(link: str) -> dict[str, Any]:
    """Play the game of an invite link and return its result. Raises ``BotError``."""
    parts = urlsplit(link)
    if parts.scheme not in ("http", "https") or not parts.hostname or "/game/" not in parts.path or not parts.fragment:
        raise BotError(f"the link must be like http://127.0.0.1:8080/game/ID#TOKEN, got {link!r}; quote it in a shell")
    base, _, game = parts.path.rpartition("/game/")
    url = f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}{base}/api/games/{game}/socket"
    proxy: Literal[True] | None = None if is_loopback(parts.hostname) else True  # True: the proxy of the environment
    join = json.dumps({"type": "join", "token": parts.fragment, "after": 0, "name": "random bot"})
    may_retry, failures = False, 0
    while True:
        reason = "the server closed the connection"
        try:
            async with connect(url, proxy=proxy) as socket:
                answered = -1
                with contextlib.suppress(ConnectionClosed):
                    await socket.send(join)
                with contextlib.suppress(ConnectionClosed):
                    async for text in socket:
                        message = json.loads(text)
                        if message["type"] == "error":
                            reason = message["error"]
                            if message["field"] in ("token", "action"):  # an invalid token or an illegal action
                                raise BotError(reason)
                        elif message["type"] == "state":
                            may_retry, failures = True, 0
                            if message["over"]:
                                return dict(message["over"])
                            if message["legal"] and message["move"] > answered:
                                answered = message["move"]
                                await socket.send(json.dumps({"type": "move", "action": choose(message), "move": answered}))
                # A close code is 4000 plus the HTTP status. A retry helps for 429 (too many requests), but not for other client
                # errors, such as an unknown game.
                if 4400 <= (socket.close_code or 0) < 4429:
                    raise BotError(reason)
                may_retry = may_retry or socket.close_code == 4429
        except (OSError, ValueError, WebSocketException) as error:
            reason = str(error) or type(error).__name__
        failures += 1
        if not may_retry or failures > MAX_FAILURES:
            raise BotError(f"cannot play at {parts.netloc}: {reason}")
        delay = min(MAX_DELAY, 2.0 ** (failures - 1))
        print(f"{reason}; trying again in {delay:.0f} s", file=sys.stderr)
        await sleep(delay)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, which a proxy cannot reach."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(
            "usage: python -m experiments.examples.web_bot LINK\n\nLINK is an invite link, http://HOST/game/ID#TOKEN, in quotes"
        )
        sys.exit(len(sys.argv) != 2)
    try:
        print(run(play(sys.argv[1])))
    except BotError as error:
        sys.exit(f"web_bot: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
