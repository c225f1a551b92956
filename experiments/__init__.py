"""The laboratory: one folder an experiment, see README.md."""
