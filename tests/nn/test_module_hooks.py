"""Hooks of modules, beside torch's."""

import numpy as np
import pytest
import torch
from tolerances import assert_close

import genesis

RANDOM = np.random.default_rng(3)
X, WEIGHT, BIAS = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(2, 3)), RANDOM.normal(size=2)


def layer(library):
    made = library.nn.Linear(3, 2).double()
    with library.no_grad():
        made.weight.copy_(library.tensor(WEIGHT))
        made.bias.copy_(library.tensor(BIAS))
    return made


def both(watch):
    """What `watch(library, layer, x, log)` returns, and what it logs, in both libraries."""
    results = []
    for library in (genesis, torch):
        log = []
        found = watch(library, layer(library), library.tensor(X, requires_grad=True), log)
        results.append((found, log))
    (ours, our_log), (theirs, their_log) = results
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b)
    assert our_log == their_log
    return our_log


def shapes(tensors):
    return [None if t is None else tuple(t.shape) for t in tensors]


def test_forward_hooks_see_and_replace_inputs_and_output():
    def watch(library, layer, x, log):
        layer.register_forward_pre_hook(lambda module, inputs: log.append(("first", shapes(inputs))))
        layer.register_forward_pre_hook(lambda module, inputs: inputs[0] * 2)
        layer.register_forward_hook(lambda module, inputs, output: output.tanh())
        layer.register_forward_hook(lambda module, inputs, output: log.append(("last", shapes(inputs), tuple(output.shape))))
        y = layer(x)
        return y, *library.autograd.grad(y.sum(), (x, layer.weight))

    assert [entry[0] for entry in both(watch)] == ["first", "last"]


def test_hooks_with_options_and_in_front_of_others():
    def watch(library, layer, x, log):
        class Scaled(library.nn.Module):
            def forward(self, x, factor=1):
                return x * factor

        scaled = Scaled()
        scaled.register_forward_pre_hook(lambda _, args, options: (args, {"factor": 1 + options["factor"]}), with_kwargs=True)
        scaled.register_forward_pre_hook(lambda module, args: log.append("in front"), prepend=True)
        scaled.register_forward_hook(lambda module, args, options, y: log.append(options), with_kwargs=True)
        scaled.register_forward_hook(lambda module, args, y: log.append("before"), prepend=True)
        return [scaled(x, factor=2)]

    assert both(watch) == ["in front", "before", {"factor": 3}]


def test_a_hook_that_is_removed_is_called_no_more():
    def watch(library, layer, x, log):
        handle = layer.register_forward_hook(lambda *_: log.append("called"))
        layer(x)
        handle.remove()
        with layer.register_forward_pre_hook(lambda *_: log.append("within")):
            layer(x)
        return [layer(x)]

    assert both(watch) == ["called", "within"]


def test_a_hook_that_is_always_called_hears_of_failures():
    def watch(library, layer, x, log):
        layer.register_forward_hook(lambda *_: log.append("only if it went well"))
        layer.register_forward_hook(lambda module, inputs, output: log.append(output), always_call=True)
        with pytest.raises((RuntimeError, ValueError)):
            layer(x[:, :2])
        return [x]

    assert both(watch) == [None]


def test_a_hook_that_is_always_called_hears_of_hooks_before_it_that_fail():
    def watch(library, layer, x, log):
        def fail(*_):
            raise ZeroDivisionError("before")

        layer.register_forward_pre_hook(fail)
        layer.register_forward_hook(lambda module, inputs, output: log.append(output), always_call=True)
        with pytest.raises(ZeroDivisionError):
            layer(x)
        return [x]

    assert both(watch) == [None]


def test_a_hook_that_fails_after_a_failure_is_warned_of_and_does_not_take_its_place():
    def watch(library, layer, x, log):
        def fail(*_):
            raise ZeroDivisionError("hook")

        layer.register_forward_hook(fail, always_call=True)
        layer.register_forward_hook(lambda *_: log.append("the next one"), always_call=True)
        with pytest.warns(UserWarning, match="always_call=True.* raised"), pytest.raises((RuntimeError, ValueError)):
            layer(x[:, :2])
        return [x]

    assert both(watch) == ["the next one"]


