"""The page without a server: static files, with Pyodide and the modules of ``local``, in a folder or below a server's page."""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tilewe_jax.web import puzzles
from tilewe_jax.web.catalog import games_script, languages_script
from tilewe_jax.web.local import local_catalog

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""The files of Pyodide that the page needs."""
PYODIDE_VERSION = "314.0.7"
"""The version of Pyodide with which the page was tested."""

_WEB = Path(__file__).parent
_PACKAGE = _WEB.parent
_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'"  # no other server
)
_MODULES = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import tilewe_jax.web.local
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "tilewe_jax"), sep="\\n")
"""
MISSING = ("jax", "jaxlib", "numpy", "psutil", "rich", "starlette", "uvicorn", "sqlite3")
"""Packages that the modules must not import, because a browser does not have them."""


class SiteError(ValueError):
    """The site cannot be written; the message is the reason."""


def needed_modules() -> dict[str, Path]:
    """Return the files of the modules that ``local`` imports and of the puzzles, by their paths in the archive."""
    command = [sys.executable, "-c", _MODULES, *MISSING]
    names = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_PACKAGE.parent).stdout.split()
    files = {file.relative_to(_PACKAGE.parent).as_posix(): file for file in sorted(puzzles.FOLDER.glob("*.jsonl"))}
    for name in names:
        path = _PACKAGE.parent.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        files[file.relative_to(_PACKAGE.parent).as_posix()] = file
    return files


def archive(files: dict[str, Path]) -> bytes:
    """Return an archive of files, the same bytes for the same contents."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, file in sorted(files.items()):
            zipped.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()


def index_page(is_at_server: bool = False) -> str:
    """Return the page's HTML with relative addresses, and without the texts and links that need a server.

    Args:
      is_at_server: whether a server offers the page below its own, to which the page then links.
    """
    page = (_WEB / "static" / "index.html").read_text(encoding="utf-8")
    changes = [
        (
            '<meta charset="utf-8">',
            f'<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        ),
        ('="/static/', '="static/'),
        ('href="/"', 'href="#/"'),
        ('href="/study"', 'href="#/study"'),
        ('href="/puzzle"', 'href="#/puzzle"'),
        ("against people and engines, study games, and watch engines learn.", "against engines, and study games."),
    ]
    for old, new in changes:
        assert old in page, old
        page = page.replace(old, new)
    online = '\n        <a href="../">Online</a>' if is_at_server else ""
    page, replaced = re.subn(r'\n *<a href="/dashboard"[^\n]*', online, page)
    assert replaced == 1
    return page


def pyodide_version(folder: Path) -> str:
    """Return the version of the Pyodide in a folder. Raises ``SiteError`` if files are missing."""
    missing = [name for name in PYODIDE if not (folder / name).is_file()]
    if missing:
        raise SiteError(
            f"{folder} must be the unpacked npm package pyodide, but {missing[0]} is missing; get it with"
            f" `npm pack pyodide@{PYODIDE_VERSION} && tar xzf pyodide-{PYODIDE_VERSION}.tgz`, which makes the folder package"
        )
    try:
        return str(json.loads((folder / "package.json").read_bytes())["version"])
    except (OSError, KeyError, TypeError, ValueError):
        return "of unknown version"


def write_site(folder: Path, pyodide: Path) -> dict[str, int]:
    """Write the site.

    Args:
      folder: the folder to write, created if it does not exist. An earlier site in it is replaced.
      pyodide: the unpacked npm package ``pyodide``.

    Returns:
      The sizes of the files in bytes, by their paths.

    Raises ``SiteError`` for a folder without Pyodide or with other content, and ``OSError`` if a file cannot be written.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / "offline.js").is_file():
        raise SiteError(f"{folder} has other files; name a new folder or one with an earlier site")
    files = site_files(pyodide)  # read before any is written, since ``pyodide`` may be a folder of the earlier site
    files["offline.js"] = offline_script(files | {"./": files["index.html"]}, games="./")
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for file in folder.rglob("*"):
        if file.is_file() and file.relative_to(folder).as_posix() not in files:
            file.unlink()
    return {name: len(data) for name, data in files.items()}


def page_files() -> dict[str, bytes]:
    """Return the files that the pages of the server and of the site share, by their paths below the page."""
    files = {
        f"static/{file.relative_to(_WEB / 'static').as_posix()}": file
        for file in sorted((_WEB / "static").rglob("*"))
        if file.is_file() and file.name != "index.html"
    }
    files |= {f"static/render/{file.name}": file for file in sorted((_PACKAGE / "draw" / "static").iterdir())}
    scripts = {"static/games.js": games_script().encode(), "static/languages.js": languages_script().encode()}
    return {name: file.read_bytes() for name, file in files.items()} | scripts


def site_files(pyodide: Path, is_at_server: bool = False) -> dict[str, bytes]:
    """Return the files of the site except its service worker, by their paths.

    Args:
      pyodide: the unpacked npm package ``pyodide``.
      is_at_server: whether a server offers the site below its own page, whose service worker keeps the site too.

    Raises ``SiteError`` for a folder without Pyodide, and ``OSError`` if a file cannot be read.
    """
    version = pyodide_version(pyodide)
    backend = (_WEB / "static_site" / "backend.js").read_text(encoding="utf-8")
    if is_at_server:
        assert '"../offline.js"' in backend
        backend = backend.replace('"../offline.js"', '"../../offline.js"')
    return {
        **page_files(),
        **{f"pyodide/{name}": (pyodide / name).read_bytes() for name in PYODIDE},
        "index.html": index_page(is_at_server).encode(),
        "static/backend.js": backend.encode(),
        "static/worker.js": (_WEB / "static_site" / "worker.js").read_bytes(),
        "static/catalog.json": json.dumps(local_catalog()).encode(),
        "python/tilewe_jax.zip": archive(needed_modules()),
        "pyodide/LICENSE.txt": (_WEB / "static_site" / "pyodide_license.txt").read_bytes(),
        "pyodide/VERSION.txt": f"Pyodide {version}, https://github.com/pyodide/pyodide\n".encode(),
    }


def offline_script(contents: Mapping[str, bytes], games: str) -> bytes:
    """Return the service worker, which keeps files under a name made from their contents.

    Args:
      contents: the files by their addresses, relative to the service worker.
      games: address of the folder with the site.
    """
    digest = hashlib.sha256()
    for name, data in sorted(contents.items()):
        digest.update(f"{name} {hashlib.sha256(data).hexdigest()}\n".encode())
    script = (_WEB / "static_site" / "offline.js").read_text(encoding="utf-8")
    values = {"version": digest.hexdigest()[:16], "games": games, "files": json.dumps(sorted(contents))}
    for name, value in values.items():
        script = script.replace(f"{{{name}}}", value)
    return script.encode()
