"""Shards: equal parts of the games of a match, which several jobs play.

The random numbers of a game depend on the seed and the number of the game in the whole match, so the joined results of all
shards equal the results of one job.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """One of ``count`` equal parts of the games of a match, numbered from 1."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse a text like ``3/16``. Raises ``ValueError``."""
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        shard = cls(int(match[1]), int(match[2])) if match else cls(0, 0)
        if not 0 < shard.number <= shard.count:
            raise ValueError(f"--shard must be 1/N to N/N for N shards, for example 3/16, not {text[:80]!r}")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def games(self, games: int, seats: int) -> range:
        """Return the numbers of the games of this shard, a range of consecutive numbers.

        ``seats`` consecutive games, which may share a start, belong to the same shard.

        >>> [list(Shard(number, 2).games(6, 2)) for number in (1, 2)]
        [[0, 1], [2, 3, 4, 5]]

        Raises ``ValueError`` for more shards than starts of games.
        """
        starts = -(-games // seats)
        if self.count > max(1, starts):
            reason = f"because {seats} games share a start"
            raise ValueError(f"{games} games can be split into at most {starts} shards, {reason}, got {self.count}")
        first, end = (starts * number // self.count * seats for number in (self.number - 1, self.number))
        return range(first, min(games, end))


WHOLE = Shard()
"""All games of a match."""
