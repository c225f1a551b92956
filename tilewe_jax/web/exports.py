"""Exports of a game (records, replays, pictures), and studies of uploaded game files."""

import asyncio
import json
import logging
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewe_jax import records, variations
from tilewe_jax.draw import Options, draw
from tilewe_jax.explorer import can_explore
from tilewe_jax.formats import blksgf
from tilewe_jax.formats.blokus import blokus_game
from tilewe_jax.host import POSITION, HostGame, HostPosition
from tilewe_jax.replay import recorded
from tilewe_jax.replay.animation import animated_svg, gif
from tilewe_jax.replay.frames import followed, replay
from tilewe_jax.utils.extras import MissingExtraError
from tilewe_jax.utils.files import parse_json
from tilewe_jax.web.catalog import make_game, new_deal
from tilewe_jax.web.forms import fits
from tilewe_jax.web.reviews import Reviews
from tilewe_jax.web.room import encoded
from tilewe_jax.web.rooms import Rooms
from tilewe_jax.web.session import RefusedError, Session, Setup, legal_of, started
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
            return blksgf.render(blokus_game(host), session.actions, names, deal=session.setup.deal)
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


def facts_of(session: Session, number: int) -> Json:
    """Return the position after ``number`` moves as facts, with its game and options. Raises ``RefusedError``."""
    host = session.setup.host
    require_shown(session)
    if host.positions is None:
        raise RefusedError(f"{host.id} does not start from positions", POSITION)
    return {"game": host.id, "options": dict(host.options), POSITION: host.positions.write(session.position_at(number))}


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
            study = {"number": number, "games": count, "explored": can_explore(host)}
            return replay_text({**built, **study, **_branches(host, values, values)})

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
        actions: Any = request.get("actions", values["actions"])
        if not fits(actions, [int]):
            raise RefusedError("actions must be a list of action ids", "actions")
        if type(move) is not int or not 0 <= move <= len(actions):
            raise RefusedError(f"move must be an integer from 0 to {len(actions)}", "move")

        def build() -> Session:
            session = study_session(make_game(values["game"], values["options"]), values)
            for action in actions[:move]:
                session = session.played(session.mover, action)
            return session

        try:
            async with self._reading:
                session = await asyncio.to_thread(build)
        except (RefusedError, TypeError, ValueError) as error:
            raise RefusedError(f"game {number}: {error}", "number") from None
        agent, simulations = request.get("agent"), request.get("simulations")
        return await self._rooms.analysis(session, move, agent, simulations, address=address)

    async def line(self, study_id: str, request: Any) -> Json:
        """Return a position after moves that leave a game, for a client that plays on from a position.

        Args:
          study_id: the study.
          request: ``number`` of the game; ``actions`` from its start; ``move``, the number of moves that the client knows; and
            optionally ``explain``, an action.

        Returns:
          ``moves`` and ``frames`` after the known moves; ``legal`` and ``orientations`` as in states of games; and ``over``,
          the scores and returns of a terminal position, otherwise ``None``. With ``explain`` only the ``rule`` that the action
          breaks.

        Raises ``RefusedError``.
        """
        is_form = fits(request, {"number": int, "actions": [int], "move": int})
        if not is_form or not 0 <= request["move"] <= len(request["actions"]):
            raise RefusedError('the body must be like {"number": 1, "actions": [3190], "move": 0}')
        values, _ = await self._game(study_id, request["number"])
        actions, known, explain = request["actions"], request["move"], request.get("explain")
        if explain is not None and type(explain) is not int:
            raise RefusedError("explain must be an action id", "explain")

        def build() -> Json:
            host = make_game(values["game"], values["options"])
            if len(actions) > host.max_steps:
                raise RefusedError(f"a game has at most {host.max_steps} moves", "actions")
            start = study_session(host, values).setup.start
            steps = list(followed(start, actions))
            position = steps[-1][0] if steps else start
            if explain is not None:
                return {"rule": position.explain(explain)}
            result = {"scores": list(position.scores()), "returns": list(host.returns(position))}
            return {
                "moves": [move for _, move in steps[known:]],
                "frames": [after.view(open=True) for after, _ in steps[known:]],
                "legal": legal_of(host, position),
                "orientations": list(host.shapes) or None,
                "over": result if position.is_terminal else None,
                "position": host.positions.write(position) if host.positions else None,
            }

        async with self._reading:
            try:
                return await asyncio.to_thread(build)
            except (TypeError, ValueError) as error:
                raise RefusedError(str(error), "actions") from None

    async def branches(self, study_id: str, request: Any) -> Json:
        """Return comments and variations of a client for a game, with views of their moves. Raises ``RefusedError``."""
        values, host = await self._branched(study_id, request)
        async with self._reading:
            return await asyncio.to_thread(_branches, host, values, values)

    async def record(self, study_id: str, request: Any, form: str) -> str:
        """Return a game of a study with the comments and variations of a client as a file. Raises ``RefusedError``."""
        values, host = await self._branched(study_id, request)
        extra = {name: values[name] for name in variations.FIELDS if values[name]}
        result = values["result"] or {"scores": (), "returns": ()}
        actions, names = tuple(values["actions"]), tuple(values["players"])
        if form == "blksgf":
            try:
                return blksgf.render(blokus_game(host), actions, names, extra, values["deal"])
            except ValueError as error:
                raise RefusedError(str(error), "format", 409) from None
        record = records.Record(values["deal"], actions, tuple(result["scores"]), tuple(result["returns"]), names, extra)
        return "".join(records.lines(host, [record]))

    async def _branched(self, study_id: str, request: Any) -> tuple[Json, HostGame]:
        """A game of a study with the comments and variations of a request."""
        if not fits(request, {"number": int}):
            raise RefusedError('the body must be like {"number": 1, "comments": {}, "variations": []}')
        values, _ = await self._game(study_id, request["number"])
        async with self._reading:
            try:
                host = await asyncio.to_thread(make_game, values["game"], values["options"])
                deal = study_session(host, values).setup.deal
                tree = await asyncio.to_thread(variations.checked, host, deal, values["actions"], request)
            except (TypeError, ValueError) as error:
                raise RefusedError(str(error), "variations") from None
        _check_moves(variations.count_moves(tree["variations"]))
        return {**values, **tree}, host

    async def review(self, study_id: str, number: int, address: str = "") -> Json:
        """Return the review of a game of a study, see ``reviews.Reviews.get``. Raises ``RefusedError``."""
        values, _ = await self._game(study_id, number)
        try:
            host = await asyncio.to_thread(make_game, values["game"], values["options"])
            start = study_session(host, values)
            return await self._reviews.get(host, start.setup.deal, values["actions"], address)
        except (TypeError, ValueError) as error:
            raise RefusedError(f"game {number}: {error}", "number") from None

    async def _game(self, study_id: str, number: int) -> tuple[Json, int]:
        return await asyncio.to_thread(self._read, study_id, number)

    def _read(self, study_id: str, number: int) -> tuple[Json, int]:
        """A game of a study, and the number of its games. Raises ``RefusedError`` and ``StoreError``."""
        games = self.games(study_id, number)
        return games[number - 1], len(games)

    def games(self, study_id: str, number: int) -> list[Json]:
        """Return the games of a study, of which game ``number`` is checked. Raises ``RefusedError`` and ``StoreError``."""
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
        return games


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
            session = study_session(make_game(values["game"], values["options"]), values)
            for action in values["actions"]:
                session = session.played(session.mover, action)
        except RefusedError as error:
            raise ValueError(f"game {number}: {error}") from None


