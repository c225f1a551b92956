"""Exports of a game (records, replays, pictures), and studies of uploaded game files."""

import asyncio
import json
import logging
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewe_jax import records
from tilewe_jax.draw import Options, draw
from tilewe_jax.formats import blksgf
from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.host import HostGame
from tilewe_jax.replay import recorded
from tilewe_jax.replay.animation import animated_svg, gif
from tilewe_jax.replay.frames import replay
from tilewe_jax.utils.extras import MissingExtraError
from tilewe_jax.utils.files import parse_json
from tilewe_jax.web.catalog import make_game, new_deal
from tilewe_jax.web.forms import fits
from tilewe_jax.web.reviews import Reviews
from tilewe_jax.web.room import encoded
from tilewe_jax.web.rooms import Rooms
from tilewe_jax.web.session import RefusedError, Session, Setup, started
from tilewe_jax.web.stored import DamagedError, StoreError

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

MAX_STUDY_GAMES = 10_000
MAX_STUDY_MOVES = 20_000
"""Maximum number of moves of all games of a file. Reading a ``.blksgf`` file replays them."""
FORMATS = ("jsonl", "blksgf")
_GAME = {
    "game": str,
    "options": dict,
    "deal": object,
    "actions": [int],
    "players": [str],
    "result": ({"scores": list, "returns": list}, None),
}


def require_shown(session: Session) -> None:
    """Raise ``RefusedError`` if the game has hidden information and is not over."""
    if session.setup.is_hidden and not session.over:
        raise RefusedError("a game with hidden information can be saved after its end", status=409)


def record_of(session: Session, form: str) -> str:
    """Return the game so far as the text of a file. Raises ``RefusedError``."""
    require_shown(session)
    host = session.setup.host
    names = [seat.name for seat in session.seats]
    if form == "blksgf":
        try:
            return blksgf.render(blokus_game(host), session.actions, names)
        except ValueError as error:
            raise RefusedError(str(error), "format", 409) from None
    return "".join(records.lines(host, [as_record(session)]))


def as_record(session: Session) -> records.Record:
    """Return the game so far as a record."""
    over = session.over or {"scores": (), "returns": ()}
    names = tuple(seat.name for seat in session.seats)
    return records.Record(session.setup.deal, tuple(session.actions), tuple(over["scores"]), tuple(over["returns"]), names)


def replay_of(session: Session) -> Json:
    """Return the replay of a game so far, without hidden information.

    ``thoughts`` has one entry per move: the analysis by the engine that made it, ``None`` for moves of people. Analyses of
    different engines are not comparable, so ``analyses`` does not contain them.
    """
    is_shown = not session.setup.is_hidden or session.over is not None
    built = replay(
        session.setup.host,
        session.setup.deal,
        session.actions,
        names=[seat.name for seat in session.seats],
        result=dict(session.over) if session.over else None,
        open=session.over is not None,
    )
    return {**built, "thoughts": [dict(move.analysis) if move.analysis and is_shown else None for move in session.moves]}


def replay_text(replay: Json) -> str:
    """Return a replay as JSON text. It is encoded view by view, because one call blocks all threads for up to a second."""
    fields = (
        f"{encoded(name)}:" + (f"[{','.join(map(encoded, value))}]" if isinstance(value, list) else encoded(value))
        for name, value in replay.items()
    )
    return f"{{{','.join(fields)}}}"


def picture_of(session: Session, number: int, theme: str) -> str:
    """Return the position after ``number`` moves as SVG, without hidden information."""
    view = session.view(number, session.position_at(number))
    last = dict(session.moves[number - 1].view) if number else None
    return str(draw(view, Options(theme=theme, last=last), names=[seat.name for seat in session.seats]))


def animation_of(session: Session, form: str, theme: str) -> bytes:
    """Return the game so far as an animation, without hidden information. Raises ``RefusedError``."""
    if not session.moves:
        raise RefusedError("the game has no moves yet", status=409)
    values = replay_of(session)
    if form == "svg":
        return str(animated_svg(values, theme=theme)).encode()
    try:
        return gif(values, theme=theme)
    except (MissingExtraError, ValueError) as error:
        raise RefusedError(str(error), "format", 409) from None


