"""Settings of cuDNN, which is not used: they have no effect.

Nothing is chosen by timing it (`benchmark`), and convolutions add up in the same order in every run, whatever `deterministic`
says. Settings are PyTorch's at first.

>>> genesis.backends.cudnn.benchmark = True
>>> genesis.backends.cudnn.is_available()
False
"""

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available", "version"]
__dir__ = __all__.copy

allow_tf32 = True
benchmark = False
deterministic = False
enabled = True


def is_available() -> bool:
    """Whether cuDNN is used: no."""
    return False


def version() -> None:
    """None: there is no cuDNN."""
