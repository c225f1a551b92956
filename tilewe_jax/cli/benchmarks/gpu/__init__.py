"""Programs compiled for a GPU that is not there: what they launch, move and compute."""
