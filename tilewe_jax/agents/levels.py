"""Named agents: ``level:N``, from beginner to strongest, and ``best``, the strongest search.

Weak levels use few simulations and candidates and sample the action by value (``value_temperature``), so that they err in small
things more than in large ones. Strong levels search more. The highest level is ``best`` with many simulations, if that beats
the level before.

Ratings are Elo among the levels of one game, 0 for the weakest, accurate to about 200 (300 in ``classic_2``). They are not
comparable between games. ``tilewe-jax match level:1 level:2 ... --game GAME`` measures them.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # the game server uses levels without JAX
    from tilewe_jax.game import Game
    from tilewe_jax.host import HostGame


class Level(NamedTuple):
    """A level of a game."""

    agent: str
    """Text of the agent, see ``AgentSpec``."""
    elo: int
    """Rating among the levels of the game."""


_PERCEPTRON = "puct:c_init=0.5,playout_weight=0.5,playout_max_legal=100,"
"""Common settings of the searches with the perceptron of a polyomino game."""
_PLAYOUTS = "puct:c_init=0.5,num_playouts=8"
"""The search of the classic boards, which wins more without a network in the same CPU time."""
BEST = {
    "tilewe": _PERCEPTRON + "candidate_pool=256,network=tilewe",
    "duo": _PERCEPTRON + "candidate_pool=256,network=duo",
    "duo_official": _PERCEPTRON + "candidate_pool=256,network=duo_official",
    "classic": _PLAYOUTS,
    "classic_2": _PLAYOUTS,
    "santorini": "puct:c_init=0.5,lookahead=true,network=santorini",
    "triominos": "puct:num_determinizations=1,num_candidates=32,candidate_pool=64",  # stronger than its network
}
"""The strongest search by game id: tuned settings, and the shipped network if it makes the search stronger."""
_POLYOMINO = (
    "puct:num_simulations=4,num_candidates=4,num_playouts=0,priors=false,max_depth=1,value_temperature=0.05",
    "puct:num_simulations=8,num_candidates=8,candidate_pool=8,root_candidate_pool=8,max_depth=2,value_temperature=0.1",
    "puct:num_simulations=16,num_candidates=16,candidate_pool=32,root_candidate_pool=32,max_depth=3,value_temperature=0.05",
    "puct:num_simulations=16",
    "puct:num_simulations=256",
    "puct:num_simulations=1024",
)
_SANTORINI = (
    "puct:num_simulations=4,num_candidates=4,num_playouts=0,priors=false,max_depth=1,value_temperature=1.0",
    "puct:num_simulations=16,num_candidates=16,root_candidate_pool=16,num_playouts=0,max_depth=1,value_temperature=0.1",
    "puct:num_simulations=32,num_playouts=0,max_depth=2,value_temperature=0.05",
    "puct:num_simulations=32,num_playouts=0",
    "puct:num_simulations=32",
    "puct:num_simulations=512",
    BEST["santorini"] + ",num_simulations=256",
)
_TRIOMINOS = (
    "puct:num_simulations=4,num_candidates=4,num_playouts=0,priors=false,max_depth=1,value_temperature=1.0,num_determinizations=1",
    "puct:num_simulations=8,num_candidates=8,num_playouts=0,max_depth=2,value_temperature=0.1,num_determinizations=1",
    "puct:num_simulations=8,num_candidates=8,candidate_pool=32,num_determinizations=1",
    "puct:num_simulations=32,num_candidates=32,candidate_pool=64,num_determinizations=1",
)
_MANY = ",num_simulations=1024"
_SAME_RULES = [("placement", "random"), ("movegen", "conv")]
"""Options of games that do not affect whether a network fits."""
_ANY_SIZE = ("santorini",)
"""Games with a convolutional network, which fits boards of all sizes."""


def _levels(agents: tuple[str, ...], *ratings: int) -> tuple[Level, ...]:
    return tuple(Level(agent, elo) for agent, elo in zip(agents, ratings, strict=True))


LEVELS: dict[str, tuple[Level, ...]] = {
    "tilewe": _levels(_POLYOMINO, 0, 389, 636, 832, 909, 1162),
    "duo": _levels((*_POLYOMINO, BEST["duo"] + _MANY), 0, 985, 1487, 1537, 1892, 2193, 2379),
    "duo_official": _levels((*_POLYOMINO, BEST["duo_official"] + _MANY), 0, 985, 1484, 1795, 2079, 2354, 2751),
    "classic": _levels((*_POLYOMINO, BEST["classic"] + _MANY), 0, 411, 553, 744, 863, 965, 1043),
    "classic_2": _levels((*_POLYOMINO, BEST["classic_2"] + _MANY), 0, 739, 1450, 2160, 2560, 2816, 2893),
    "santorini": _levels(_SANTORINI, 0, 1010, 1399, 1820, 2108, 3144, 4399),
    "triominos": _levels(_TRIOMINOS, 0, 450, 666, 785),
}
"""Levels by game id, the weakest first."""


def level_names(game: "Game[Any]") -> list[str]:
    """Return the names of the levels of a game, the weakest first."""
    return [f"level:{number}" for number in range(1, len(LEVELS.get(game.id, ())) + 1)]


def is_name(text: str) -> bool:
    """Return whether a text is ``level:N`` or ``best``, for any game."""
    return text.partition(":")[0] in ("level", "best")


def agent_of(game: "Game[Any] | HostGame", text: str) -> str:
    """Replace ``level:N`` or ``best`` by the text of its agent; other texts are returned unchanged.

    Settings after ``best``, as in ``best:num_simulations=400``, override its settings. If the network does not fit the options
    of the game, or the game is not in ``BEST``, ``best`` is ``puct``, and a level with a network is the strongest lower level
    without one.

    Raises ``ValueError`` for an unknown level.
    """
    kind, _, rest = text.partition(":")
    fits = all(option in _SAME_RULES or (option[0] == "size" and game.id in _ANY_SIZE) for option in game.options.items())
    if kind == "best":
        kind, _, settings = BEST.get(game.id, "puct").partition(":") if fits else ("puct", "", "")
        given = rest.split(",") if rest else []
        names = {item.partition("=")[0] for item in given}
        kept = [item for item in settings.split(",") if item and item.partition("=")[0] not in names]
        return f"{kind}:{','.join([*kept, *given])}" if kept or given else kind
    if kind != "level":
        return text
    levels = LEVELS.get(game.id)
    if levels is None:
        raise ValueError(f"{game.id} has no levels; games with levels: {', '.join(LEVELS)}")
    if not rest:
        raise ValueError(f"level needs a number after a colon, from level:1 to level:{len(levels)} in {game.id}")
    if not rest.isdecimal() or not 1 <= int(rest) <= len(levels):
        raise ValueError(f"{game.id} has no level {rest!r}; it has level:1 to level:{len(levels)}")
    agents = [level.agent for level in levels[: int(rest)]]
    return [agent for agent in agents if fits or "network=" not in agent][-1]
