"""The opening book of Duo against the opinion of another engine."""
