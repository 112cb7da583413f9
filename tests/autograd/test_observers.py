"""Watching a backward: the search for NaN, and the record of its steps."""

import pytest

import genesis
from genesis.autograd import AnomalyError, detect_anomaly, set_detect_anomaly
from genesis.debug import record_grad_function


def nan_in_backward(x):
    y = x.sqrt()  # line of the culprit
    return (y * 0).sum()


def test_the_line_of_the_operation_that_gave_nan_is_named():
    x = genesis.tensor([0.0, 1.0], requires_grad=True)
    line = nan_in_backward.__code__.co_firstlineno + 1
    with detect_anomaly(), pytest.raises(AnomalyError, match=rf"SqrtBackward of .*test_observers.py:{line} gave nan"):
        nan_in_backward(x).backward()
    assert x.grad is None
    nan_in_backward(x).backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_a_sound_backward_is_as_without():
    x = genesis.tensor([0.5, 1.0], requires_grad=True)
    with detect_anomaly():
        (x.sqrt() * x.exp()).sum().backward()
    want, x.grad = x.grad, None
    (x.sqrt() * x.exp()).sum().backward()
    assert x.grad.tolist() == pytest.approx(want.tolist())


def test_anomaly_mode_by_a_switch():
    x = genesis.tensor([0.0], requires_grad=True)
    with set_detect_anomaly(True):
        with pytest.raises(AnomalyError):
            nan_in_backward(x).backward()
        with set_detect_anomaly(False):
            nan_in_backward(x).backward()
    nan_in_backward(x).backward()


def test_a_nan_made_by_a_custom_function():
    class Bad(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    with detect_anomaly(), pytest.raises(AnomalyError, match="BadBackward"):
        Bad.apply(genesis.ones(2, requires_grad=True)).sum().backward()


def test_the_record_of_a_backward():
    x, w = genesis.ones(2, 3, requires_grad=True), genesis.ones(3, requires_grad=True)
    with record_grad_function() as record:
        (x @ w).relu().sum().backward()
    assert [step.name for step in record] == [
        "SumBackward", "ReluBackward", "MatmulBackward", "AccumulateGrad", "AccumulateGrad",
    ]
    assert record[2].grad_output_shapes == ((2,),) and record[2].grad_input_shapes == ((2, 3), (3,))
    assert record[2].line[0] == __file__
    assert "MatmulBackward: (2,) -> (2, 3), (3,)" in str(record)
    x.grad = None
    (x @ w).sum().backward()
    assert len(record) == 5


def test_recording_by_decorator_and_by_switch():
    @record_grad_function
    def step(x):
        (x * x).sum().backward()
        return "done"

    x = genesis.ones(2, requires_grad=True)
    assert step(x) == "done" and len(step) == 3
    record_grad_function(True)
    (x * 2).sum().backward()
    assert [r.name for r in record_grad_function(False)] == ["SumBackward", "MulBackward", "AccumulateGrad"]
    (x * 2).sum().backward()
    assert len(step) == 3