class Studies:
    """Uploaded game files, for replay and analysis.

    Args:
      rooms: all games; studies share their database, engines and limits.
      reviews: reviews of games.
    """

    def __init__(self, rooms: Rooms, reviews: Reviews) -> None:
        self._rooms, self._reviews = rooms, reviews
        self._reading = asyncio.Semaphore(1)
        """One file is read at a time, because a large file takes seconds of processor time."""

    async def add(self, content: bytes) -> Json:
        """Store the games of a file. Raises ``RefusedError``."""
        async with self._reading:
            games, notes = await asyncio.to_thread(_games_of, content)
        await self._rooms.check_space(self._rooms.store.count_studies, self._rooms.limits.studies, "studies")
        study_id = secrets.token_urlsafe(9)
        try:
            await self._rooms.store.add_study(study_id, encoded(games))
        except StoreError as error:
            log.error("a study could not be added: %s", error)
            raise RefusedError("the server cannot save the study; try again later", status=503) from None
        return {"id": study_id, "games": len(games), "notes": notes}

    async def replay(self, study_id: str, number: int) -> str:
        """Return the replay of game ``number`` (from 1) of a study as JSON text. Raises ``RefusedError``."""
        values, count = await self._game(study_id, number)

        def build() -> str:
            host = make_game(values["game"], values["options"])
            result = values["result"]
            built = replay(host, values["deal"], values["actions"], names=values["players"], result=result)
            return replay_text({**built, "number": number, "games": count})

        async with self._reading:
            try:
                return await asyncio.to_thread(build)
            except (TypeError, ValueError) as error:
                raise RefusedError(f"game {number}: {error}", "number") from None

    async def analysis(self, study_id: str, request: Any, address: str = "") -> Json:
        """Return the analysis of a position of a study for a client. Raises ``RefusedError``."""
        if not isinstance(request, dict):
            raise RefusedError("the body must be a JSON object")
        number, move = request.get("number", 1), request.get("move")
        if type(number) is not int:
            raise RefusedError("number must be an integer", "number")
        values, _ = await self._game(study_id, number)
        if type(move) is not int or not 0 <= move <= len(values["actions"]):
            raise RefusedError(f"move must be an integer from 0 to {len(values['actions'])}", "move")

        def build() -> Session:
            session = _session(make_game(values["game"], values["options"]), values)
            for action in values["actions"][:move]:
                session = session.played(session.mover, action)
            return session

        try:
            async with self._reading:
                session = await asyncio.to_thread(build)
        except (RefusedError, TypeError, ValueError) as error:
            raise RefusedError(f"game {number}: {error}", "number") from None
        agent, simulations = request.get("agent"), request.get("simulations")
        return await self._rooms.analysis(session, move, agent, simulations, address=address)

    async def review(self, study_id: str, number: int, address: str = "") -> Json:
        """Return the review of a game of a study, see ``reviews.Reviews.get``. Raises ``RefusedError``."""
        values, _ = await self._game(study_id, number)
        try:
            host = await asyncio.to_thread(make_game, values["game"], values["options"])
            start = _session(host, values)
            return await self._reviews.get(host, start.setup.deal, values["actions"], address)
        except (TypeError, ValueError) as error:
            raise RefusedError(f"game {number}: {error}", "number") from None

    async def _game(self, study_id: str, number: int) -> tuple[Json, int]:
        return await asyncio.to_thread(self._read, study_id, number)

    def _read(self, study_id: str, number: int) -> tuple[Json, int]:
        """A game of a study, and the number of its games. Raises ``RefusedError`` and ``StoreError``."""
        content = self._rooms.store.study(study_id)
        if content is None:
            raise RefusedError("this study does not exist", status=404)
        try:
            games = _games_in(content)
            if not 1 <= number <= len(games):
                raise RefusedError(f"number must be from 1 to {len(games)}, got {number}", "number")
            _check_game(games, number)
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            self._rooms.store.report("study", study_id, error)
            raise DamagedError(f"study {study_id} is damaged") from None
        return games[number - 1], len(games)


