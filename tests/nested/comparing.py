"""Nested tensors and what they are made of, beside PyTorch's."""

import torch

from tests.tolerances import assert_close


def assert_same(ours, theirs, assert_same_sizes):
    """Tensors, nested ones and what is in sequences of them; the last says what nested ones of a layout have in common."""
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, assert_same_sizes)
    elif isinstance(theirs, torch.Tensor) and theirs.is_nested:
        assert ours.is_nested
        assert_same_sizes(ours, theirs)
        assert_same(ours.unbind(), theirs.unbind(), assert_same_sizes)
    elif isinstance(theirs, torch.Tensor):
        assert not ours.is_nested
        assert_close(ours, theirs, scale=4)
    else:
        assert ours == theirs
