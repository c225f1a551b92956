"""Play games of Pentobi against itself at several levels, and record them with the values of its searches.

    python -m experiments.values.games --engine 'pentobi-gtp -g duo -l {level} --nobook --noresign -q' --out games/pentobi.jsonl

The openings are random, and each side of a game has one of the levels, so that positions vary and mistakes decide. Training
with ``replay.records`` reads the file.
"""

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewe_jax import records
from tilewe_jax.arguments import from_arguments
from tilewe_jax.formats.names import gtp_game
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop.gtp_client import EngineError, GtpEngine, search_move
from tilewe_jax.records import Record
from tilewe_jax.settings import setting, validate

SECONDS = 600.0
"""Time limit of each command."""


@dataclass(frozen=True)
class Settings:
    """Play games of Pentobi against itself and write them as records with the field ``values``.

    Raises ``ValueError`` for numbers out of range.
    """

    engine: str
    """Command line of Pentobi's GTP engine, with {level} where its level stands."""
    out: Path
    """File of the games."""
    game: str = "duo_official"
    """Id of a game of Pentobi."""
    minutes: float = setting(10.0, 0)
    """Time after which no further game starts."""
    levels: tuple[int, ...] = (4, 5, 5, 6, 6)
    """Levels, from which each side of a game draws one."""
    opening: tuple[int, int] = (2, 10)
    """Minimum and maximum number of random actions at the start of a game."""
    seed: int = setting(0, 0)
    """Seed of openings and levels."""

    def __post_init__(self) -> None:
        validate(self)


def play(settings: Settings) -> Iterator[Record]:
    """Yield games. Values are clipped to [0, 1], and ``None`` where Pentobi did not search."""
    host, names = make_host_game(settings.game), gtp_game(settings.game)
    engines = {level: GtpEngine(settings.engine.format(level=level)) for level in sorted(set(settings.levels))}
    rng, end = random.Random(settings.seed), time.monotonic() + 60 * settings.minutes
    while time.monotonic() < end:
        for engine in engines.values():
            engine.send("clear_board", SECONDS)
        levels = [rng.choice(settings.levels) for _ in range(host.num_players)]
        opening = rng.randint(*settings.opening)
        position, actions, values = host.init_from_deal(None), list[int](), list[list[float] | None]()
        while not position.is_terminal:
            seat, legal, value = position.current_player, position.legal_actions(), None
            color = names.colors[names.current_color(position)][0]
            if len(actions) < opening or len(legal) == 1:
                text = names.move_text(rng.choice(legal), position)
            else:
                text, mover = search_move(engines[levels[seat]], color, SECONDS)
                mover = round(min(max(mover, 0.0), 1.0), 4)
                others = round((1 - mover) / (host.num_players - 1), 4)
                value = [mover if each == seat else others for each in range(host.num_players)]
            for engine in engines.values():
                engine.send(f"play {color} {text}", SECONDS)
            values.append(value)
            actions.append(names.action(text, position))
            position = position.after(actions[-1])
        players = tuple(f"level {level}" for level in levels)
        result = tuple(position.scores()), tuple(host.returns(position))
        yield Record(None, tuple(actions), *result, players, {records.VALUES: values})


def main(arguments: list[str] | None = None) -> None:
    """Run the program; see ``Settings``."""
    try:
        settings = from_arguments(Settings, sys.argv[1:] if arguments is None else arguments)
        records.write(settings.out, make_host_game(settings.game), play(settings), settings.seed)
    except (EngineError, OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
