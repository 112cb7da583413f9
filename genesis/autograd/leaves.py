"""All leaves at once."""

from __future__ import annotations

from genesis.tensor import gradient_holders

__all__ = ["zero_grad"]


def zero_grad(set_to_none: bool = True) -> None:
    """Drop the accumulated gradient of every leaf tensor there is: `.grad` becomes None, or zeros.

    >>> import genesis
    >>> x = genesis.tensor(2.0, requires_grad=True)
    >>> (x * x).backward()
    >>> genesis.zero_grad()
    >>> print(x.grad)
    None
    """
    for tensor in gradient_holders():
        if tensor.is_leaf:
            tensor.zero_grad(set_to_none)
