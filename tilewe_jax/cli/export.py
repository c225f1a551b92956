"""The command that writes a network to an ONNX file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tilewe_jax.arguments import Option
from tilewe_jax.cli.common import GameOptions, Json, Trust, needed_file, out, usage_errors
from tilewe_jax.utils.words import counted


@dataclass(frozen=True)
class Export(GameOptions, Trust, Json):
    """Write a trained network to an ONNX file, which runs without JAX, in programs of any language.

    The network takes observations of positions, in batches of any size, and gives logits of the actions and the expected
    outcome by seat, starting with the player to move. Needs the extra: pip install 'tilewe-jax[onnx]'.
    """

    network: Annotated[str | None, Option("NETWORK")] = None
    """Network: a name of shipped weights, by default of the game, or a file of weights."""
    out: Path | None = None
    """File to write (required)."""

    def run(self) -> None:
        path = needed_file(self.out)
        from tilewe_jax.networks import weights
        from tilewe_jax.networks.onnx_file import save

        game = self.make()
        name = self.network or game.id
        with usage_errors():
            network = weights.load(game, name)
            summary = save(path, game, network, name)
        if self.json:
            print(json.dumps(summary))
            return
        observation = " x ".join(map(str, summary["observation"]))
        size = f"{counted(summary['bytes'], 'bytes')}, {counted(summary['nodes'], 'nodes')}"
        out.print(f"{path}: {size}; observations of {observation} numbers")
        if note := getattr(network, "note", None):
            out.print(note)
