"""Recorded games as moving pictures: animated SVG, which needs nothing else, and GIF. Plain Python, without JAX.

Both take a replay, see ``tilewe_jax.render.replay``.
"""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewe_jax.render.pictures import draw, scene, summary
from tilewe_jax.render.replay import bounds_of_rounds, caption_of, numbers_of
from tilewe_jax.render.shapes import Options, Scene, Svg, document, el

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 50_000_000
"""Maximum number of pixels of all frames of a GIF together times two bytes, about 100 MB of memory."""


class MissingRenderError(ImportError):
    """The packages that make pixels of pictures are not installed. The message names the extra that has them."""


def frames_of(replay: Mapping[str, Any], *, theme: str, numbers: bool) -> list[Options]:
    """How each position of a replay is drawn: the last move marked, the same part of the plane for each in a round."""
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
    """A game as one SVG file that plays in a loop.

    What stays from one position to the next is in the file once, with the times at which it is visible. Programs that play no
    animations show the last position.

    Args:
      replay: the game.
      theme: "light" or "dark".
      numbers: whether pieces show the number of their move.
      seconds: time of each position.
      last_seconds: time of the last one.
    """
    scenes = [
        scene(view, look, names=replay["names"], caption=caption_of(replay, move))
        for move, (view, look) in enumerate(zip(replay["frames"], frames_of(replay, theme=theme, numbers=numbers), strict=True))
    ]
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
    size = max(frame.width for frame in scenes), max(frame.height for frame in scenes)
    return document(Scene(*size, parts), summary(replay["frames"][-1]), theme)


def _merged(frames: Sequence[Sequence[str]]) -> list[tuple[str, list[bool]]]:
    """The different elements of all frames in an order that keeps that of each frame, and in which frames each one is."""
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
    """A game as a GIF that plays in a loop.

    Args:
      replay: the game.
      theme: "light" or "dark".
      numbers: whether pieces show the number of their move.
      width: width in pixels.
      seconds: time of each position.
      last_seconds: time of the last one.

    Raises ``MissingRenderError`` without the extra ``render``, ``ValueError`` for a game that is too long for this width.
    """
    try:
        from PIL.Image import Dither
    except ImportError:
        raise MissingRenderError(_NEEDED) from None
    looks = frames_of(replay, theme=theme, numbers=numbers)
    pictures = [
        draw(view, look, names=replay["names"], caption=caption_of(replay, move))
        for move, (view, look) in enumerate(zip(replay["frames"], looks, strict=True))
    ]
    images: list[Image] = []
    for picture in pictures:
        image = _image(picture, width)
        if len(pictures) * image.width * image.height > MAX_PIXELS:
            raise ValueError(f"{len(pictures)} positions of {image.width} x {image.height} pixels are too much for a GIF")
        images.append(image)
    height = max(image.height for image in images)
    paper = images[0].getpixel((0, 0))
    canvases = []
    for image in images:
        canvas = image if image.height == height else _extended(image, height, paper)
        canvases.append(canvas)
    # One table of colours for all, so that nothing flickers: that of the last position, which has most of them.
    table = canvases[-1].quantize(128, dither=Dither.NONE)
    shown = [canvas.quantize(palette=table, dither=Dither.NONE) for canvas in canvases]
    file = io.BytesIO()
    durations = [round(1000 * seconds)] * (len(shown) - 1) + [round(1000 * last_seconds)]
    shown[0].save(file, "GIF", save_all=True, append_images=shown[1:], duration=durations, loop=0)
    return file.getvalue()


def png(picture: str, width: int | None = None) -> bytes:
    """An SVG picture as PNG, in its own size or of this width. Raises ``MissingRenderError`` without the extra ``render``."""
    try:
        import resvg_py
    except ImportError:
        raise MissingRenderError(_NEEDED) from None
    return bytes(resvg_py.svg_to_bytes(svg_string=picture, width=width))


_NEEDED = "pictures of pixels need the packages resvg_py and pillow: pip install 'tilewe-jax[render]'"


def _image(picture: str, width: int) -> "Image":
    """A picture as pixels."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingRenderError(_NEEDED) from None
    return Image.open(io.BytesIO(png(picture, width))).convert("RGB")


def _extended(image: "Image", height: int, paper: Any) -> "Image":
    """An image with more paper below."""
    from PIL import Image

    canvas = Image.new("RGB", (image.width, height), paper)
    canvas.paste(image, (0, 0))
    return canvas
