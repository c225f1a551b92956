"""The training loop: self-play, replay, learning, evaluation, checkpoints."""
