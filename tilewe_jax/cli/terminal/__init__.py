"""Play and show games in the terminal."""
