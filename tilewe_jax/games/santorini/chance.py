"""The chance of Santorini for packages that walk trees: cells of workers one by one."""

from collections.abc import Sequence
from typing import Any

from tilewe_jax.chance import Chance, Event


class RandomWorkers(Chance):
    """Santorini with workers on random cells: four draws of a cell, ``row * size + column``."""

    def __init__(self, game: Any) -> None:
        super().__init__(game, game.config.size**2, 4)

    def deal_outcomes(self, dealt: Sequence[int]) -> list[int]:
        """The cells that are still free."""
        return [] if len(dealt) == self.max_events else sorted(set(range(self.max_outcomes)) - set(dealt))

    def start(self, dealt: Sequence[int]) -> Any:
        """The workers on their cells."""
        return self.game.init_from_deal([divmod(cell, self.game.config.size) for cell in dealt])

    def name(self, event: Event) -> str:
        """Row and column of the cell."""
        return f"worker on {divmod(event.action, self.game.config.size)}"
