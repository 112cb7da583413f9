"""Exported programs compute what the function did, without it; what no program can repeat is refused with the user's line."""

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.pytree import leaves_of
from tests.shipping import programs


def same(one, two):
    with genesis.no_grad():
        pairs = [*zip(leaves_of(one), leaves_of(two), strict=True)]
    assert all(a.dtype is b.dtype and np.array_equal(a.detach().numpy(), b.detach().numpy()) for a, b in pairs)


@pytest.mark.parametrize("make, x", [(programs.mlp, genesis.randn(4, 5)), (programs.cnn, genesis.randn(2, 2, 8, 8))])
def test_a_modules_program_gives_the_modules_values(make, x):
    module = make()
    program = genesis.export(module, x)
    same(program(x), module(x))
    assert {*program.graph_signature.parameters} == {name for name, _ in module.named_parameters()}
    assert program.graph_signature.user_inputs == ("input",)


def test_a_gpt_of_any_batch_and_length():
    model = programs.GPT().eval()
    sizes = {"indices": {0: "batch", 1: genesis.Dim("time", max=32)}}
    program = genesis.export(model, genesis.randint(0, 17, (3, 4)), dynamic=sizes)
    for shape in ((3, 4), (1, 32), (2, 7), (5, 1)):
        x = genesis.randint(0, 17, shape)
        same(program(x), model(x))
    with pytest.raises(ValueError, match="time is 33; the program was exported for 1 to 32"):
        program(genesis.randint(0, 17, (2, 33)))


def test_results_and_arguments_are_trees():
    lstm = nn.LSTM(3, 4, batch_first=True)
    x, state = genesis.randn(2, 5, 3), (genesis.zeros(1, 2, 4), genesis.ones(1, 2, 4))
    same(genesis.export(lstm, x, state)(x, hx=state), lstm(x, state))

    def tree(x, *, options):
        return {"sum": x + options["y"][0], "same": x, "flag": True, "none": None}

    found = genesis.export(tree, x, options={"y": [x]})(x, options={"y": [x + 1]})
    assert found["flag"] is True and found["none"] is None and found["same"] is x
    same(found["sum"], x + (x + 1))
    with pytest.raises(ValueError, match=r"options\['y'\].*list of length 1"):
        genesis.export(tree, x, options={"y": [x]})(x, options={"y": []})


def test_means_and_roots_follow_their_sizes():
    def scores(x):
        return (x @ x.T / x.shape[0] ** 0.5).softmax(1).mean(0) * x.shape[0] + x.numel()

    program = genesis.export(scores, genesis.randn(4, 3), dynamic=[{0: "n"}])
    for n in (1, 2, 9, 30):
        x = genesis.randn(n, 3)
        np.testing.assert_allclose(program(x).numpy(), scores(x).numpy(), rtol=1e-6)


def test_views_of_arguments_and_constants():
    table = genesis.randn(6, 4)
    half = table[2:, ::2]

    def function(x):
        return half * x.T + genesis.tensor([[1.0, 2.0]]), x[0]

    x = genesis.randn(2, 4)
    same(genesis.export(function, x)(x), function(x))
    same(genesis.export(function, x)(genesis.randn(4, 2).T.copy_(x)), function(x))


def test_buffers_that_are_written_are_the_programs_own():
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    before = module[1].running_mean.numpy().copy()
    x = genesis.randn(6, 4)
    program = genesis.export(module, x, dynamic=[{0: genesis.Dim("batch", min=2)}])
    assert np.array_equal(module[1].running_mean.numpy(), before)
    assert np.array_equal(program.state_dict["1.running_mean"].numpy(), before)
    assert set(program.graph_signature.buffers_to_mutate.values()) == {
        "1.running_mean", "1.running_var", "1.num_batches_tracked"}
    for _ in range(2):
        same(program(x), module(x))
    same(program.state_dict["1.running_mean"], module[1].running_mean)
    assert program.state_dict["1.num_batches_tracked"].item() == 2