def _branches(host: HostGame, values: Mapping[str, Any], tree: Mapping[str, Any]) -> Json:
    """Comments and variations of a game, with ``moves`` and ``frames`` of the variations. Raises ``ValueError``."""
    start = study_session(host, values).setup.start
    main = [start, *(position for position, _ in followed(start, values["actions"]))]

    def shown(positions: Sequence[HostPosition], line: Mapping[str, Any]) -> Json:
        return {
            "comments": line.get("comments") or {},
            "variations": [branch(positions[: each["move"] + 1], each) for each in line.get("variations") or ()],
        }

    def branch(positions: Sequence[HostPosition], line: Mapping[str, Any]) -> Json:
        steps = list(followed(positions[-1], line["actions"], len(positions)))
        moves, after = [move for _, move in steps], [position for position, _ in steps]
        frames = [position.view(open=True) for position in after]
        return {"move": line["move"], "moves": moves, "frames": frames, **shown([*positions, *after], line)}

    return shown(main, tree)


def _check_moves(moves: int) -> None:
    if moves > MAX_STUDY_MOVES:
        raise RefusedError(f"the games of a study must have at most {MAX_STUDY_MOVES:,} moves, got {moves:,}")


def study_session(host: HostGame, values: Mapping[str, Any]) -> Session:
    """Return a session at the start of a game of a study, without players."""
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
    if len(file.games) > MAX_STUDY_GAMES:
        raise RefusedError(f"a study must have at most {MAX_STUDY_GAMES:,} games, got {len(file.games):,}")
    moves = sum(len(each.actions) for each in file.games)
    _check_moves(moves)
    try:
        trees = [_tree(each) for each in file.games]
    except ValueError as error:
        raise RefusedError(str(error)) from None
    _check_moves(moves + sum(variations.count_moves(tree["variations"]) for tree in trees))
    games = [
        {
            "game": each.game.id,
            "options": dict(each.game.options),
            "deal": each.deal,
            "actions": list(each.actions),
            "players": list(each.names),
            "result": each.result,
            **{name: value for name, value in tree.items() if value},
        }
        for each, tree in zip(file.games, trees, strict=True)
    ]
    return games, list(file.notes)


def _tree(game: recorded.RecordedGame) -> Json:
    """The comments and variations of a game. Raises ``ValueError``."""
    if not any(name in game.extra for name in variations.FIELDS):
        return {"comments": {}, "variations": []}  # the moves are replayed when the study is opened
    return variations.checked(game.game, game.deal, game.actions, game.extra)


def _of_blksgf(text: str) -> recorded.GameFile:
    """The games of a ``.blksgf`` file with their comments and variations."""
    if text.count(";") > MAX_STUDY_GAMES + MAX_STUDY_MOVES:  # checked before the moves are replayed
        raise RefusedError(f"a study must have at most {MAX_STUDY_GAMES:,} games and {MAX_STUDY_MOVES:,} moves")
    try:
        return recorded.of_sgf(blksgf.parse(text, keep=True))
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
