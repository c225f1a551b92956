"""The commands of ``tilewe-jax``, each a dataclass of its options that can ``run``."""
