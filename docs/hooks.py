"""Make pages of the site from the READMEs of the repository, and fit the links of all pages.

Files link to each other by their paths in the repository, so that the links work there too. On the site a link to a file
becomes a link to its page, a picture is copied, and a link to a file without a page, like a source file, becomes text.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "tilewe_jax/games/polyomino/README.md": "games/polyomino.md",
    "tilewe_jax/games/santorini/README.md": "games/santorini.md",
    "tilewe_jax/games/triominos/README.md": "games/triominos.md",
    "tilewe_jax/tilewe/README.md": "games/tilewe.md",
    "search/README.md": "depth/search.md",
    "tilewe_jax/weights/README.md": "depth/weights.md",
    "tilewe_jax/web/README.md": "depth/server.md",
    "experiments/README.md": "experiments/index.md",
    **{str(path.relative_to(ROOT)): f"experiments/{path.parent.name}.md" for path in ROOT.glob("experiments/*/README.md")},
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository and their pages; ``index.md`` has a separate text in ``docs``."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r'(<img[^>]*src=")([^"]+)(")')
_CODE = re.compile(r"(```.*?```)", re.DOTALL)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages of ``PAGES`` and their pictures."""
    for source, page in PAGES.items():
        if files.get_file_from_path(page) is None:
            files.append(File.generated(config, page, content=_fit((ROOT / source).read_text(), source, page, files, config)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Return the text of a page of ``docs`` with links to the pages of other files of the repository."""
    source = page.file.src_uri
    if source in PAGES.values() and source != "index.md":  # `on_files` has fitted it
        return markdown
    return _fit(markdown, f"docs/{source}", source, files, config)


def _fit(text: str, source: str, page: str, files: Files, config: Any) -> str:
    """Return the text of a file of the repository with the links of its page. Code blocks stay unchanged."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("```") else _fit_part(part, source, page, files, config) for part in parts)


def _fit_part(text: str, source: str, page: str, files: Files, config: Any) -> str:

    def resolved(target: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))

    def relative(path: str) -> str:
        return posixpath.relpath(path, posixpath.dirname(page) or ".")

    def picture(target: str) -> str:
        if "://" in target or resolved(target).startswith("docs/"):
            return target if "://" in target else relative(resolved(target).removeprefix("docs/"))
        path = f"pictures/{resolved(target)}"
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, abs_src_path=str(ROOT / resolved(target))))
        return relative(path)

    def link(match: re.Match[str]) -> str:
        is_picture, label, target = match.groups()
        path, _, anchor = target.partition("#")
        if is_picture:
            return f"![{label}]({picture(target)})"
        if "://" in target or not path:
            return match[0]
        if resolved(path).startswith("docs/"):
            return f"[{label}]({relative(resolved(path).removeprefix('docs/'))}{'#' + anchor if anchor else ''})"
        if resolved(path) in PAGES:
            return f"[{label}]({relative(PAGES[resolved(path)])}{'#' + anchor if anchor else ''})"
        return label

    text = _LINK.sub(link, text)
    return _IMAGE.sub(lambda match: match[1] + picture(match[2]) + match[3], text)
