"""All settings of a training run, as one frozen value of nested dataclasses.

Every field says in its docstring what it is, and in its metadata in which range it lies; ``tilewe_jax.settings`` checks,
parses, lists and saves them. The settings of searches are those of ``search``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tilewe_jax import settings
from tilewe_jax.agents.base import names_code
from tilewe_jax.arena.ratings import Sprt
from tilewe_jax.game import Game, num_owned_cells
from tilewe_jax.networks.registry import registered_by
from tilewe_jax.registry import game_options, make_game
from tilewe_jax.search import GumbelRule, PuctRule, SearchSettings
from tilewe_jax.settings import setting


@dataclass(frozen=True)
class GameConfig:
    """The game that is learned."""

    id: str = setting("santorini")
    """Id of the game, as ``tilewe-jax games`` lists them, or ``module:factory`` for a game of your own."""
    options: Mapping[str, Any] | tuple[tuple[str, Any], ...] = setting((), holds="data")
    """Options of the game that differ from its defaults, a mapping; on the command line ``game.options.size=4``."""

    def __post_init__(self) -> None:
        try:
            given = dict(self.options)
        except (TypeError, ValueError):
            raise ValueError(f"options must be a JSON object, not {self.options!r}") from None
        object.__setattr__(self, "options", tuple((name, settings.frozen(value)) for name, value in given.items()))

    def make(self) -> Game[Any]:
        """The game. Raises ``ValueError`` where there is none with these options."""
        return make_game(self.id, dict(self.options))


@dataclass(frozen=True)
class NetworkConfig:
    """The network that learns."""

    architecture: str = setting("default")
    """Name of a registered architecture, see ``tilewe_jax.networks.register_architecture``; "default" is the game's own. Or
    ``module:factory``, a function of a game, a size and a key."""
    registered_by: str = setting("", may_change=True, holds="data")
    """Module or file that registered ``architecture``, unless it is built in. Filled in by itself, and shown where the
    architecture is missing."""
    size: str = setting("nano")
    """Name of a size, see ``tilewe_jax.networks.SIZES``."""
    init: str = setting("", may_change=True, holds="data")
    """Weights to begin with: the name of shipped ones, a file, or the folder of a run, of any game whose arrays have the same
    shapes; random ones unless given."""

    def __post_init__(self) -> None:
        module = registered_by(self.architecture) if isinstance(self.architecture, str) else None
        if module is not None:
            object.__setattr__(self, "registered_by", module)


@dataclass(frozen=True)
class SelfplayConfig:
    """How games are played to learn from."""

    num_games: int = setting(256, minimum=1)
    """Number of games played at once, on all devices together."""
    unroll_length: int = setting(32, minimum=1)
    """Number of moves played in each game in an iteration."""
    rule: Literal["gumbel", "puct"] = setting("gumbel")
    """Action selection of the search: Gumbel AlphaZero, or PUCT with Dirichlet noise."""
    search: SearchSettings = field(default=SearchSettings(num_simulations=32, candidate_pool=1024, score_weight=0.0))
    """Settings of a full search."""
    gumbel: GumbelRule = field(default=GumbelRule(gumbel_scale=1.0))
    """Settings of Gumbel action selection, where ``rule`` is "gumbel"."""
    puct: PuctRule = field(default=PuctRule(dirichlet_alpha=10 / 64, forced_playouts=2.0))
    """Settings of PUCT action selection, where ``rule`` is "puct". AlphaZero's ``dirichlet_alpha`` is about 10 divided by the
    number of candidates."""
    fast_simulations: int = setting(0, minimum=0)
    """Simulations of a fast search, whose move is played and not learned from (playout cap randomization, Wu 2019); 0 makes
    every search a full one."""
    full_search_prob: float = setting(0.25, minimum=0, maximum=1)
    """Probability of a full search, where there are fast searches."""
    num_determinizations: int = setting(4, minimum=1)
    """Number of determinizations that are searched for a move where information is hidden; they share the simulations."""
    playout_weight: float = setting(0.0, minimum=0, maximum=1)
    """Weight of playouts in the values of the network, in self-play and in evaluations; see ``search.EvaluatorSettings``."""
    playout_max_legal: int = setting(0, minimum=0)
    """Playouts are mixed into the values of positions with at most so many legal actions; 0 sets no limit."""
    temperature: float = setting(1.0, positive=True)
    """Temperature at which the first moves of a game are drawn from the improved policy."""
    temperature_plies: int = setting(8, minimum=0)
    """Number of plies whose move is drawn from the policy; later plies play the action that the search chooses."""
    resign_threshold: float = setting(0.0, minimum=0, maximum=1)
    """Value of a seat from which on the others resign; every tenth game is played out to count false resignations. 0 turns
    resignation off."""
    opponent: str = setting("", holds="agents")
    """Agent that plays a part of the games against the network that learns: any that the arena knows and that decides on the
    device; its searches begin anew at every move. In such a game the network that learns plays one seat, drawn at random, and
    this agent all others; its moves are learned from for values only."""
    opponent_fraction: float = setting(0.0, minimum=0, maximum=1)
    """Fraction of the games that are played against ``opponent``; in the others the network that learns plays all seats."""
    random_opening: int = setting(0, minimum=0)
    """Half of the games begin with random actions, one to so many of them, which are not recorded; 0 for none."""
    warmup_iterations: int = setting(0, minimum=0)
    """Number of iterations at the beginning in which games are played without the network, by ``warmup_policy`` or by searches
    with playouts."""
    warmup_policy: str = setting("")
    """Policy that plays these games without search: one of the game's own, or "heuristic", which draws from
    ``Game.heuristic_logits``. The network imitates it. Without a name, searches with playouts play."""
    warmup_samples: int = setting(16, minimum=1)
    """Number of random actions of which a move in playouts is the best one, in the warm-up and later, see
    ``search.playout_evaluator``."""


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer."""

    replay_size: int = setting(512, minimum=1)
    """Number of positions that the replay buffer holds per game played at once."""
    min_replay_size: int = setting(64, minimum=1, may_change=True)
    """Number of positions per game played at once from which on the network learns."""
    replay_ratio: float = setting(4.0, positive=True, may_change=True)
    """Number of times that a position is learned from, on average."""
    surprise_fraction: float = setting(0.5, minimum=0, maximum=1, may_change=True)
    """Fraction of the positions that are drawn in proportion to how much the search changed the policy (policy surprise
    weighting, Wu 2019); the others are drawn uniformly."""
    records: str = setting("", may_change=True, holds="data")
    """A file of recorded games, or a folder of such files, whose positions are learned from beside those of self-play: games
    against programs of others, as ``ladder`` writes them, or of people. Values are learned from them, and the policy is not."""
    records_fraction: float = setting(0.1, minimum=0, maximum=0.9, may_change=True)
    """Fraction of the positions of a batch that are drawn from ``records``, where there are any."""


