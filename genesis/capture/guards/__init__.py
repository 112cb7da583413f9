"""Whether a recorded call may be replayed: checks of Python's state, of the arguments and of tensors."""
