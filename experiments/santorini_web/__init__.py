"""Santorini against the player of a web page."""
