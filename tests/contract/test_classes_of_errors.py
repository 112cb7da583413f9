"""Common mistakes raise what PyTorch raises, or a class of that: `except` clauses written for it catch them."""

import pytest
import torch

import genesis

MISTAKES = {
    "index by a float": lambda l: l.rand(2)[1.5], "index by floats": lambda l: l.rand(2)[l.rand(2)],
    "index that is too large": lambda l: repr(l.rand(2, 3)[l.tensor([5])]), "index without axes": lambda l: l.rand(())[0],
    "tensor of None": lambda l: l.tensor(None), "tensor of an object": lambda l: l.tensor([object()]),
    "LSTM of another width": lambda l: l.nn.LSTM(3, 4)(l.rand(2, 5, 2)),
    "heads that do not divide": lambda l: l.nn.MultiheadAttention(5, 2),
    "select by another shape": lambda l: l.rand(3).masked_select(l.ones(2, dtype=l.bool)),
    "fill where not bool": lambda l: l.rand(3).masked_fill(l.ones(3), 0), "argmax of nothing": lambda l: l.argmax(l.rand(0)),
    "a float for an int in place": lambda l: l.tensor([1, 2]).div_(2), "shift of floats": lambda l: l.rand(2) << 1,
    "bits of floats": lambda l: l.rand(2) & 1, "optimizer of numbers": lambda l: l.optim.Adam([1, 2]),
    "path as a name": lambda l: l.nn.Linear(2, 2).register_parameter("a.b", None),
    "path as a module's name": lambda l: l.nn.Linear(2, 2).add_module("a.b", None),
    "name that is taken": lambda l: l.nn.Linear(2, 2).register_buffer("weight", l.rand(2)),
    "rows that differ": lambda l: l.utils.data.TensorDataset(l.rand(2), l.rand(3)),
    "gradient of another shape": lambda l: setattr(l.rand(2, requires_grad=True), "grad", l.rand(3)),
    "text in a tensor": lambda l: "a" in l.rand(2), "vmap of no axes": lambda l: l.func.vmap(lambda x: x)(l.rand(())),
    "gradient of a vector": lambda l: l.func.grad(lambda x: x)(l.rand(2)),
    "mesh of matrices": lambda l: l.meshgrid(l.rand(2, 2)),
    "pairs of three": lambda l: l.view_as_complex(l.rand(3)), "format of several": lambda l: format(l.rand(2), ".2f"),
    "broadcast": lambda l: l.rand(2, 3) + l.rand(2, 4), "matmul": lambda l: l.rand(2, 3) @ l.rand(2, 3),
    "matmul of two dtypes": lambda l: l.rand(2, 2) @ l.rand(2, 2).double(),
    "cat": lambda l: l.cat([l.rand(2, 3), l.rand(2, 4)]),
    "view": lambda l: l.rand(2, 3).view(5), "axis": lambda l: l.rand(2, 3).sum(5), "item": lambda l: l.rand(2).item(),
    "leaf in place": lambda l: l.rand(2, requires_grad=True).add_(1), "numpy": lambda l: l.rand(2, requires_grad=True).numpy(),
    "gradient of integers": lambda l: l.ones(2, dtype=l.int64, requires_grad=True),
    "linear of another width": lambda l: l.nn.Linear(3, 4)(l.rand(2, 5)), "no attribute": lambda l: l.rand(2).foo,
    "target out of range": lambda l: repr(l.nn.functional.cross_entropy(l.rand(2, 3), l.tensor([1, 5]))),
    "not definite": lambda l: repr(l.linalg.cholesky(-l.eye(2))),
    "embedding": lambda l: repr(l.nn.Embedding(3, 2)(l.tensor([5]))),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_raise_torchs_classes(mistake, by_references):
    with pytest.raises(Exception) as theirs:
        MISTAKES[mistake](torch)
    want = RuntimeError if issubclass(theirs.type, torch.linalg.LinAlgError) else theirs.type
    with pytest.raises(want):
        MISTAKES[mistake](genesis)