@dataclass(frozen=True)
class LossConfig:
    """What is learned from a position."""

    outcome_loss_weight: float = setting(1.0, minimum=0, may_change=True)
    """Weight of the loss of the outcome, against that of the policy."""
    score_loss_weight: float = setting(0.25, minimum=0, may_change=True)
    """Weight of the loss of the final ``Game.heuristic_value``, against that of the policy."""
    root_value_weight: float = setting(0.25, minimum=0, maximum=1, may_change=True)
    """Weight of the value of the search, against the final outcome, in the target of the outcome."""
    td_lambda: float = setting(1.0, minimum=0, maximum=1, may_change=True)
    """Lambda of the targets of the outcome, TD(lambda): 1 learns from the final outcome, less of it from the values of the
    searches of the moves that follow, each counting lambda times as much as the one before it, and from the outcome for the
    rest."""
    ownership_loss_weight: float = setting(0.0, minimum=0)
    """Weight of the loss of ``Game.ownership`` at the end of the game, a mean over the cells, against that of the policy (Wu
    2019). It is learned by a head that training alone has, and that is no part of the weights that are kept."""
    augment: bool = setting(True, may_change=True)
    """Whether a position is learned from as seen through a random symmetry of the game."""


@dataclass(frozen=True)
class OptimizerConfig:
    """The optimizer: AdamW with a linear warm-up, and an exponential moving average of the weights."""

    batch_size: int = setting(256, minimum=1)
    """Number of positions in a step of the optimizer, on all devices together."""
    learning_rate: float = setting(2e-3, positive=True, may_change=True)
    """Learning rate after the warm-up."""
    warmup_steps: int = setting(100, minimum=1, may_change=True)
    """Number of steps in which the learning rate rises to its value."""
    decay_steps: int = setting(0, minimum=0, may_change=True)
    """Number of steps after the warm-up in which the learning rate falls along a cosine to a twentieth of its value, where it
    stays; 0 keeps it."""
    weight_decay: float = setting(1e-4, minimum=0, may_change=True)
    """Weight decay of AdamW; biases and gains do not decay."""
    max_grad_norm: float = setting(1.0, positive=True, may_change=True)
    """Global norm to which larger gradients are clipped."""
    ema_decay: float = setting(0.995, minimum=0, maximum=1, may_change=True)
    """Decay per step of the exponential moving average of the weights, which plays, is evaluated and is kept."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Games against fixed opponents while the run goes on."""

    eval_every: int = setting(50, minimum=1, may_change=True)
    """Number of iterations between two evaluations."""
    eval_games: int = setting(128, minimum=1, may_change=True)
    """Number of games of an evaluation against each opponent."""
    eval_simulations: int = setting(32, minimum=1, may_change=True)
    """Number of simulations of the agent that is evaluated."""
    eval_opening: int = setting(2, minimum=0, may_change=True)
    """Number of random moves at the beginning of these games, without which deterministic agents would repeat games."""
    opponents: tuple[str, ...] = setting(("random",), may_change=True, holds="agents")
    """Opponents, as the arena names agents; "last" is the agent of the evaluation before."""
    gate: tuple[float, float] | None = setting(None)
    """Two Elo differences: newer weights are accepted for self-play only where a sequential test (SPRT) says that they are
    stronger by the second and not by the first. Without a gate the newest always play."""


@dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints, from which a run is resumed."""

    checkpoint_every: int = setting(20, minimum=1, may_change=True)
    """Number of iterations between two checkpoints."""
    checkpoint_minutes: float = setting(10.0, minimum=0, may_change=True)
    """Minutes of wall-clock time after which a checkpoint is written although the number of iterations is not reached; 0 writes
    none by time. The first checkpoint, of iteration 0, is written before anything is played."""
    num_kept: int = setting(2, minimum=1, may_change=True)
    """Number of checkpoints that are kept; older ones of this run are deleted."""
    slim: bool = setting(False, may_change=True)
    """Whether checkpoints leave out the replay buffer and the games under way, so that they are small enough to be carried to
    another machine. A run that goes on from one begins new games, and learns again once the buffer holds ``min_replay_size``
    positions of each."""


@dataclass(frozen=True)
class TrainConfig:
    """A training run. Raises ``ValueError`` for settings out of their ranges, naming the setting."""

    game: GameConfig = field(default=GameConfig())
    """The game that is learned."""
    network: NetworkConfig = field(default=NetworkConfig())
    """The network that learns."""
    selfplay: SelfplayConfig = field(default=SelfplayConfig())
    """How games are played to learn from."""
    replay: ReplayConfig = field(default=ReplayConfig())
    """The replay buffer."""
    loss: LossConfig = field(default=LossConfig())
    """What is learned from a position."""
    optimizer: OptimizerConfig = field(default=OptimizerConfig())
    """The optimizer."""
    evaluation: EvaluationConfig = field(default=EvaluationConfig())
    """Games against fixed opponents while the run goes on."""
    checkpoint: CheckpointConfig = field(default=CheckpointConfig())
    """Checkpoints, from which a run is resumed."""
    tensorboard: bool = setting(False, may_change=True)
    """Whether events for TensorBoard are written beside the JSON lines, which hold the same values; needs the extra
    ``tensorboard``."""
    iterations: int = setting(1000, minimum=1, may_change=True)
    """Number of iterations of self-play and learning."""
    max_minutes: float = setting(0.0, minimum=0, may_change=True)
    """Minutes of wall-clock time after which the run ends; 0 sets no limit. They count from the start of the command, with
    compilation, evaluations and checkpoints, and over all commands that resume the run. An iteration that would end too late,
    as long as the one before, is not begun; but a command always finishes its first one, which compiles."""
    seed: int = setting(0, minimum=-(2**31), maximum=2**31 - 1)
    """Seed of all random numbers of the run."""

    def __post_init__(self) -> None:
        settings.validate(self)
        replay, unroll = self.replay, self.selfplay.unroll_length
        if replay.replay_size % unroll:
            raise ValueError(
                f"replay.replay_size must be a multiple of selfplay.unroll_length, {unroll}, not {replay.replay_size}"
            )
        if replay.min_replay_size > replay.replay_size:
            raise ValueError(
                f"replay.min_replay_size must be at most replay.replay_size, {replay.replay_size}, not {replay.min_replay_size}"
            )
        if bool(self.selfplay.opponent) != (self.selfplay.opponent_fraction > 0):
            raise ValueError(
                "selfplay.opponent and selfplay.opponent_fraction belong together: an agent, and the fraction of the games"
                f" against it, above 0; not {self.selfplay.opponent!r} and {self.selfplay.opponent_fraction}"
            )
        if self.selfplay.playout_max_legal and not self.selfplay.playout_weight:
            raise ValueError("selfplay.playout_max_legal limits playouts that selfplay.playout_weight mixes in; set that too")
        if self.loss.td_lambda < 1 and self.game.make().num_players < 2:
            raise ValueError("loss.td_lambda below 1 needs a game of at least two players, whose outcomes sum to 1")
        if self.loss.ownership_loss_weight and not num_owned_cells(self.game.make()):
            raise ValueError(f"loss.ownership_loss_weight needs a game whose cells have owners, not {self.game.id}")
        if self.evaluation.gate is not None:
            Sprt(*self.evaluation.gate)

    @property
    def num_updates(self) -> int:
        """Number of steps of the optimizer in an iteration."""
        selfplay = self.selfplay
        searched = selfplay.num_games * selfplay.unroll_length
        learned = searched * (selfplay.full_search_prob if selfplay.fast_simulations else 1)
        return max(1, round(learned * self.replay.replay_ratio / self.optimizer.batch_size))


def changed(config: TrainConfig, given: dict[str, str]) -> TrainConfig:
    """The settings with some changed by text, by dotted name; ``game.options.size`` is an option of the game.

    Raises ``ValueError`` that names the setting.
    """
    prefix = "game.options."
    config = settings.changed(config, {name: text for name, text in given.items() if not name.startswith(prefix)})
    texts = {name.removeprefix(prefix): text for name, text in given.items() if name.startswith(prefix)}
    game = replace(config.game, options={**dict(config.game.options), **game_options(config.game.id, texts)})
    return replace(config, game=game)


def code_in_settings(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts in settings as JSON that name code, each after the dotted name of its setting.

    A text names code if it has a colon, except in settings that hold agents or data; see ``holds`` of ``settings.setting``.
    """
    holds = {name: entry.metadata.get("holds", "code") for name, entry, _, _ in settings.leaves(TrainConfig())}

    def texts(value: Any, name: str, kind: str) -> Iterator[tuple[str, str]]:
        kind = holds.get(name, kind)
        if isinstance(value, dict):
            for key, item in value.items():
                yield from texts(item, f"{name}.{key}" if name else key, kind)
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from texts(item, name, kind)
        elif isinstance(value, str) and (names_code(value) if kind == "agents" else kind == "code" and ":" in value):
            yield name, value

    return texts(content, "", "code")
