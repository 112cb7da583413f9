"""`torch.Tensor(2, 3)` and `torch.Tensor([1, 2])`: sizes, or data of the default float, as PyTorch's constructor takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.as_torch.stand_ins.types import legacy_tensor
from genesis.ir.dtypes import get_default_dtype
from genesis.ir.replayable import replayable, replayable_module
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach


def take_sizes() -> None:
    """Have the constructor of Tensor be PyTorch's: numbers are sizes, data becomes the default float, a tensor is shared."""
    plain = Tensor.__init__

    @replayable
    def made(self: Tensor, *content: Any, **options: Any) -> None:
        """A tensor of sizes, of data in the default float, or with the storage of another tensor."""
        first = content[0] if content else None
        if isinstance(first, Tensor):
            shared = detach(first)
            vars(self).update({name: value for name, value in vars(shared).items() if name.startswith("_")})
            self._requires_grad = bool(options.get("requires_grad"))
        elif options.keys() - {"device"} or (content and not isinstance(first, int | np.integer | list | tuple | np.ndarray)):
            plain(self, *content, **options)  # arguments that PyTorch's does not have: `genesis.Tensor`
        else:
            result = legacy_tensor(get_default_dtype(), *content, **options)
            self._array, self._requires_grad = result._array, False

    Tensor.__init__ = made  # type: ignore[method-assign, assignment]


replayable_module(__name__)
