"""What a game can be taken away as: records, replays, pictures; and studies, the games of others' files."""

import asyncio
import json
import logging
import os
import secrets
import tempfile
from collections.abc import Mapping
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
from tilewe_jax.web.room import encoded
from tilewe_jax.web.rooms import Rooms
from tilewe_jax.web.session import RefusedError, Session, Setup, started
from tilewe_jax.web.store import DamagedError, StoreError

log = logging.getLogger("tilewe_jax.web")

Json = dict[str, Any]

MAX_STUDY_GAMES = 10_000
MAX_STUDY_MOVES = 20_000
"""Moves of the games of a file, in any format. Reading a ``.blksgf`` file replays all of its moves."""
FORMATS = ("jsonl", "blksgf")


def require_shown(session: Session) -> None:
    """Refuse to give away a game while something in it is hidden."""
    if session.setup.is_hidden and not session.over:
        raise RefusedError("the game has hidden information, and is not over", None, 409)


def record_of(session: Session, form: str) -> str:
    """The text of a file with the game so far. Raises ``RefusedError``."""
    require_shown(session)
    host = session.setup.host
    names = [seat.name for seat in session.seats]
    if form == "blksgf":
        try:
            return blksgf.render(blokus_game(host), session.actions, names)
        except ValueError as error:
            raise RefusedError(str(error), "format", 409) from None
    over = session.over or {"scores": (), "returns": ()}
    record = records.Record(
        session.setup.deal, tuple(session.actions), tuple(over["scores"]), tuple(over["returns"]), tuple(names)
    )
    return "".join(records.lines(host, [record]))


def replay_of(session: Session) -> Json:
    """The replay of a game so far, as everybody may see it.

    ``thoughts`` has, for each move of an engine, its opinion of the position before the move, and ``None`` for other moves.
    Opinions of different engines do not compare, so they are kept apart from ``analyses``.
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
    """A replay as JSON text, encoded view by view: one call for all would hold up every other thread, for up to a second."""
    fields = (
        f"{encoded(name)}:" + (f"[{','.join(map(encoded, value))}]" if isinstance(value, list) else encoded(value))
        for name, value in replay.items()
    )
    return f"{{{','.join(fields)}}}"


def picture_of(session: Session, number: int, theme: str) -> str:
    """The position after so many moves as the text of an SVG file, without what is hidden."""
    view = session.view(number, session.position_at(number))
    last = dict(session.moves[number - 1].view) if number else None
    return str(draw(view, Options(theme=theme, last=last), names=[seat.name for seat in session.seats]))


def animation_of(session: Session, form: str, theme: str) -> bytes:
    """The game so far as a moving picture, without what is hidden. Raises ``RefusedError``."""
    if not session.moves:
        raise RefusedError("nothing has moved yet", None, 409)
    values = replay_of(session)
    if form == "svg":
        return str(animated_svg(values, theme=theme)).encode()
    try:
        return gif(values, theme=theme)
    except (MissingExtraError, ValueError) as error:
        raise RefusedError(str(error), "format", 409) from None


class Studies:
    """Games of files that people have uploaded, to be looked at and analysed.

    Args:
      rooms: all games; studies share their file, engines and limits.
    """

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._reading = asyncio.Semaphore(1)
        """One file is read at a time, so that large ones do not take the processor from those who play."""

    async def add(self, content: bytes) -> Json:
        """Keep the games of a file. Raises ``RefusedError``."""
        async with self._reading:
            games, notes = await asyncio.to_thread(_games_of, content)
        if await asyncio.to_thread(self._rooms.store.count_studies) >= self._rooms.limits.studies:
            raise RefusedError("the server keeps no more studies", None, 429)
        study_id = secrets.token_urlsafe(9)
        try:
            await self._rooms.store.add_study(study_id, encoded(games))
        except StoreError as error:
            log.error("a study could not be added: %s", error)
            raise RefusedError("the server cannot save the study; try again later", None, 503) from None
        return {"id": study_id, "games": len(games), "notes": notes}

    async def replay(self, study_id: str, number: int) -> str:
        """The replay of a game of a study, from 1, as JSON text. Raises ``RefusedError``."""
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
        """The analysis of a position of a study, for an address. Raises ``RefusedError``."""
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

    async def _game(self, study_id: str, number: int) -> tuple[Json, int]:
        return await asyncio.to_thread(self._read, study_id, number)

    def _read(self, study_id: str, number: int) -> tuple[Json, int]:
        """A game of a study, and their number. Raises ``RefusedError`` and ``StoreError``."""
        content = self._rooms.store.study(study_id)
        if content is None:
            raise RefusedError("there is no such study", None, 404)
        try:
            games = json.loads(content)
            if not isinstance(games, list):
                raise ValueError("its content is not a list")
            if not 1 <= number <= len(games):
                raise RefusedError(f"number must be 1 to {len(games)}, the games of the study", "number")
            _check_form(games[number - 1])
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            self._rooms.store.report("study", study_id, error)
            raise DamagedError(f"study {study_id} is damaged") from None
        return games[number - 1], len(games)


def _check_form(values: Any) -> None:
    """Raise an error for a game of a study in which a value has the wrong type."""
    players, result = values["players"], values["result"]
    if not isinstance(values["game"], str) or not isinstance(values["options"], dict):
        raise TypeError("the game or its options have the wrong type")
    if not isinstance(values["actions"], list) or not all(type(action) is int for action in values["actions"]):
        raise TypeError("the actions are not integers")
    if not isinstance(players, list) or not all(isinstance(name, str) for name in players):
        raise TypeError("the names of the players are not text")
    json.dumps([values["deal"], result], allow_nan=False)
    if result is not None and not all(isinstance(result[name], list) for name in ("scores", "returns")):
        raise TypeError("the result has the wrong type")


def _session(host: HostGame, values: Mapping[str, Any]) -> Session:
    """A session at the start of a game of a study, in which nobody sits."""
    deal = values["deal"] if values["deal"] is not None else new_deal(host)
    return started(Setup(host, deal, None, True, False), ())


def _games_of(content: bytes) -> tuple[list[Json], list[str]]:
    """The games of a file in either of the two formats, and notes on the content that is not read. Raises ``RefusedError``."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RefusedError("a study is a file of games, which is text") from None
    file = _of_blksgf(text) if text.lstrip().startswith("(") else _of_records(content)
    if not file.games:
        raise RefusedError("the file has no games")
    _check_size(len(file.games), sum(len(each.actions) for each in file.games))
    games = [
        _game_json(each.game.id, each.game.options, each.deal, each.actions, each.names, each.result) for each in file.games
    ]
    return games, list(file.notes)


