"""What PyTorch raises as a RuntimeError is one here, besides the ValueError, TypeError or IndexError that it is to Python."""

import numpy as np
import pytest
import torch

import genesis
from genesis.ir.errors import also_runtime_error

WRONG = """
    x.reshape(7)
    x.view(7)
    lib.ones(2) @ lib.ones(3)
    x + lib.ones(4)
    lib.cat([x, lib.ones(2, 4)])
    lib.stack([lib.ones(2), lib.ones(3)])
    lib.nn.Linear(3, 2)(lib.ones(4))
    x.expand(3, 3)
    x.gather(1, lib.tensor([[7]])).tolist()
    lib.zeros(-1)
    x.item()
    bool(x)
    lib.einsum("ij,jk", x, x)
    lib.nn.Conv2d(1, 1, 3)(lib.ones(1, 2, 5, 5))
    lib.linalg.cholesky(-lib.eye(2)).tolist()
    lib.linalg.inv(lib.zeros(2, 2)).tolist()
    lib.chunk(x, 0)
    lib.split(x, [1, 2])
    lib.bmm(x, x)
    x.permute(0)
    x.unfold(0, 5, 1)
    lib.multinomial(lib.zeros(3), 1)
    lib.diff(lib.tensor(1.0))
    x.int() @ x
    lib.nn.functional.binary_cross_entropy(x * 0.5, x.long())
    lib.nn.functional.binary_cross_entropy_with_logits(x, x.long())
    lib.nn.functional.binary_cross_entropy_with_logits(x, x > 0)
    lib.Generator().manual_seed("a")
    lib.set_num_threads("a")
    lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2, 4), lib.tensor([3, 0]))
"""

