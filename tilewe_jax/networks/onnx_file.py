"""Trained networks as ONNX files."""

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
    """Write a network to an ONNX file, for batches of any size.

    The input ``observation`` is ``float32[batch, ...]``, the result of ``observe`` of ``search.exported.network_interface(game,
    network)``: ``SantoriniGame.encode`` for ``reach_resnet``, and ``game.observe`` for the player to move otherwise. The
    outputs are ``logits``, ``float32[batch, num_logits]`` (see ``Game.gather_logits``), and ``values``, ``float32[batch,
    players]``, the win rates of the seats, starting with the player to move. The file has the game, its options and the version
    of its rules as metadata.

    Args:
      path: the file, which is replaced atomically.
      game: the game.
      network: the network.
      name: name of the network, for the metadata.

    Returns a summary as JSON values. Raises ``ValueError`` for a network that cannot be exported, for example because it reads
    several arrays, and ``MissingExtraError`` without the extra ``onnx``.
    """
    about = {"game": game.id, "options": json.dumps(game.options), "game_version": str(game.version), "network": name}
    spec = observation_spec(network_interface(game, network), game)
    if not isinstance(spec, jax.ShapeDtypeStruct):
        raise ValueError("a network that reads several arrays cannot be exported to ONNX")
    shape = list(spec.shape)
    model = to_onnx(network, shape, OUTPUTS, about=about)
    content = model.SerializeToString()
    with replacing(path, "wb") as file:
        file.write(content)
    return {**about, "options": game.options, "observation": shape, "nodes": len(model.graph.node), "bytes": len(content)}
