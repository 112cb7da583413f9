"""Tensors with masks under the door print and compute as PyTorch's."""

import contextlib
import io
import textwrap

import pytest

from tests.as_torch.test_door import run

SCRIPT = """
    import torch
    from torch.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

    data = torch.arange(6.0).reshape(2, 3)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    x = masked_tensor(data, mask)
    print(x, x.sum(), x.sum(0), x.mean(1), x.amax(0), x.prod(), x.argmax(), x.sum(1, keepdim=True))
    print(x + 1, x + x, x.exp(), 2 * x, -x, x + data, torch.exp(x)[0, 0], torch.sum(x), x[0], x.transpose(0, 1))
    print(x.to_tensor(9.0), x.get_mask(), x.get_data(), x.dtype, is_masked_tensor(x), is_masked_tensor(data))
    leaf = masked_tensor(data, mask, requires_grad=True)
    (leaf * leaf).sum().backward()
    print(leaf.grad, masked_tensor(torch.arange(3), torch.tensor([True, False, True])))
    whole = data.clone().requires_grad_()
    as_masked_tensor(whole, mask).sum().backward()
    print(torch.equal(getattr(whole.grad, "get_mask", lambda: whole.grad != 0)(), mask))
    for wrong in (lambda: x + masked_tensor(data, ~mask), lambda: masked_tensor(data, mask[0])):
        try:
            wrong()
        except ValueError:
            print("refused")
"""


@pytest.mark.filterwarnings("ignore")
def test_they_print_and_compute_what_pytorchs_do(tmp_path):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(textwrap.dedent(SCRIPT), {"__name__": "script"})
    assert run(SCRIPT, tmp_path=tmp_path) == printed.getvalue()
