"""Errors: raised at the user's line, naming the operation, what it met and what it wants."""

import inspect
import traceback

import numpy as np
import pytest

import genesis
from genesis import float32, int64

X = genesis.zeros(2, 3)
CASES = {
    "broadcast": (lambda: X + genesis.zeros(4), ValueError, r"add: shapes \(2, 3\) and \(4,\) do not broadcast"),
    "matmul": (lambda: X @ genesis.zeros(4, 5), ValueError, r"inner extents differ: \(2, 3\) @ \(4, 5\); want \(.., 3, n\)"),
    "matmul dtypes": (lambda: X @ genesis.zeros(3, 5, dtype=int64), TypeError, "matmul: dtypes differ: float32 and int64"),
    "reshape": (lambda: X.reshape(4, 2), ValueError, r"reshape: a tensor of shape \(2, 3\) has 6 elements"),
    "view": (lambda: X.T.view(6), ValueError, "view: .* cannot be viewed as .*; use reshape"),
    "dim of a bool": (lambda: X.sum(True), TypeError, "sum: dim must be an int, got bool True"),
    "dim": (lambda: X.sum(dim=2), IndexError, "sum: dim 2 is out of range for a 2-d tensor; want -2 to 1"),
    "dim twice": (lambda: X.sum(dim=(0, 0)), ValueError, "sum: dim .* names an axis twice"),
    "mean of ints": (lambda: genesis.arange(3).mean(), TypeError, "mean: wants a floating tensor, got int64"),
    "cat": (lambda: genesis.cat([X, genesis.zeros(2, 4)]), ValueError, r"cat: shapes \(2, 3\) and \(2, 4\) differ"),
    "stack": (lambda: genesis.stack([X, genesis.zeros(2)]), ValueError, "stack: shapes differ"),
    "expand": (lambda: X.expand(4, 3), ValueError, r"expand: \(2, 3\) does not expand to \(4, 3\): axis 0 has extent 2"),
    "squeeze": (lambda: X.squeeze(5), IndexError, "squeeze: dim 5 is out of range"),
    "permute": (lambda: X.permute(0, 0), ValueError, "permute: dims .* must name each"),
    "split": (lambda: X.split([1, 3], 1), ValueError, r"split: sizes \[1, 3\] do not add up to extent 3"),
    "gather": (lambda: X.gather(0, genesis.zeros(2, 3)), TypeError, "gather: indices must be integers, got float32"),
    "empty axis": (lambda: genesis.zeros(0, 2).amax(0), IndexError, r"amax: shape \(0, 2\) has no elements along dim 0"),
    "empty extremum": (lambda: genesis.zeros(0).max(), ValueError, r"max: shape \(0,\) has no elements"),
    "bitwise": (lambda: X & X, TypeError, "bitwise_and: wants integer or bool tensors, got float32"),
    "minus of bools": (lambda: -(X > 0), TypeError, "neg: wants numbers, got bool; use logical_not, ~a"),
    "difference of bools": (lambda: (X > 0) - (X > 1), TypeError, "sub: wants numbers, got bool; use logical_xor, a \\^ b"),
    "power of bools": (lambda: (X > 0) ** (X > 1), TypeError, "pow: wants numbers, got bool; convert one"),
    "shift of bools": (lambda: (X > 0) << (X > 1), TypeError, "bitwise_left_shift: wants numbers, got bool; convert one"),
    "item": (lambda: X.item(), ValueError, r"item: a tensor of shape \(2, 3\) is not one number"),
    "bool": (lambda: bool(X), ValueError, "is ambiguous; use .any\\(\\) or .all\\(\\)"),
    "len": (lambda: len(genesis.tensor(1)), TypeError, "len: a 0-d tensor has no length"),
    "index of a float": (lambda: [1][genesis.tensor(0.0)], TypeError, "only integer tensors"),
    "device": (lambda: X.to("cuda"), ValueError, "device: 'cuda' is not available: "),
    "creation device": (lambda: genesis.zeros(2, device="cuda:1"), ValueError, "'cuda:1' is not available: "),
    "to": (lambda: X.to(3), TypeError, "to: wants a dtype, a device or a tensor, got int 3"),
    "data": (lambda: genesis.tensor("abc"), TypeError, "genesis has no dtype for"),
    "object": (lambda: genesis.tensor([1, None]), TypeError, "cannot make a tensor of list"),
    "uneven": (lambda: genesis.tensor([[1, 2], [3]]), ValueError, "tensor: "),
    "negative extent": (lambda: genesis.zeros(-1), ValueError, r"zeros: extents must not be negative, got \(-1,\)"),
    "extent": (lambda: genesis.zeros(2.5), TypeError, "zeros: extents must be ints"),
    "step": (lambda: genesis.arange(0, 3, -1), ValueError, "arange: step -1 does not lead from 0 to 3"),
    "int grad": (lambda: genesis.tensor([1], dtype=int64, requires_grad=True), TypeError, "only floating tensors"),
    "from_numpy": (lambda: genesis.from_numpy([1]), TypeError, "from_numpy: wants a NumPy array, got list"),
    "wide complex": (lambda: genesis.tensor(np.zeros(1, np.clongdouble)), TypeError, "no dtype for"),
    "default dtype": (lambda: genesis.set_default_dtype(int64), TypeError, "set_default_dtype: want a floating dtype"),
    "NumPy's dtype": (lambda: genesis.zeros(2, dtype=np.datetime64), TypeError, "full: wants a genesis dtype .* got type"),
    "dtype by name": (lambda: genesis.tensor([1], dtype="int31"), TypeError, "tensor: wants a genesis dtype .* 'int31'"),
    "Python's dtype": (lambda: X.sum(0, dtype=object), TypeError, "sum: wants a genesis dtype such as genesis.float32"),
    "random dtype": (lambda: genesis.randn(2, dtype="float63"), TypeError, "randn: wants a genesis dtype"),
    "module dtype": (lambda: genesis.nn.Linear(1, 1).to(int64), TypeError, "int64 is neither"),
    "grad flag": (lambda: genesis.tensor([1.0], requires_grad=1), TypeError, "requires_grad: wants True or False, got int 1"),
    "grad mode": (lambda: genesis.set_grad_enabled(None), TypeError, "set_grad_enabled: wants True or False, got NoneType"),
    "inference mode": (lambda: genesis.inference_mode("on"), TypeError, "inference_mode: wants True or False, got str 'on'"),
    "parameter": (lambda: genesis.nn.Parameter([1.0]), TypeError, r"Parameter: wants a tensor, got list \[1.0\]"),
    "creator": (lambda: X.exp().set_creator(genesis.Context(), 3), TypeError, "set_creator: backward must be a function"),
    "no attribute": (lambda: genesis.no_such_thing, AttributeError, "module 'genesis' has no attribute 'no_such_thing'"),
    "randint": (lambda: genesis.randint(3, 3, (2,)), ValueError, "randint: low 3 must be less than high 3"),
    "multinomial": (lambda: genesis.multinomial(genesis.ones(2), 3), ValueError, "multinomial: cannot draw 3 of 2; want"),
    "masked_fill": (lambda: X.masked_fill(X, 0), TypeError, "masked_fill: mask must be bool, got float32"),
    "clamp": (lambda: X.clamp(), ValueError, "clamp: at least one of min and max"),
    "cross_entropy": (lambda: genesis.cross_entropy(X, genesis.arange(3)), ValueError, r"target has shape \(3,\); want \(2,\)"),
    "linear": (lambda: genesis.linear(X, genesis.zeros(4, 5)), ValueError, r"input \(2, 3\) does not fit weight \(4, 5\)"),
}