def _games_in(content: str) -> list[Any]:
    """The games of a stored study. Raises ``ValueError`` and ``RecursionError``."""
    games = json.loads(content)
    if not isinstance(games, list):
        raise ValueError("its content is not a list")
    return games


def _check_game(games: list[Any], number: int) -> None:
    """Raise ``ValueError`` if game ``number`` of a stored study is damaged."""
    if not fits(games[number - 1], _GAME):
        raise ValueError(f"game {number} has a value of the wrong type")
    encoded(games[number - 1])  # raises ``ValueError`` for infinite numbers, which cannot be sent


def check_study(content: str) -> None:
    """Replay all games of a stored study. Raises ``ValueError`` and other errors if it is damaged."""
    games = _games_in(content)
    for number, values in enumerate(games, 1):
        _check_game(games, number)
        try:
            session = _session(make_game(values["game"], values["options"]), values)
            for action in values["actions"]:
                session = session.played(session.mover, action)
        except RefusedError as error:
            raise ValueError(f"game {number}: {error}") from None


def _session(host: HostGame, values: Mapping[str, Any]) -> Session:
    """A session at the start of a game of a study, without players."""
    deal = values["deal"] if values["deal"] is not None else new_deal(host)
    return started(Setup(host, deal, None, True, False), ())


def _games_of(content: bytes) -> tuple[list[Json], list[str]]:
    """The games of a file in either format, and notes on ignored content. Raises ``RefusedError``."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RefusedError("the file must be a text file of games") from None
    file = _of_blksgf(text) if text.lstrip().startswith("(") else read_records(content)
    if not file.games:
        raise RefusedError("the file has no games")
    moves = sum(len(each.actions) for each in file.games)
    if len(file.games) > MAX_STUDY_GAMES:
        raise RefusedError(f"a study must have at most {MAX_STUDY_GAMES:,} games, got {len(file.games):,}")
    if moves > MAX_STUDY_MOVES:
        raise RefusedError(f"the games of a study must have at most {MAX_STUDY_MOVES:,} moves, got {moves:,}")
    games = [
        {
            "game": each.game.id,
            "options": dict(each.game.options),
            "deal": each.deal,
            "actions": list(each.actions),
            "players": list(each.names),
            "result": each.result,
        }
        for each in file.games
    ]
    return games, list(file.notes)


def _of_blksgf(text: str) -> recorded.GameFile:
    """The games of a ``.blksgf`` file; each variation is a game."""
    if text.count(";") > MAX_STUDY_GAMES + MAX_STUDY_MOVES:  # checked before the moves are replayed
        raise RefusedError(f"a study must have at most {MAX_STUDY_GAMES:,} games and {MAX_STUDY_MOVES:,} moves")
    try:
        return recorded.of_sgf(blksgf.parse(text, variations=True))
    except ValueError as error:
        raise RefusedError(str(error)) from None


def read_records(content: bytes) -> recorded.GameFile:
    """Return the games in a file of records of an offered game. Raises ``RefusedError``."""
    try:
        header = parse_json(content.split(b"\n", 1)[0].decode("utf-8-sig"))
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != records.FORMAT:
        raise RefusedError("the file must have records of games or the format .blksgf")
    try:
        # Checked first, because reading records imports third-party games by their names.
        make_game(header.get("game"), header.get("options"))
    except (TypeError, ValueError) as error:
        raise RefusedError(f"line 1: {error}") from None
    with tempfile.TemporaryDirectory(prefix="tilewe-games-") as folder:
        path = Path(folder) / "games"
        path.write_bytes(content)
        try:
            return recorded.read(path)
        except records.RecordError as error:
            raise RefusedError(str(error).replace(str(path), "the file")) from None