# PyTorch raises another class for each of these, which is one of those of the error here.
MISTAKES = """
    lib.unbind(lib.tensor(1.0))
    x[[0, 1], [0, 1, 2]]
    x.index_select(0, lib.tensor([[0]]))
    x.index_add(0, lib.tensor([[0]]), x)
    x.masked_select(lib.tensor([1, 0, 1]))
    [1, 2, 3][lib.tensor([1, 2])]
    lib.tensor(["a"])
    lib.tensor([2**70])
    lib.tensor([300], dtype=lib.uint8)
    lib.tensor([-300], dtype=lib.uint8)
    lib.randperm(-1)
    lib.randn(2, dtype=lib.int64)
    lib.normal(0.0, -1.0, (2,))
    lib.ones(2).bernoulli_(2.0)
    lib.bernoulli(x, 2.0)
    lib.ones(2).random_(5, 2)
    lib.ones(2).H
    lib.flip(x, [0, 0])
    x.flip()
    lib.ones(2).mT
    lib.ones(2).adjoint()
    float(lib.tensor(1.5j))
    lib.tensor_split(lib.ones(4), lib.tensor([1.5]))
    lib.tensor_split(lib.ones(4), [1.5])
    lib.meshgrid(lib.tensor([1]), lib.tensor([1.0]))
    lib.meshgrid()
    lib.empty(3).uniform_(-3e38, 3e38)
    lib.repeat_interleave(lib.ones(2), lib.tensor([1, -1]))
    lib.repeat_interleave(lib.tensor([[1, 2]]))
    lib.repeat_interleave(lib.ones(2), lib.tensor([True, False]))
    lib.signal.windows.hann(5, dtype=lib.int64)
    lib.zeros(2, dtype=lib.float32, out=lib.empty(2, dtype=lib.float64))
    lib.empty(2, 4, 2**29, 2**29, dtype=lib.float64)
    x.__dlpack__(stream="0")
    lib.from_numpy(numpy.ones(2)).resize_(5)
    lib.allclose(x, x.long())
    lib.tensor([1j]).float().imag
    lib.view_as_real(x)
    lib.ones(2, dtype=lib.complex64) < lib.ones(2)
    lib.set_num_threads(0)
    (lib.ones(2, requires_grad=True) * 2).backward(lib.ones(3))
    lib.nn.Linear(3, 2)(1.0)
    lib.nn.Linear(3, 2)([1.0, 2.0, 3.0])
    lib.nn.Conv2d(3, 4, 3, padding="foo")
    lib.nn.Conv2d(3, 4, 3, stride=2, padding="same")
    lib.nn.Embedding(3, 2, padding_idx=5)
    lib.nn.GRU(3, 4)(lib.ones(5, 2, 3), lib.zeros(1, 3, 4))
    lib.nn.MultiheadAttention(4, 2)(lib.ones(2, 1, 3), lib.ones(2, 1, 3), lib.ones(2, 1, 3))
    lib.nn.functional.pad(x, (1, 1), mode="foo")
    lib.nn.functional.interpolate(lib.ones(1, 1, 4, 4), size=2, mode="linear")
    lib.nn.functional.ctc_loss(lib.zeros(5, 1, 3), lib.tensor([[1, 2]]), lib.tensor([9]), lib.tensor([2])).item()
    lib.nn.Parameter(lib.tensor([1]))
    lib.nn.Linear(2, 2).register_parameter("a", x)
    lib.nn.Linear(2, 2).add_module("a", 5)
    lib.nn.Linear(2, 2).train(5)
    lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2, 4), lib.tensor([2, 3]))
    lib.nn.utils.rnn.pad_sequence([])
    lib.nn.utils.rnn.pad_sequence([lib.ones(2, 3), lib.ones(2, 4)])
    lib.nn.utils.vector_to_parameters([1], [x])
    list(lib.utils.data.DataLoader([lib.ones(2), lib.ones(3)], batch_size=2))
    list(lib.utils.data.DataLoader([(1, 2), (1,)], batch_size=2))
    lib.utils.data.RandomSampler([])
    lib.save({}, "/nowhere/x.pt")
    lib.vmap(lambda x: x)(1.0)
    lib.vmap(lambda x: x.sum().item())(x)
    lib.func.grad(lambda x: x.sum())(x.long())
    lib.func.jacrev(lambda x: 5)(x)
    x.lerp(x.double(), 0.5)
    x.lerp(x, x.double())
    lib.cdist(x, x.double())
    lib.linalg.cross(x, x.double())
    lib.linalg.solve(x[:, 1:], x[:, 1:].double())
    lib.linalg.lstsq(x, x.double())
    lib.linalg.lu_solve(*lib.linalg.lu_factor(lib.eye(2)), lib.eye(2).double())
    lib.zeros(3).index_put((lib.tensor([1]),), x[0, 0].double())
    lib.zeros(3).index_add_(0, lib.tensor([1]), x[0, :1].double())
    lib.zeros(3).index_copy(0, lib.tensor([1]), x[0, :1].long())
    lib.zeros(3, 2).long().__setitem__((slice(None), [1]), x[0, 0])
    lib.zeros(3).__setitem__(lib.tensor([True, False, True]), x[0, :2].double())
    lib.cholesky_solve(x[:, 1:], x[:, 1:].double())
    lib.distributed.all_reduce(x)
"""


@pytest.mark.parametrize("call", [line.strip() for line in MISTAKES.strip().splitlines()])
def test_what_is_raised_is_of_pytorchs_class_too(call):
    kinds = []
    for lib in (torch, genesis):
        with pytest.raises(Exception) as caught:
            eval(call, {"lib": lib, "x": lib.arange(6.0).reshape(2, 3), "numpy": np})
        kinds.append(caught.type)
    assert issubclass(kinds[1], kinds[0])


@pytest.mark.parametrize("call", [line.strip() for line in WRONG.strip().splitlines()])
def test_except_clauses_of_either_kind_catch_it(call):
    for lib in (genesis, torch):
        with pytest.raises(RuntimeError) as caught:
            eval(call, {"lib": lib, "x": lib.arange(6.0).reshape(2, 3)})
        if lib is genesis:
            assert isinstance(caught.value, ValueError | TypeError | IndexError)


def test_errors_of_classes_of_their_own_stay_what_they_are():
    own = NotImplementedError("x")
    assert also_runtime_error(own) is own
    found = also_runtime_error(np.linalg.LinAlgError("x"))
    assert isinstance(found, np.linalg.LinAlgError) and isinstance(found, RuntimeError) and str(found) == "x"
    assert also_runtime_error(found) is found
