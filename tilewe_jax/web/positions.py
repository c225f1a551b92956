"""Positions that a client sets up: checked by the rules, with a view, and as a file of records for a study."""

from random import SystemRandom
from typing import Any

from tilewe_jax import records
from tilewe_jax.host import POSITION, HostGame
from tilewe_jax.web.catalog import make_game, new_deal
from tilewe_jax.web.session import RefusedError

Json = dict[str, Any]


def deal_of(host: HostGame, facts: Any) -> Json:
    """Return the deal of a game that starts from a position, with random values for everything that the facts leave to chance.

    Raises ``RefusedError`` for a position that breaks the rules, and for a finished position.
    """
    if host.positions is None:
        raise RefusedError(f"{host.id} does not start from positions", POSITION)
    try:
        deal = {POSITION: host.positions.draw(facts, SystemRandom())}
        is_over = host.init_from_deal(deal).is_terminal
    except ValueError as error:
        raise RefusedError(str(error), POSITION) from None
    if is_over:
        raise RefusedError("this position is finished, because nobody can move", POSITION)
    return deal


def described(request: Any) -> Json:
    """Return a position of a client with its view, or the usual start without a position.

    The answer has ``rule``, the rule that the position breaks; if it is ``None``, also ``position``, its facts; ``view``;
    ``over``, whether nobody can move; ``orientations`` of pieces; and ``record``, a file for a study. Raises ``RefusedError``
    for another request.
    """
    if not isinstance(request, dict):
        raise RefusedError("the body must be a JSON object")
    try:
        host = make_game(request.get("game"), request.get("options", {}), only_offered=True)
    except (TypeError, ValueError) as error:
        raise RefusedError(str(error), "game") from None
    if host.positions is None:
        raise RefusedError(f"{host.id} does not start from positions", "game")
    facts = request.get(POSITION)
    try:
        deal = new_deal(host) if facts is None else {POSITION: facts}
        position = host.init_from_deal(deal)
    except ValueError as error:
        return {"rule": str(error)}
    complete = host.positions.write(position)
    names = tuple(f"player {seat + 1}" for seat in range(host.num_players))
    record = records.Record({POSITION: complete}, (), (), (), names)
    return {
        "rule": None,
        "position": complete,
        "view": position.view(open=True),
        "over": position.is_terminal,
        "orientations": list(host.shapes) or None,
        "record": "".join(records.lines(host, [record])),
    }
