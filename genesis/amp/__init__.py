"""Mixed precision: 16-bit storage where it is safe, float32 where it is not, and losses scaled to fit float16."""

from genesis.amp.grad_scaler import GradScaler
from genesis.tensor.modes import SwitchedModule, autocast, is_autocast_enabled

__all__ = ["GradScaler", "SwitchedModule", "autocast", "is_autocast_enabled"]
__dir__ = __all__.copy
