"""Programs to read from top to bottom; the tests run them."""
