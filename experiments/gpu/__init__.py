"""Programs compiled for a GPU that is not there."""
