"""Pictures of games as SVG."""
