"""Settings of training runs, by name; each module defines CONFIG."""
