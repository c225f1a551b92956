"""Trained networks in files of ONNX."""

import json
from pathlib import Path
from typing import Any

import jax

from tilewe_jax.game import Game
from tilewe_jax.networks.onnx_graph import to_onnx
from tilewe_jax.search.exported import Network, network_interface, observation_spec
from tilewe_jax.utils.files import replacing

OUTPUTS = ("logits", "values")


def save(path: Path, game: Game[Any], network: Network, name: str) -> dict[str, Any]:
    """Write a network to a file of ONNX, for batches of any size.

    The input ``observation`` is ``float32[batch, ...]``, what the network reads of a position: ``observe`` of
    ``search.exported.network_interface(game, network)``, that is ``game.observe`` for the player to move, or
    ``SantoriniGame.encode`` for ``reach_resnet``. The outputs are ``logits``, ``float32[batch, num_logits]`` (see
    ``Game.gather_logits``), and ``values``, ``float32[batch, players]``, the expected shares of the win from the mover's seat
    on. The file names the game, its options and the version of its rules.

    Args:
      path: the file, which is replaced as a whole.
      game: the game.
      network: the network.
      name: where it comes from, for the file.

    Returns a summary, as JSON values. Raises ``ValueError`` for a network that cannot be exported, such as one that reads more
    than one array, and ``MissingExtraError`` without the extra ``onnx``.
    """
    about = {"game": game.id, "options": json.dumps(game.options), "game_version": str(game.version), "network": name}
    spec = observation_spec(network_interface(game, network), game)
    if not isinstance(spec, jax.ShapeDtypeStruct):
        raise ValueError("this network reads more than one array, so it cannot be exported to ONNX here")
    shape = list(spec.shape)
    model = to_onnx(network, shape, OUTPUTS, about=about)
    content = model.SerializeToString()
    with replacing(path, "wb") as file:
        file.write(content)
    return {**about, "options": game.options, "observation": shape, "nodes": len(model.graph.node), "bytes": len(content)}
