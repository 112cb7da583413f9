"""Mixed precision: 16-bit storage where it is safe, float32 where it is not, and losses scaled to fit float16."""

from genesis.amp.autocast import SwitchedModule, autocast, is_autocast_enabled
from genesis.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "SwitchedModule", "autocast", "is_autocast_enabled"]
