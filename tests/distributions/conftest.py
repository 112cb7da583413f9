"""What these tests share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _numbers_are_double():
    """PyTorch makes tensors of Python numbers on the way; of its default dtype they would lose digits."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
