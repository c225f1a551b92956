"""The command that writes the games as a folder of static files."""

import json
from dataclasses import dataclass

from tilewe_jax.cli.common import FailedError, Folder, Json, UsageError, out
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Site(Json):
    """Write the page of the games as a folder of static files, which any web host can offer.

    The games run in the browser, in Python (Pyodide): all games against players in plain Python, or several people at one
    screen; records are opened and saved. Nothing is sent elsewhere, and after the first visit the page works without a network.
    """

    out: Folder = None
    """Folder to write (required); it must not exist, be empty, or have an earlier site."""
    pyodide: Folder = None
    """Folder of the unpacked npm package pyodide (required): `npm pack pyodide`, then `tar xzf pyodide-*.tgz`, makes the folder
    package."""

    def run(self) -> None:
        from tilewe_jax.web.site import PYODIDE_VERSION, SiteError, write_site

        if self.out is None:
            raise UsageError("--out is needed: the folder to write")
        if self.pyodide is None:
            raise UsageError(
                "--pyodide is needed: the folder of the unpacked npm package pyodide; get it with"
                f" `npm pack pyodide@{PYODIDE_VERSION} && tar xzf pyodide-{PYODIDE_VERSION}.tgz`, and give --pyodide package"
            )
        try:
            sizes = write_site(self.out, self.pyodide)
        except SiteError as error:
            raise FailedError(str(error)) from None
        size = sum(sizes.values())
        if self.json:
            print(json.dumps({"folder": str(self.out), "files": len(sizes), "bytes": size}))
            return
        out.print(f"{self.out}: {counted(len(sizes), 'files')}, {size / 1e6:.1f} MB")
        out.print(f"try it: python -m http.server --bind 127.0.0.1 --directory {self.out}")
