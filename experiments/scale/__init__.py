"""The cost of training on more devices, processes and hosts."""
