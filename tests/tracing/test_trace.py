"""The trace: a repeated program walks a known path, an array enters once, numbers are data of the path."""

import numpy as np
import pytest

import genesis
from genesis.execution.flush import flush
from genesis.tensor.dispatch import _token, array_of
from genesis.tracing.backward_state import FREED, NOTHING
from genesis.tracing.state import current_trace, set_default_dtype
from genesis.tracing.token import argument_of


def fresh_trace():
    flush(current_trace())
    return current_trace()


def path_of(program):
    """The steps that `program` leads to in a trace of its own."""
    trace = fresh_trace()
    result = program()  # held until the path has been read
    assert result is not None
    return trace.step


def test_a_repeated_program_ends_at_the_step_where_it_ended_before():
    x = genesis.tensor([1.0, 2.0])
    assert path_of(lambda: (x * 3.0).exp()) is path_of(lambda: (x * 3.0).exp())


def test_python_numbers_are_no_part_of_the_path_but_zero_and_one_are():
    x = genesis.tensor([1.0, 2.0])
    assert path_of(lambda: x * 3.0) is path_of(lambda: x * 7.5)
    assert path_of(lambda: x * 3.0) is not path_of(lambda: x * 1.0)


@pytest.mark.parametrize("other", [np.ones(3, np.float32), np.ones(2, np.float64), np.ones((2, 1), np.float32)], ids=str)
def test_a_shape_or_dtype_that_is_new_is_another_path(other):
    x, y = genesis.tensor([1.0, 2.0]), genesis.from_numpy(other)
    assert path_of(lambda: x.exp()) is not path_of(lambda: y.exp())


def test_an_array_enters_a_trace_once_however_often_it_is_read():
    x = genesis.tensor([1.0, 2.0])
    trace = fresh_trace()
    y = x + x.exp() * x
    assert trace.inputs == [array_of(x)] and y.shape == (2,)
    assert sum(node.op == "input" for node in trace.nodes) == 1


def test_a_call_that_fails_leaves_the_path_where_it_was():
    x = genesis.tensor([1.0, 2.0])
    y = x.exp()
    trace = array_of(y).trace
    step, nodes, lines = trace.step, len(trace.nodes), len(trace.lines)
    with pytest.raises(TypeError):
        x.sum(dim="first")
    assert (trace.step, len(trace.nodes), len(trace.lines)) == (step, nodes, lines)


def test_a_number_that_cannot_be_read_leaves_no_line_behind():
    x = genesis.ones(3, 4)
    y = x.exp()
    trace = array_of(y).trace
    lines = len(trace.lines)
    with pytest.raises(TypeError, match="takes a number"):
        x.softmax(genesis.tensor([0, 1]))
    assert array_of(y).trace is trace and len(trace.lines) == lines


def test_another_default_dtype_begins_another_trace():
    x = genesis.tensor([1.0, 2.0])
    y = x * 2.0
    trace = array_of(y).trace
    set_default_dtype(genesis.float64)
    try:
        z = y + 1
        assert array_of(z).trace is not trace and trace.closed
    finally:
        set_default_dtype(genesis.float32)


def test_what_backward_alone_reads_is_made_on_first_use():
    w = genesis.tensor([1.0, 2.0], requires_grad=True)
    y = (w * w).sum()
    trace = y._array.trace
    assert trace.backward is NOTHING
    y.register_hook(lambda gradient: gradient * 3)
    assert trace.backward is not NOTHING and list(trace.backward.hooks) == [y._array.index]
    y.backward()
    assert w.grad.tolist() == [6, 12]
    assert trace.backward is FREED


@pytest.mark.parametrize("shared", [NOTHING, FREED], ids=["nothing", "freed"])
def test_the_states_that_traces_share_cannot_be_written_to(shared):
    for name in ("copies", "custom_calls", "hooks", "node_hooks", "retained", "saved"):
        with pytest.raises(TypeError):
            getattr(shared, name)[0] = None


ZEROS = [0.0, -0.0, 0, -0.0, 0.0]


@pytest.mark.parametrize("function", ["threshold", "hardtanh", "nan_to_num"])
def test_settings_of_equal_numbers_that_differ_are_different_steps(function):
    torch = pytest.importorskip("torch")
    calls = {
        "threshold": lambda library, x, zero: library.nn.functional.threshold(x, 0.0, zero),
        "hardtanh": lambda library, x, zero: library.nn.functional.hardtanh(x, -2.0, float(zero)),
        "nan_to_num": lambda library, x, zero: library.nan_to_num(x, nan=zero),
    }
    values = [-1.0, 3.0, float("nan")]
    for zero in ZEROS:
        results = [calls[function](library, library.tensor(values), zero).tolist() for library in (genesis, torch)]
        assert np.array_equal(*np.signbit(results)) and np.array_equal(*results, equal_nan=True)


def test_a_setting_that_is_nan_is_one_step():
    def steps():
        y = genesis.nn.functional.threshold(genesis.tensor([-1.0, 3.0]), 0.0, float("nan"))
        step = y._array.trace.step
        assert np.isnan(y.tolist()[0])
        return step

    assert steps() is steps()


SETTINGS = [0.0, -0.0, 0, 1, 1.0, True, float("nan"), 2, 2 + 0j, complex(0, -0.0), (1.0, 2), (True, -0.0), (3, 4), "sum", None]


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_a_token_gives_back_its_setting(setting):
    y = genesis.zeros(2)
    token = _token(y._array.trace, setting, False, True)
    assert repr(argument_of(token, int)) == repr(setting)


def test_tokens_of_settings_that_differ_differ():
    trace = genesis.zeros(2)._array.trace
    assert len({_token(trace, setting, False, True) for setting in SETTINGS}) == len(SETTINGS)


def test_steps_of_backward_know_tensors_that_were_given_by_name():
    torch = pytest.importorskip("torch")
    for library in (genesis, torch):
        x = library.ones(2, requires_grad=True)
        known = [[node is not None for node, _ in y.grad_fn.next_functions]
                 for y in (library.cat(tensors=[x, x]), library.add(x, other=x), library.add(x, other=2.0), x * 2.0)]
        assert known == [[True, True], [True, True], [True, False], [True, False]]