def test_a_gradient_is_a_function_like_others():
    def loss(x):
        return (x**3).sum()

    x = genesis.randn(4)
    same(genesis.export(genesis.func.grad(loss), x)(x), 3 * x**2)


def test_an_index_out_of_range_is_an_error():
    table = genesis.randn(3, 2)
    program = genesis.export(lambda i: table[i], genesis.tensor([0, 2]))
    with pytest.raises(IndexError, match="7"):
        program(genesis.tensor([0, 7]))


def looks(x):
    return x if x.sum() > 0 else -x


def reads(x):
    return genesis.tensor(np.sin(x.numpy()))


def writes(x):
    x.add_(1)
    return x


def leaves_gradients(x):
    weight = genesis.ones(3, requires_grad=True)
    (weight * x).sum().backward()
    return weight.grad


def prints(x):
    print("seen")
    return x * 2


@pytest.mark.parametrize("function, reason", [
    (looks, r"a value is looked at \(at .*test_exported_programs.py:\d+\)"), (reads, r"looked at.*test_exported_programs.py"),
    (writes, "an argument is written to"), (prints, r"it calls print.*test_exported_programs.py"),
    (nn.Dropout(), r"random numbers are drawn.*eval\(\)"), (lambda x: {1, 2}, "a set|is returned"),
])
def test_what_no_program_can_repeat_is_refused(function, reason):
    with pytest.raises((genesis.ExportError, TypeError), match=reason):
        genesis.export(function, genesis.randn(3))


def test_gradients_that_stay_behind_are_refused():
    weight = genesis.ones(3, requires_grad=True)

    def step(x):
        (weight * x).sum().backward()
        return x * 2

    with pytest.raises(genesis.ExportError, match="gradients"):
        genesis.export(step, genesis.randn(3))
    assert weight.grad is None


def unrolled(x):
    for k in range(x.shape[0]):
        x = x + k
    return x


def halved(x):
    return x[: x.shape[0] // 2] * 2


def widened(x):
    return x * 2 if x.shape[0] > 7 else x


@pytest.mark.parametrize("function", [unrolled, halved, widened])
def test_what_depends_on_a_size_in_other_ways_is_refused(function):
    with pytest.raises(genesis.ExportError, match="n="):
        genesis.export(function, genesis.randn(4, 2), dynamic=[{0: "n"}])


def test_wrong_arguments_are_named():
    program = genesis.export(lambda x, scale: x * scale, genesis.ones(3), 2)
    for args, reason in [
        ((genesis.ones(4), 2), r"x is float32\[4\] on cpu; the program takes float32\[3\]"),
        ((genesis.ones(3, dtype=genesis.float64), 2), "x is float64"), ((genesis.ones(3), 3), "scale is 3.*for 2"),
        ((genesis.ones(3),), r"takes \(x, scale\)"), ((3, 2), "x is 3; want a tensor"),
    ]:
        with pytest.raises(ValueError, match=reason):
            program(*args)
    with pytest.raises(RuntimeError, match="no_grad"):
        program(genesis.ones(3, requires_grad=True), 2)
    with pytest.raises(ValueError, match="dynamic names 'y'"):
        genesis.export(lambda x: x, genesis.ones(3), dynamic={"y": {0: "n"}})


def test_a_listing_names_inputs_and_lines():
    text = str(genesis.export(programs.mlp(), genesis.randn(4, 5), dynamic=[{0: "batch"}]))
    assert "# parameter 0.weight" in text and "# input" in text and "return %" in text
    assert "dynamic: batch from 1 to any, here 4" in text


def test_a_compiled_function_calls_it_each_time():
    program = genesis.export(lambda x: x * 2, genesis.ones(3))
    compiled = genesis.compile(lambda x: program(x) + 1)
    assert [compiled(genesis.full((3,), k)).tolist() for k in (1.0, 2.0, 3.0)] == [[3.0] * 3, [5.0] * 3, [7.0] * 3]
    assert "exported program" in str(compiled.refusals)
