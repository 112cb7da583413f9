"""Mixed precision: 16-bit dtypes where safe, float32 elsewhere, and loss scaling for float16."""

from genesis.amp.grad_scaler import GradScaler
from genesis.tensor.modes import SwitchedModule, autocast, is_autocast_enabled

__all__ = ["GradScaler", "SwitchedModule", "autocast", "is_autocast_enabled"]
__dir__ = __all__.copy
