"""Trained networks in files of ONNX."""

import json
from pathlib import Path
from typing import Any

from experiments.networks.onnx_graph import to_onnx
from search.exported import Network
from tilewe_jax.files import replacing
from tilewe_jax.game import Game, observation_shape

OUTPUTS = ("logits", "values")


def save(path: Path, game: Game[Any], network: Network, name: str) -> dict[str, Any]:
    """Write a network to a file of ONNX, for batches of any size.

    The input ``observation`` is ``float32[batch, ...]``, as ``game.observe`` gives it to the player to move. The outputs are
    ``logits``, ``float32[batch, num_logits]`` (see ``Game.gather_logits``), and ``values``, ``float32[batch, players]``, the
    expected shares of the win from the mover's seat on. The file names the game, its options and the version of its rules.

    Args:
      path: the file, which is replaced as a whole.
      game: the game.
      network: the network.
      name: where it comes from, for the file.

    Returns a summary, as JSON values. Raises ``ValueError`` for a network that cannot be exported, and ``MissingExtraError``
    without the extra ``onnx``.
    """
    about = {"game": game.id, "options": json.dumps(game.options), "game_version": str(game.version), "network": name}
    shape = observation_shape(game)
    model = to_onnx(network, shape, OUTPUTS, about=about)
    content = model.SerializeToString()
    with replacing(path, "wb") as file:
        file.write(content)
    return {**about, "options": game.options, "observation": list(shape), "nodes": len(model.graph.node), "bytes": len(content)}
