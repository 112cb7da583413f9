"""Apple's GPUs, which are not supported: scripts that check use another device.

>>> "mps" if genesis.backends.mps.is_available() else "cpu"
'cpu'
"""

__all__ = ["is_available", "is_built"]
__dir__ = __all__.copy


def is_available() -> bool:
    """Whether there is such a GPU: no."""
    return False


def is_built() -> bool:
    """Whether such GPUs are supported: no."""
    return False
