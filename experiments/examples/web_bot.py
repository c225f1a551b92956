"""A bot for the game server: it takes a seat by an invite link, plays at random, and ends with the game.

    python -m experiments.examples.web_bot http://127.0.0.1:8080/game/ID#TOKEN

The interface is described in tilewe_jax/web/README.md; any language that speaks WebSockets and JSON can do this.
"""

import asyncio
import json
import random
import sys
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError


def choose(state: dict[str, Any]) -> int:
    """The id of an action: here is the place for a better idea. ``state["view"]`` has the position."""
    action = random.choice(state["legal"])
    return int(action["id"] if isinstance(action, dict) else action)


async def play(link: str) -> dict[str, Any]:
    """Play the game of an invite link; how it has ended."""
    parts = urlsplit(link)
    url = f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}/api/games/{parts.path.rsplit('/', 1)[-1]}/socket"
    async for socket in connect(url):  # again whenever the connection is lost
        try:
            await socket.send(json.dumps({"type": "join", "token": parts.fragment, "after": 0, "name": "random bot"}))
            asked = -1
            async for text in socket:
                message = json.loads(text)
                if message["type"] == "error":
                    print(message["error"], file=sys.stderr)
                elif message["type"] == "state" and message["over"]:
                    await socket.close()
                    return dict(message["over"])
                elif message["type"] == "state" and message["legal"] and message["move"] > asked:
                    asked = message["move"]
                    await socket.send(json.dumps({"type": "move", "action": choose(message), "move": asked}))
        except ConnectionClosedError:
            continue
    raise AssertionError("the loop has no end of its own")


if __name__ == "__main__":
    print(asyncio.run(play(sys.argv[1])))
