"""The command that writes a network to a file of ONNX."""

import json
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from tilewe_jax.cli.common import FailedError, Flag, GameOptions, OptionalFile, Trust, UsageError, check_writable, out
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Export(GameOptions, Trust):
    """Write a trained network to a file of ONNX, which runs without JAX, in programs of any language.

    The file takes what the network reads of positions, for batches of any size, and gives logits of the actions and the
    expected outcome by seat, the mover's first. Needs the extra: pip install 'tilewe-jax[onnx]'.
    """

    network: Annotated[str | None, arg(metavar="NETWORK", help_behavior_hint="")] = None
    """Network: shipped weights by name, by default those of the game, or a file of weights."""
    out: OptionalFile = None
    """File to write. Required."""
    json: Flag = False
    """Print one JSON object and nothing else."""

    def run(self) -> None:
        if self.out is None:
            raise UsageError("--out is needed, the file to write")
        check_writable(self.out)
        from tilewe_jax.networks import weights
        from tilewe_jax.networks.onnx_file import save
        from tilewe_jax.utils.extras import MissingExtraError

        game = self.make()
        name = self.network or game.id
        try:
            network = weights.load(game, name)
            summary = save(self.out, game, network, name)
        except MissingExtraError as error:
            raise FailedError(str(error)) from None
        except ValueError as error:
            raise UsageError(str(error)) from None
        if self.json:
            print(json.dumps(summary))
            return
        observation = " x ".join(map(str, summary["observation"]))
        size = f"{counted(summary['bytes'], 'bytes')}, {counted(summary['nodes'], 'nodes')}"
        out.print(f"{self.out}: {size}; observations of {observation} numbers")
        if note := getattr(network, "note", None):
            out.print(note)
