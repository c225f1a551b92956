"""Host positions of games without a plain-Python form, computed by the functions of the game on the device."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tilewe_jax.host import common_view, require_legal
from tilewe_jax.utils.backends import require_backend
from tilewe_jax.utils.checks import action_id, out_of_range


@dataclass(frozen=True)
class DevicePosition:
    """A ``HostPosition`` of any game, computed by its functions on the device."""

    game: Any
    state: Any

    @cached_property
    def _facts(self) -> "_Facts":
        require_backend()
        facts, _ = _compiled(self.game)
        values: _Facts = jax.device_get(facts(self.state))
        return values

    @property
    def current_player(self) -> int:
        return int(self._facts.current_player)

    @property
    def is_terminal(self) -> bool:
        return bool(self._facts.is_terminal)

    def scores(self) -> tuple[int, ...]:
        return tuple(self._facts.scores.tolist())

    def legal_actions(self) -> list[int]:
        return [int(action) for action in np.flatnonzero(self._facts.legal_action_mask)]

    def explain(self, action: int) -> str | None:
        action = action_id(action)
        if self.is_terminal:
            return "the game is over"
        if not 0 <= action < self.game.num_actions:
            return out_of_range(self.game.num_actions)
        legal = self.legal_actions()
        return None if action in legal else f"not one of the {len(legal)} legal actions"

    def after(self, action: int) -> "DevicePosition":
        _, apply = _compiled(self.game)
        return replace(self, state=apply(self.state, jnp.int32(require_legal(self, action))))

    def action_name(self, action: int) -> str:
        name: str = self.game.action_name(action_id(action), self.state)
        return name

    def action_of_name(self, name: str) -> int:
        names = {self.action_name(action): action for action in self.legal_actions()}
        if name not in names:
            raise ValueError(f"{name!r} is not one of the {len(names)} legal moves: {', '.join(list(names)[:3])}, ...")
        return names[name]

    def text(self, color: bool = False, *, last_action: int | None = None, seat: int | None = None, open: bool = True) -> str:
        del last_action, seat  # ``Game.text`` can neither highlight an action nor hide information from a seat
        if open or self.is_terminal or not self.game.has_hidden_information:
            text: str = self.game.text(self.state, color)
            return text
        return f"{self.game.id} hides information from its players until its end"

    def svg(self, *, last_action: int | None = None) -> str:
        del last_action
        picture: str = self.game.svg(self.state)
        return picture

    def _repr_svg_(self) -> str:
        return self.svg()

    def view(self, *, seat: int | None = None, open: bool = False) -> dict[str, Any]:
        view = common_view(self, "text", seat)
        view["text"] = self.text(seat=seat, open=open)
        return view

    def action_view(self, action: int) -> dict[str, Any]:
        action = require_legal(self, action)
        return {"id": action, "name": self.action_name(action), "kind": "other"}


class _Facts(NamedTuple):
    """The results of the rules for a position, as NumPy arrays."""

    legal_action_mask: NDArray[np.bool_]
    current_player: NDArray[np.int32]
    is_terminal: NDArray[np.bool_]
    scores: NDArray[np.int32]


@lru_cache(maxsize=8)
def _compiled(game: Any) -> tuple[Any, Any]:
    """Compile two functions of a game, ``state -> _Facts`` and ``apply``, once per game.

    Without ``jax.jit`` every call would compile the loops in the rules again.
    """

    def facts(state: Any) -> _Facts:
        values: Any = (game.legal_action_mask(state), game.current_player(state), game.is_terminal(state), game.scores(state))
        return _Facts(*values)

    return jax.jit(facts), jax.jit(game.apply)