def test_what_a_dtype_cannot_hold_becomes_inf_without_a_word(recwarn):
    made = [genesis.tensor(1e40), genesis.tensor([1e40]).sum(), genesis.tensor(1e6, dtype=genesis.float16)]
    assert [x.item() for x in made] == [np.inf] * 3 and not recwarn.list


@pytest.mark.parametrize("case", CASES)
def test_message_names_operation_and_what_it_met(case):
    run, error, message = CASES[case]
    with pytest.raises(error, match=message):
        run()


def test_a_wrong_shape_raises_at_the_users_line():
    with pytest.raises(ValueError) as caught:
        X @ X
    frames = [frame for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
    assert frames[-1].line == "X @ X"


def test_an_index_out_of_range_raises_at_the_flush_with_the_users_line():
    index = genesis.tensor([0, 9])
    line = inspect.currentframe().f_lineno + 1
    y = genesis.index_select(X, 0, index)
    with pytest.raises(IndexError, match=rf"index_select: index 9 is out of range for extent 2.*{__file__}:{line}"):
        y.numpy()
    assert (X + 1).sum().item() == 6  # what comes later is not harmed


def test_a_failed_call_leaves_no_trace():
    x = genesis.ones(2, 2)
    y = x + 1
    for _ in range(3):
        with pytest.raises(ValueError, match="broadcast"):
            y + genesis.zeros(3)
    assert (y * 2).tolist() == [[4, 4], [4, 4]]


def test_devices_are_named():
    assert str(X.device) == "cpu" and X.device == genesis.device("cpu") == X.to("cpu").device
    assert X.cpu() is X.to(float32) is X


def test_operands_are_tensors_or_numbers():
    for other in (None, "a", object()):
        with pytest.raises(TypeError, match="operands must be tensors or numbers"):
            X + other
        assert (other == X) is False and (other != X) is True


def test_operands_of_other_classes_are_not_printed():
    class Together(tuple):
        def __repr__(self):
            raise AssertionError("what the tensors hold would be computed")

        def __rmul__(self, factor):
            return Together(factor * x for x in self)

    doubled = genesis.tensor(2.0) * Together([genesis.ones(2), genesis.ones(3)])
    assert [x.tolist() for x in doubled] == [[2, 2], [2, 2, 2]]


@pytest.mark.parametrize("make", [
    lambda: genesis.zeros(2**62), lambda: genesis.zeros(2**16, 2**16, 2**16, 2**16), lambda: genesis.empty(2**62),
    lambda: genesis.ones(1).expand(2**62).clone(), lambda: genesis.stack([genesis.ones(1).expand(2**61)] * 8),
    lambda: genesis.outer(genesis.ones(1).expand(2**31), genesis.ones(1).expand(2**31)), lambda: genesis.arange(2**60),
    lambda: genesis.rand(2**62), lambda: genesis.eye(2**31),
], ids=range(9))
def test_a_size_that_no_address_reaches_is_refused_where_it_is_asked_for(make):
    with pytest.raises(MemoryError, match=r"takes [\d,]+ bytes"):
        make()
    assert (genesis.ones(3) * 2).tolist() == [2, 2, 2]


@pytest.mark.parametrize("call", [
    lambda: genesis.stack([1, 2]), lambda: genesis.cat([1.0, 2]), lambda: genesis.matmul(1, 2),
    lambda: genesis.nn.functional.linear(1.0, 2.0),
], ids=range(4))
def test_numbers_where_a_tensor_is_needed_are_a_type_error(call):
    with pytest.raises(TypeError, match=r"wants a tensor, got (list|int, int|float, float)$"):
        call()
