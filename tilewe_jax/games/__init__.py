"""The games, a folder each.

``FOLDER/game.py`` has the factories of its games by id, ``GAMES``; ``FOLDER/offers.py`` has how they are offered to people and
their form in plain Python, ``OFFERS``, and needs no JAX.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules(name: str) -> list[ModuleType]:
    """The module of this name of each folder, in the order of the folders."""
    folders = sorted(module.name for module in iter_modules(__path__))
    return [import_module(f"{__name__}.{folder}.{name}") for folder in folders]
