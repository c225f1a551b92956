"""Balanced schedules: the players of each game, by seat."""

from random import Random


def balanced_schedule(engines: int, seats: int, games: int, random: Random) -> list[tuple[int, ...]]:
    """Return the engine in each seat of each game, at random but balanced.

    An engine meets the opponents that it has met least, and takes each seat once in ``seats`` consecutive games. The numbers
    of games of two engines differ by at most ``seats``. Raises ``ValueError`` for more seats than engines.
    """
    if not 1 <= seats <= engines:
        raise ValueError(f"the number of engines must be at least {seats}, one for each seat, got {engines}")
    played = [0] * engines
    met = [[0] * engines for _ in range(engines)]
    schedule: list[tuple[int, ...]] = []
    while len(schedule) < games:
        table: list[int] = []
        order = random.sample(range(engines), engines)
        while len(table) < seats:
            best = min(
                (engine for engine in order if engine not in table),
                key=lambda engine: (played[engine], sum(met[engine][other] for other in table)),
            )
            table.append(best)
        random.shuffle(table)
        for turn in range(min(seats, games - len(schedule))):
            schedule.append(tuple(table[turn:] + table[:turn]))
        for engine in table:
            played[engine] += seats
            for other in table:
                met[engine][other] += engine != other
    return schedule