def test_backward_hooks_see_gradients():
    def watch(library, layer, x, log):
        layer.register_full_backward_pre_hook(lambda module, gradients: log.append(("pre", shapes(gradients))))
        layer.register_full_backward_hook(
            lambda module, inputs, outputs: log.append(("full", shapes(inputs), shapes(outputs), inputs[0].sum().item())))
        (layer(x) ** 2).sum().backward()
        return x.grad, layer.weight.grad

    ours, theirs = [], []
    for library, log in ((genesis, ours), (torch, theirs)):
        x = library.tensor(X, requires_grad=True)
        watch(library, layer(library), x, log)
    assert [entry[:3] for entry in ours] == [entry[:3] for entry in theirs]
    assert ours[1][3] == pytest.approx(theirs[1][3])


def test_backward_hooks_replace_gradients():
    def watch(library, layer, x, log):
        layer.register_full_backward_pre_hook(lambda module, gradients: (gradients[0] * 3,))
        layer.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] + 1,))
        y = layer(x).sin().sum()
        return library.autograd.grad(y, (x, layer.weight, layer.bias))

    both(watch)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # torch says so
def test_backward_hooks_where_no_input_has_a_gradient():
    def watch(library, layer, x, log):
        layer.register_full_backward_hook(lambda module, inputs, outputs: log.append((shapes(inputs), shapes(outputs))))
        layer(x.detach()).sum().backward()
        return layer.weight.grad, layer.bias.grad

    assert both(watch) == [([None], [(4, 2)])]


def test_backward_hooks_of_modules_with_several_inputs_and_results():
    def watch(library, layer, x, log):
        class Both(library.nn.Module):
            def forward(self, x, factor, y):
                return x * factor, x + y, "text"

        module = Both()
        module.register_full_backward_hook(lambda module, inputs, outputs: log.append((shapes(inputs), shapes(outputs))))
        y = library.tensor(X + 1, requires_grad=True)
        a, b, text = module(x, 2.0, y)
        assert text == "text"
        (a * b).sum().backward()
        return x.grad, y.grad

    assert both(watch) == [([(4, 3), None, (4, 3)], [(4, 3), (4, 3), None])]


def test_a_wrong_number_of_gradients_is_refused():
    module = layer(genesis)
    module.register_full_backward_hook(lambda module, inputs, outputs: (*inputs, *inputs))
    with pytest.raises(RuntimeError, match="wants 1 gradients back, or None, got 2"):
        module(genesis.tensor(X, requires_grad=True)).sum().backward()


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="wants a function"):
        layer(genesis).register_forward_hook(3)


def test_hooks_that_come_and_go_are_noticed_by_compiled_calls():
    module = layer(genesis)
    compiled = genesis.compile(lambda x: module(x))
    x = genesis.tensor(X)
    plain = compiled(x).detach().numpy().copy()
    assert_close(compiled(x), torch.tensor(plain))
    handle = module.register_forward_hook(lambda module, inputs, output: output * 2)
    for _ in range(2):
        assert_close(compiled(x), torch.tensor(plain * 2))
    second = module.register_forward_hook(lambda module, inputs, output: output + 1)
    for _ in range(2):
        assert_close(compiled(x), torch.tensor(plain * 2 + 1))
    handle.remove()
    for _ in range(2):
        assert_close(compiled(x), torch.tensor(plain + 1))
    second.remove()
    assert_close(compiled(x), torch.tensor(plain))


def test_hooks_of_all_modules_come_before_a_modules_own():
    def watch(library, layer, x, log):
        of_all = library.nn.modules.module if library is torch else library.nn.hooks
        layer.register_forward_pre_hook(lambda module, inputs: log.append("own before"))
        layer.register_forward_hook(lambda module, inputs, output: log.append("own after"))
        handles = [
            of_all.register_module_forward_pre_hook(lambda module, inputs: log.append(f"before {type(module).__name__}")),
            of_all.register_module_forward_hook(lambda module, inputs, output: output * 2),
            of_all.register_module_full_backward_pre_hook(lambda module, outputs: log.append(("pre", shapes(outputs)))),
            of_all.register_module_full_backward_hook(lambda module, inputs, outputs: log.append(("post", shapes(inputs)))),
        ]
        library.nn.Sequential(layer, library.nn.Tanh())(x).sum().backward()
        for handle in handles:
            handle.remove()
        return [x.grad, layer(x)]

    log = both(watch)
    assert log[0] == "before Sequential" and log[-2:] == ["own before", "own after"]


def test_compiled_calls_see_hooks_of_all_modules():
    layer = genesis.nn.Identity()
    double = genesis.compile(lambda x: layer(x) * 2)
    for _ in range(3):
        assert double(genesis.ones(1)).item() == 2
    with genesis.nn.hooks.register_module_forward_hook(lambda module, inputs, output: output + 1):
        assert double(genesis.ones(1)).item() == 4
    assert double(genesis.ones(1)).item() == 2
