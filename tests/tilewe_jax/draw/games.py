"""Small recorded games of every kind, for tests of pictures.

``python -m tests.tilewe_jax.draw.games`` draws the golden pictures.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.tilewe_jax.test_host_games import DEAL
from tilewe_jax.draw.pictures import draw, draw_grid
from tilewe_jax.draw.shapes import Options
from tilewe_jax.host_games import make_host_game
from tilewe_jax.replay.animation import animated_svg, frames_of
from tilewe_jax.replay.frames import caption_of
from tilewe_jax.replay.recorded import RecordedGame

GOLDEN = Path(__file__).parents[2] / "data" / "pictures"
"""The folder of the golden pictures."""
GAMES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "tilewe": ("tilewe", {"players": 3, "size": 7}, None),
    "duo": ("duo_official", {"size": 6}, None),
    "classic_2": ("classic_2", {"size": 8, "pieces": ["I2", "L3", "Z4", "W5"]}, None),
    "santorini": ("santorini", {"size": 4, "placement": "chosen"}, None),
    "triominos": ("triominos", {"tiles": 10, "tray": 3}, DEAL),
}


def recorded(name: str) -> RecordedGame:
    """Return a whole game with deterministic moves; its second player has a hostile name."""
    game_id, options, deal = GAMES[name]
    game = make_host_game(game_id, **options)
    position, actions = game.init_from_deal(deal), []
    while not position.is_terminal:
        legal = position.legal_actions()
        actions.append(legal[7919 * (len(actions) + 3) % len(legal)])
        position = position.after(actions[-1])
    names = ("Ada", "<script>&\"'</script>", "Grace")[: game.num_players]
    scores = position.scores()
    winners = scores.count(max(scores))
    returns = [(score == max(scores)) / winners for score in scores]
    return RecordedGame(game, deal, tuple(actions), names, {"scores": list(scores), "returns": returns})


def replay_of(name: str) -> dict[str, Any]:
    """Return the replay of ``recorded`` with invented analyses."""
    game = recorded(name)
    position, analyses = game.game.init_from_deal(game.deal), []
    for ply in range(len(game.actions) + 1):
        seats = game.game.num_players
        first = 0.2 + 0.6 * (7919 * ply % 100) / 100
        value = [first, *[(1 - first) / (seats - 1)] * (seats - 1)]
        legal = position.legal_actions()[:3]
        candidates = [
            {**position.action_view(action), "visits": 10 + 7 * i, "prior": 0.25, "value": value, "variation": []}
            for i, action in enumerate(legal)
        ]
        analyses.append({"value": value, "score_lead": None, "candidates": candidates})
        if ply < len(game.actions):
            position = position.after(game.actions[ply])
    return game.replay(analyses)


def heat_of(analysis: dict[str, Any]) -> list[list[Any]]:
    """Return the fraction of the visits of the candidates that cover each cell, relative to the highest."""
    heat: dict[tuple[int, int], float] = {}
    for action in analysis["candidates"]:
        cells = action.get("cells") or [action[key] for key in ("cell", "to") if key in action][:1]
        for x, y in cells:
            heat[x, y] = heat.get((x, y), 0.0) + action["visits"]
    return [[x, y, value / max(heat.values())] for (x, y), value in heat.items()]


def options_of(replay: dict[str, Any], theme: str) -> Iterator[Options]:
    """Return options with all marks for each position."""
    for move, look in enumerate(frames_of(replay, theme=theme, numbers=True)):
        view = replay["frames"][move]
        cells = [free["cell"] for free in view["frontier"]] if view["kind"] == "triominos" else [[1, 1], [2, 0]]
        yield Options(
            theme=theme,
            coordinates=move % 3 != 1,
            last=look.last,
            numbers=look.numbers if move % 2 else {},
            legal=cells[:2] if move % 2 else (),
            heat=heat_of(replay["analyses"][move]) if move % 2 else (),
            frontier=move % 3 == 0,
            bounds=look.bounds,
        )


def golden() -> Iterator[tuple[str, str]]:
    """Draw the golden pictures; yield their names and texts."""
    for name in GAMES:
        replay = replay_of(name)
        for theme in ("light", "dark"):
            for move, look in enumerate(options_of(replay, theme)):
                if move == (len(replay["frames"]) // 2 if theme == "light" else len(replay["frames"]) - 1):
                    names = replay["names"] if theme == "light" else ()
                    picture = draw(replay["frames"][move], look, names=names, caption=caption_of(replay, move))
                    yield f"{name}_{theme}.svg", picture
    frames = replay_of("santorini")["frames"][-3:] + replay_of("triominos")["frames"][-2:]
    yield "grid.svg", draw_grid(frames, captions=[f"game {i}" for i in range(5)], side=120)
    yield "animated.svg", animated_svg(replay_of("triominos"), numbers=True)
    text = {"kind": "text", "text": "a <b>\n  two  spaces"}
    yield "text.svg", draw(text, Options(theme="dark"))


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.glob("*.svg"):
        old.unlink()
    for file_name, content in golden():
        (GOLDEN / file_name).write_text(content, "utf-8")