def _check_size(games: int, moves: int) -> None:
    """Refuse a file with too many games or moves, in any format."""
    if games > MAX_STUDY_GAMES:
        raise RefusedError(f"a study has at most {MAX_STUDY_GAMES:,} games, not {games:,}")
    if moves > MAX_STUDY_MOVES:
        raise RefusedError(f"the games of a study have at most {MAX_STUDY_MOVES:,} moves, not {moves:,}")


def _of_blksgf(text: str) -> recorded.GameFile:
    """The games of a ``.blksgf`` file, its variations after the main line."""
    if text.count(";") > MAX_STUDY_GAMES + MAX_STUDY_MOVES:  # before they are replayed
        raise RefusedError(f"a study has at most {MAX_STUDY_GAMES:,} games and {MAX_STUDY_MOVES:,} moves")
    try:
        return recorded.of_sgf(blksgf.parse(text, variations=True))
    except ValueError as error:
        raise RefusedError(str(error)) from None


def _of_records(content: bytes) -> recorded.GameFile:
    try:
        header = parse_json(content.split(b"\n", 1)[0].decode("utf-8-sig"))
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != records.FORMAT:
        raise RefusedError("this is no file of games: neither records, whose first line is a header, nor .blksgf")
    try:
        # Before the records are read, which would import a game of somebody else by its name.
        make_game(header.get("game"), header.get("options"))
    except (TypeError, ValueError) as error:
        raise RefusedError(f"line 1: {error}") from None
    descriptor, path = tempfile.mkstemp(prefix="tilewe-study-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return recorded.read(path)
    except records.RecordError as error:
        raise RefusedError(str(error).replace(path, "the file")) from None
    finally:
        os.unlink(path)


def _game_json(game: str, options: Mapping[str, Any], deal: Any, actions: Any, players: Any, result: Json | None) -> Json:
    return {
        "game": game,
        "options": dict(options),
        "deal": deal,
        "actions": list(actions),
        "players": list(players),
        "result": result,
    }
