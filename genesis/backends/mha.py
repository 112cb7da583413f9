"""PyTorch's fast path of attention, which has zeros at padding: genesis has one path, and the zeros if this is enabled.

>>> genesis.backends.mha.get_fastpath_enabled()
True
"""

from genesis.nn.transformer import TransformerEncoder

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]
__dir__ = __all__.copy


def get_fastpath_enabled() -> bool:
    """Whether `nn.TransformerEncoder` may have zeros at padding."""
    return TransformerEncoder.has_fast_path


def set_fastpath_enabled(value: bool) -> None:
    """Let `nn.TransformerEncoder` have zeros at padding where PyTorch's fast path has, or never."""
    TransformerEncoder.has_fast_path = value
