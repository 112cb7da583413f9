"""OneFlow's names: `import genesis.oneflow as of` reads as its documents do.

Tensors made here are Variables, whose `grad` can be called. All other names are genesis' own.
"""

import builtins
from typing import Any

from numpy.typing import ArrayLike

import genesis
from genesis.functions.variable import Variable
from genesis.ir.dtypes import DType
from genesis.runtime.devices import DeviceLike

__all__ = ["Tensor", "Variable", "staticmethod", "tensor"]

Tensor = Variable
staticmethod = builtins.staticmethod


def tensor(data: ArrayLike, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False) -> Variable:
    """`genesis.tensor`, as a Variable.

    >>> import genesis.oneflow as of
    >>> x = of.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * 3).grad()
    tensor([3., 3.])
    """
    return Variable(data, dtype=dtype, device=device, requires_grad=requires_grad)


def __getattr__(name: str) -> Any:
    return getattr(genesis, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(genesis)})
