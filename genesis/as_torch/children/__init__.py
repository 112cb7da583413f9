"""A folder on the path of child Python processes; its `torch` installs genesis as PyTorch there."""
