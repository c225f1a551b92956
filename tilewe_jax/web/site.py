"""Writes the page without a server: a folder of static files, with Pyodide and the modules of ``local``."""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
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


def index_page() -> str:
    """Return the page's HTML with relative addresses, and without what needs a server."""
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
    page, removed = re.subn(r'\n *<a href="/dashboard"[^\n]*', "", page)
    assert removed == 1
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
    version = pyodide_version(pyodide)
    if folder.exists() and any(folder.iterdir()) and not (folder / "offline.js").is_file():
        raise SiteError(f"{folder} has other files; name a new folder or one with an earlier site")
    contents: dict[str, bytes | Path] = {
        f"static/{file.relative_to(_WEB / 'static').as_posix()}": file
        for file in sorted((_WEB / "static").rglob("*"))
        if file.is_file() and file.name != "index.html"
    }
    contents |= {f"static/render/{file.name}": file for file in sorted((_PACKAGE / "draw" / "static").iterdir())}
    contents |= {f"pyodide/{name}": pyodide / name for name in PYODIDE}
    contents |= {
        "index.html": index_page().encode(),
        "static/backend.js": _WEB / "static_site" / "backend.js",
        "static/worker.js": _WEB / "static_site" / "worker.js",
        "static/games.js": games_script().encode(),
        "static/languages.js": languages_script().encode(),
        "static/catalog.json": json.dumps(local_catalog()).encode(),
        "python/tilewe_jax.zip": archive(needed_modules()),
        "pyodide/LICENSE.txt": _WEB / "static_site" / "pyodide_license.txt",
        "pyodide/VERSION.txt": f"Pyodide {version}, https://github.com/pyodide/pyodide\n".encode(),
    }
    # All files are read before any is written, since ``pyodide`` may be a folder of the earlier site.
    files = {name: content if isinstance(content, bytes) else content.read_bytes() for name, content in contents.items()}
    files["offline.js"] = offline_script(files)
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for file in folder.rglob("*"):
        if file.is_file() and file.relative_to(folder).as_posix() not in files:
            file.unlink()
    return {name: len(data) for name, data in files.items()}


def offline_script(contents: dict[str, bytes]) -> bytes:
    """Return the service worker, which keeps these files under a name made from their contents."""
    digest = hashlib.sha256()
    for name, data in sorted(contents.items()):
        digest.update(f"{name} {hashlib.sha256(data).hexdigest()}\n".encode())
    script = (_WEB / "static_site" / "offline.js").read_text(encoding="utf-8")
    files = json.dumps(["./", *sorted(contents)])
    return script.replace("{version}", digest.hexdigest()[:16]).replace("{files}", files).encode()
