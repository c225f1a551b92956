"""Pictures of games."""
