"""Rooms, the folders and top modules of the package, import one way: the order of docs/architecture.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
(TREE,) = re.findall(r"^```\n(.*?)^```", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL | re.MULTILINE)
ROOMS = [name for line in TREE.splitlines() for name in re.findall(r"(\w+)(?:\.py|/)(?=[ \n]|$)", line[:34] + " ")]
FILES = [path for path in (ROOT / "tilewe_jax").rglob("*.py") if "search" not in path.relative_to(ROOT).parts[:2]]
MODULES = {
    ".".join(["tilewe_jax", *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__"): path
    for folder, paths in ((ROOT / "tilewe_jax", FILES), (ROOT, (ROOT / "search").glob("*.py")))
    for path in paths
}


def room(module: str) -> str:
    """Return the room of a module; each game is a room, because games must not import each other."""
    parts = module.split(".")[1:]
    return ".".join(parts[:2]) if parts[:1] == ["games"] and len(parts) > 1 else parts[0] if parts else "tilewe_jax"


def imports(module: str) -> Iterator[str]:
    """Yield the modules of the package that a module imports anywhere in its file."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            assert name.split(".")[0] not in ("search", "experiments", "tests"), f"{module} imports {name}"
            owner = name if name in MODULES else name.rpartition(".")[0]  # a module, or a name in a module
            if owner in MODULES:
                yield owner


def floor(module: str) -> int:
    """Return the index of a module's room in the list."""
    name = room(module)
    assert name.split(".")[0] in ROOMS, f"docs/architecture.md does not list {name}"
    return ROOMS.index(name.split(".")[0])


def test_rooms_import_from_the_rooms_above_them() -> None:
    arrows = [(module, imported) for module in MODULES.keys() - {"tilewe_jax"} for imported in imports(module)]
    arrows = [(module, imported) for module, imported in arrows if room(imported) != room(module)]
    assert [f"{module} imports {imported}" for module, imported in sorted(arrows) if floor(imported) >= floor(module)] == []
