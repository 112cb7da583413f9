"""Storages as objects, tensors that are moved to others, and Python functions of elements. Values are torch's."""

import numpy as np
import pytest
import torch

import genesis


def base(lib):
    return lib.arange(12.0).reshape(3, 4)


QUESTIONS = """
    x[1:].storage().tolist()
    x.T.storage().size()
    len(x[0].untyped_storage())
    x[1:].untyped_storage().nbytes()
    x.untyped_storage().data_ptr() == x[1:].untyped_storage().data_ptr()
    x.storage()[2]
    x.int().storage().element_size()
    x.clone().untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.T.is_set_to(x.T)
    x.is_set_to(x.T)
    x.is_set_to(lib.arange(12.0))
    x.T.dim_order()
    lib.zeros(2, 3, 4).permute(1, 2, 0).dim_order()
    x.new(2, 2).shape
    x.int().new([1.0, 2.0])
    x.new(x).is_set_to(x)
    x.set_().shape
    x.set_(lib.ones(2))
    x.set_(x.clone().storage(), 1, (2, 2), (1, 3))
    x.as_strided_((2, 2), (1, 4), 1)
    x.resize(4, 3)
    x.resize_as(lib.zeros(2, 6))
    x.t_().resize_(2, 2)
    x[1:].resize_(2, 2).resize_(2, 4)
    x[:, 1].resize_(2)
    x.resize_(2).resize_(3, 4)
    (x.view(-1).resize_(5).zero_().sum(), x)[1]
    (x[::2, 1:].resize_(3).mul_(10).sum(), x)[1]
    x[1].resize_(2, 7)[0]
    x[2].resize_(())
    lib.zeros(6).resize_(4).mul_(lib.ones(4, requires_grad=True))[1:].add_(1).requires_grad
    x.double().float_power_(2)
    x.apply_(lambda v: v * v)
    x.map_(lib.ones(4), lambda a, b: a - b)
    x.map2_(x.clone(), lib.ones(3, 1), lambda a, b, c: a * b + c)
    x.hash_tensor()
    x.int().hash_tensor(1, keepdim=True)
    x.module_load(lib.ones(3, 4))
    (x.output_nr, x.is_xla, x.volatile, x.name)
    x.const_data_ptr() == x.data_ptr()
    lib.detach_copy(x).is_set_to(x)
    x.slice_inverse(x.T).shape
"""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", [line.strip() for line in QUESTIONS.strip().splitlines()])
def test_answers_are_torchs(call):
    found = []
    for lib in (genesis, torch):
        answer = eval(call, {"lib": lib, "x": base(lib)})
        found.append(answer.tolist() if isinstance(answer, lib.Tensor) else answer)
    assert found[0] == found[1]


def test_a_write_to_a_storage_shows_in_its_tensors():
    for lib in (genesis, torch):
        x = base(lib)
        row = x[1]
        x.untyped_storage().fill_(0)
        assert row.tolist() == [0, 0, 0, 0]
        x.storage()[5] = 3.0
        row += 1
        assert row.tolist() == [1, 4, 1, 1] and x.storage()[5] == 4


def test_a_tensor_moved_to_another_storage_leaves_its_views_behind():
    for lib in (genesis, torch):
        x, y = base(lib), lib.zeros(2)
        row = x[0]
        x.set_(y)
        x[0] = 5
        row[1] = 7
        assert x.tolist() == y.tolist() == [5, 0] and row.tolist() == [0, 7, 2, 3]
        z = base(lib)
        column = z[:, 1]
        z.as_strided_((3,), (4,), 1)
        z += 1
        assert column.tolist() == z.tolist() == [2, 6, 10]


def test_what_cannot_move_is_refused():
    leaf = genesis.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf tensor that requires grad"):
        leaf.set_(genesis.zeros(2))
    with pytest.raises(RuntimeError, match="holds int64; want the tensor's float32"):
        genesis.ones(2).set_(genesis.zeros(2, dtype=genesis.int64))
    with pytest.raises(RuntimeError, match="no gradient; use detach"):
        leaf.apply_(lambda v: v)
    for name in ("eig", "lstsq", "solve", "symeig", "reinforce"):
        with pytest.raises(RuntimeError, match="PyTorch has removed it"):
            getattr(leaf, name)()
        with pytest.raises(RuntimeError):
            getattr(torch.ones(2), name)(torch.ones(2))
    with genesis.no_grad():
        assert leaf.set_(genesis.zeros(3)).tolist() == [0, 0, 0] and leaf.requires_grad


def test_a_tensor_as_another_class_shares_storage_and_derivation():
    class Named(genesis.Tensor):
        pass

    x = genesis.ones(2)
    named = x.as_subclass(Named)
    named[0] = 3
    assert type(named) is Named and x.tolist() == [3, 1]
    leaf = genesis.tensor([2.0], requires_grad=True)
    leaf.as_subclass(Named).square().sum().backward()
    assert leaf.grad.tolist() == [4]
    assert np.asarray(named).tolist() == [3, 1]


BYTES = """
    x.view(lib.int32)
    x.view(lib.uint8).shape
    x.view(dtype=lib.int64)
    x.T.view(lib.int32)
    x[:, 2:].view(lib.int16)
    x[1:].view(lib.float64)
    (x * 2).view(lib.int32).view(lib.float32)
    x.view(lib.float32).is_set_to(x)
    lib.tensor(1.0).view(lib.int32)
    x.bool().view(lib.uint8)
"""


@pytest.mark.parametrize("call", [line.strip() for line in BYTES.strip().splitlines()])
def test_bytes_are_seen_as_another_dtype(call):
    have, want = (eval(call, {"lib": lib, "x": base(lib)}) for lib in (genesis, torch))
    assert have == want if isinstance(want, bool | tuple) else have.tolist() == want.tolist()


def test_what_is_written_through_one_dtype_shows_in_the_other():
    for lib in (genesis, torch):
        x = base(lib)
        seen = x.view(lib.int32)
        seen[0] = 0
        x[1] += 1
        seen[2, 1:].zero_()
        assert x.tolist() == [[0, 0, 0, 0], [5, 6, 7, 8], [8, 0, 0, 0]]
        with pytest.raises(RuntimeError):
            x.T.view(lib.uint8)
        with pytest.raises(RuntimeError):
            x[:, 1:].view(lib.float64)
    with pytest.raises(RuntimeError, match="requires a gradient have none"):
        genesis.ones(2, requires_grad=True).view(genesis.int32)


@pytest.mark.parametrize("target", ["whole", "part"])
@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.filterwarnings("ignore")
def test_results_of_another_shape_are_written_into_a_storage_that_tensors_share(target, size):
    def outcome(library):
        whole = library.arange(6.0).reshape(3, 2)
        out = {"whole": whole, "part": whole[1:]}
        library.add(library.ones(size), library.arange(float(size)), out=out[target])
        return [tensor.tolist() for tensor in out.values()]

    assert outcome(genesis) == outcome(torch)


@pytest.mark.parametrize("grown", ["whole", "part", "turned"])
def test_a_storage_that_grows_stays_that_of_its_views(grown):
    def outcome(library):
        whole = library.arange(6.0).reshape(3, 2)
        parts = {"whole": whole, "part": whole[1:], "turned": whole[1:].t()}
        parts[grown].resize_(3, 4)
        found = []
        for tensor in parts.values():
            tensor[:1, :2].mul_(3)
            found.append([part[:1, :2].tolist() for part in parts.values()])
        return found

    assert outcome(genesis) == outcome(torch)
