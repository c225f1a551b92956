"""Games of a match that are played on the device."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewe_jax.game import Game
from tilewe_jax.lanes import random_words


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Play:
    """A batch of games in progress; arrays by seat are ``[seats, batch]``."""

    state: Any
    """States, ``[batch, ...]``."""
    keys: jax.Array
    """Random key of each game."""
    deals: jax.Array
    """Key of the chance outcomes at the start of each game; equal in paired games."""
    forfeited: jax.Array
    """True if the player in each seat has forfeited."""
    plies: jax.Array
    """Number of actions of each seat."""
    legal: jax.Array
    """Sum of the number of legal actions over the actions of each seat."""
    opening: jax.Array
    """Opening actions of each game, padded with -1, ``[batch, actions]``."""


@dataclass(frozen=True, eq=False)
class DeviceGames:
    """The steps in which ``Match`` plays a batch of games, as pure functions of the games."""

    game: Game[Any]
    openings: np.ndarray
    """Lists of opening actions, padded with -1, which games use in turn; ``int32[openings, actions]``."""
    num_random: int
    """Number of random moves at the start of each game."""
    is_paired: bool
    """True if consecutive games, one for each seat, have the same deal and opening."""

    def start(self, number: jax.Array, key: jax.Array) -> Play:
        """Create new games from their numbers and the key of the match."""
        fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
        keys = fold(key, number)
        deals = fold(key, number // self.game.num_players) if self.is_paired else keys
        openings = jnp.asarray(self.openings)[number // self.game.num_players % len(self.openings)]
        zeros = jnp.zeros((self.game.num_players, len(number)), jnp.int32)
        return Play(jax.vmap(self.game.init)(deals), keys, deals, zeros != 0, zeros, zeros, openings)

    def keys(self, play: Play, ply: jax.Array) -> jax.Array:
        """Return two keys per game: for the player, and for a random action after a forfeit."""
        return jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, ply)))(play.keys)

    def draws(self, keys: jax.Array, deals: jax.Array, ply: jax.Array) -> jax.Array:
        """Return the random words of ``HostGames``: for the policy ``random``, after a forfeit, and for an opening."""

        def words(key: jax.Array, deal: jax.Array) -> jax.Array:
            assert self.game.host_draws
            decision, forfeit = jax.random.split(jax.random.fold_in(key, ply))
            others = [random_words(key, 1)[0] for key in (forfeit, jax.random.fold_in(deal, ply))]
            return jnp.stack([self.game.host_draws.word(decision), *others])

        return jax.vmap(words, out_axes=1)(keys, deals)

    def movers(self, play: Play, ply: jax.Array, seating: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the opening actions, padded with -1, and the players that decide, -1 for none."""
        over = jax.vmap(self.game.is_terminal)(play.state)
        seat = jax.vmap(self.game.current_player)(play.state)
        forfeited = jnp.take_along_axis(play.forfeited, seat[None], axis=0)[0]
        action = self._opening_action(play, ply)
        waits = over | forfeited | (action >= 0)
        return action, jnp.where(waits, -1, jnp.take_along_axis(seating, seat[None], axis=0)[0])

    def _opening_action(self, play: Play, ply: jax.Array) -> jax.Array:
        """Return the opening action at a ply, -1 after the opening."""
        action = jnp.full(len(play.opening), -1, jnp.int32)
        if self.num_random:
            keys = jax.vmap(jax.random.fold_in, (0, None))(play.deals, ply)
            random_action = jax.vmap(self.game.sample_action)(play.state, keys)
            action = jnp.where(ply < self.num_random, random_action, action)
        if length := play.opening.shape[1]:
            given = jnp.take(play.opening, jnp.minimum(ply, length - 1), axis=1)
            action = jnp.where(ply < length, given, action)
        return action

    def move(self, play: Play, action: jax.Array) -> tuple[Play, jax.Array, jax.Array]:
        """Play the legal actions; also return the actions played, -1 for none, and the games that refused an action."""
        game, state = self.game, play.state
        over = jax.vmap(game.is_terminal)(state)
        legal = jax.vmap(game.is_legal)(state, action)
        action = jnp.where(legal, action, -1)
        seats = jnp.arange(game.num_players, dtype=jnp.int32)[:, None]
        moved = ((seats == jax.vmap(game.current_player)(state)[None]) & legal[None]).astype(jnp.int32)
        after = replace(
            play,
            state=jax.vmap(game.apply)(state, action),
            plies=play.plies + moved,
            legal=play.legal + moved * jax.vmap(game.num_legal)(state)[None],
        )
        return after, action, ~legal & ~over

    def forfeit(self, play: Play, ply: jax.Array, action: jax.Array, refused: jax.Array) -> tuple[Play, jax.Array]:
        """Let the players to move forfeit in the games that refused their actions, and replace these by random actions."""
        seats = jnp.arange(self.game.num_players, dtype=jnp.int32)[:, None]
        forfeits = (seats == jax.vmap(self.game.current_player)(play.state)[None]) & refused[None]
        random_action = jax.vmap(self.game.sample_action)(play.state, self.keys(play, ply)[:, 1])
        return replace(play, forfeited=play.forfeited | forfeits), jnp.where(refused, random_action, action)

    def results(self, state: Any) -> tuple[jax.Array, jax.Array]:
        """Return the scores and the returns of finished games."""
        return jax.vmap(self.game.scores)(state), jax.vmap(self.game.returns)(state)
