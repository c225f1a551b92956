"""Chance events of Santorini: the random cells of the workers."""

from collections.abc import Sequence
from typing import Any

from tilewe_jax.chance import Chance, Event


class RandomWorkers(Chance):
    """Random placement of the workers: four draws of a cell, ``row * size + column``."""

    def __init__(self, game: Any) -> None:
        super().__init__(game, game.config.size**2, 4)

    def deal_outcomes(self, dealt: Sequence[int]) -> list[int]:
        """The free cells."""
        return [] if len(dealt) == self.max_events else sorted(set(range(self.max_outcomes)) - set(dealt))

    def start(self, dealt: Sequence[int]) -> Any:
        """The initial state with the workers on these cells."""
        return self.game.init_from_deal([divmod(cell, self.game.config.size) for cell in dealt])

    def name(self, event: Event) -> str:
        """Row and column of a worker."""
        return f"worker on {divmod(event.action, self.game.config.size)}"
