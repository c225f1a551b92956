"""Replays (``tilewe_jax.replay.frames``) as animations: animated SVG, and GIF with the extra ``render``. Without JAX."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewe_jax.draw.pictures import scene, summary
from tilewe_jax.draw.shapes import Options, Scene, Svg, document, el
from tilewe_jax.replay.frames import bounds_of_rounds, caption_of, numbers_of
from tilewe_jax.utils.extras import optional_import

MAX_PIXELS = 300_000_000
"""Maximum total number of pixels of a GIF, each a byte in memory: about 1,000 positions of width 480."""


def frames_of(replay: Mapping[str, Any], *, theme: str, numbers: bool) -> list[Options]:
    """Return the options of each position of a replay: the last move is marked, and bounds are constant within a round."""
    bounds = bounds_of_rounds(replay["frames"])
    return [
        Options(
            theme=theme,
            last=replay["moves"][move - 1] if move else None,
            numbers=numbers_of(replay, move) if numbers else {},
            bounds=bounds[move],
        )
        for move in range(len(replay["frames"]))
    ]


def animated_svg(
    replay: Mapping[str, Any], *, theme: str = "light", numbers: bool = False, seconds: float = 0.8, last_seconds: float = 3.0
) -> Svg:
    """Draw a game as an SVG file that plays in a loop.

    Elements of several positions are stored once, with the times at which they are visible. Programs without support for
    animations show the last position.

    Args:
      replay: the game.
      theme: "light" or "dark".
      numbers: whether pieces show the number of their move.
      seconds: duration of each position.
      last_seconds: duration of the last position.
    """
    scenes = _scenes(replay, theme, numbers)
    total = seconds * (len(scenes) - 1) + last_seconds
    parts = []
    for part, visible in _merged([frame.parts for frame in scenes]):
        if all(visible):
            parts.append(part)
            continue
        values = ["visible" if shown else "hidden" for shown in visible]
        changes = [0, *(i for i in range(1, len(values)) if values[i] != values[i - 1])]
        animation = {
            "attributeName": "visibility",
            "calcMode": "discrete",
            "dur": f"{total:g}s",
            "repeatCount": "indefinite",
            "values": ";".join(values[i] for i in changes),
            "keyTimes": ";".join(f"{i * seconds / total:.5g}" for i in changes),
        }
        parts.append(el("g", {"visibility": values[-1]}, el("animate", animation), part))
    return document(replace(scenes[-1], parts=parts), summary(replay["frames"][-1]), theme)


def _scenes(replay: Mapping[str, Any], theme: str, numbers: bool) -> list[Scene]:
    """Draw all positions with the same size."""
    scenes = [
        scene(replay["frames"][move], look, names=replay["names"], caption=caption_of(replay, move))
        for move, look in enumerate(frames_of(replay, theme=theme, numbers=numbers))
    ]
    width, height = max(frame.width for frame in scenes), max(frame.height for frame in scenes)
    return [Scene(width, height, frame.parts) for frame in scenes]


def _merged(frames: Sequence[Sequence[str]]) -> list[tuple[str, list[bool]]]:
    """Return the distinct elements of all frames, in an order compatible with each frame, and the frames that contain them."""
    order: list[str] = []
    known: set[str] = set()
    for frame in frames:
        at = 0
        for part in frame:
            if part in known:
                at = order.index(part) + 1
            else:
                order.insert(at, part)
                known.add(part)
                at += 1
    shown = [set(frame) for frame in frames]
    return [(part, [part in frame for frame in shown]) for part in order]


def gif(
    replay: Mapping[str, Any],
    *,
    theme: str = "light",
    numbers: bool = False,
    width: int = 480,
    seconds: float = 0.8,
    last_seconds: float = 3.0,
) -> bytes:
    """Draw a game as a GIF of ``width`` pixels that plays in a loop; other arguments as for ``animated_svg``.

    Raises ``MissingExtraError`` without the extra ``render``, and ``ValueError`` for a game that is too long for this width.
    """
    pillow = optional_import("PIL.Image", "render")
    scenes = _scenes(replay, theme, numbers)
    pixels = round(len(scenes) * width * width * scenes[0].height / scenes[0].width)
    if pixels > MAX_PIXELS:
        raise ValueError(f"{len(scenes)} positions of width {width} have {pixels:,} pixels, more than {MAX_PIXELS:,}")

    def image_of(frame: Scene) -> Any:
        return pillow.open(io.BytesIO(png(document(frame, "", theme), width))).convert("RGB")

    # The palette of the last position, which has the most colours, for all positions, so that nothing flickers.
    table = image_of(scenes[-1]).quantize(128, dither=pillow.Dither.NONE)
    images = [image_of(frame).quantize(palette=table, dither=pillow.Dither.NONE) for frame in scenes]
    file = io.BytesIO()
    durations = [round(1000 * seconds)] * (len(images) - 1) + [round(1000 * last_seconds)]
    images[0].save(file, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)
    return file.getvalue()


def png(picture: str, width: int | None = None) -> bytes:
    """Render SVG as PNG, by default in its size. Raises ``MissingExtraError`` without the extra ``render``."""
    return bytes(optional_import("resvg_py", "render").svg_to_bytes(svg_string=picture, width=width))
