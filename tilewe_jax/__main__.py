"""``python -m tilewe_jax``: the command line."""

import runpy

if __name__ == "__main__":
    runpy.run_module("experiments", run_name="__main__")  # by name, since this package imports nothing of those above it
