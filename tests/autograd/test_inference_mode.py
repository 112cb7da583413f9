"""Tensors of inference mode beside PyTorch's: which are, what is refused them."""

import pytest
import torch

import genesis


def outcome(case, library):
    try:
        found = case(library)
    except RuntimeError as problem:
        return str(problem)[:70]
    return found.tolist() if hasattr(found, "tolist") else found


def made(library):
    with library.inference_mode():
        return library.ones(3) * 2


def within(case):
    def run(library):
        with library.inference_mode():
            return case(library, library.ones(3), library.tensor([1.0, 2.0]))
    return run


def written_in(library):
    x, y = library.zeros(3), made(library)
    with library.inference_mode():
        x.add_(1)
        y.add_(1)
    return x.is_inference(), y.is_inference(), x.tolist(), y.tolist(), x._version


def decorated(library):
    @library.inference_mode()
    def run(x):
        return x + 1, library.is_inference_mode_enabled()
    y, enabled = run(library.ones(2, requires_grad=True))
    return y.is_inference(), enabled, library.is_inference_mode_enabled(), y.requires_grad


CASES = {
    "result": lambda library: made(library).is_inference(),
    "function": lambda library: library.is_inference(made(library)),
    "creation": within(lambda library, x, y: (x.is_inference(), y.is_inference(), library.arange(3).is_inference())),
    "random": within(lambda library, x, y: (library.rand(2).is_inference(), library.randperm(3).is_inference())),
    "several": within(lambda library, x, y: [part.is_inference() for part in (*x.max(0), *x.split(2), *x.sort())]),
    "view of a normal one": lambda library: within(lambda library, x, y: normal[:1].is_inference())(library)
    if (normal := library.ones(3)) is not None else None,
    "view outside": lambda library: made(library)[:1].is_inference(),
    "detached": lambda library: made(library).detach().is_inference(),
    "copies": lambda library: (made(library).clone().is_inference(), (made(library) + 1).is_inference()),
    "write outside": lambda library: made(library).add_(1),
    "write of an item": lambda library: made(library).__setitem__(0, 1),
    "write to a view": lambda library: made(library)[:2].zero_(),
    "copied into": lambda library: library.zeros(3).copy_(made(library)),
    "writes within": written_in,
    "gradient outside": lambda library: made(library).requires_grad_(),
    "gradient of a parameter": lambda library: library.nn.Parameter(made(library)),
    "gradient within": within(lambda library, x, y: (x.requires_grad_().is_inference(), x.requires_grad)),
    "version": lambda library: made(library)._version,
    "sum with a leaf": lambda library: (library.ones(3, requires_grad=True) + made(library)).sum().is_inference(),
    "mode": within(lambda library, x, y: (library.is_inference_mode_enabled(), library.is_grad_enabled())),
    "mode within no_grad": within(lambda library, x, y: library.no_grad()(library.is_inference_mode_enabled)()),
    "mode ended": within(lambda library, x, y: library.inference_mode(False)(
        lambda: (library.is_inference_mode_enabled(), library.ones(1).is_inference()))()),
    "decorator": decorated,
    "step": lambda library: library.optim.SGD([weight_of(library)], lr=1.0).step(),
    "layer": within(lambda library, x, y: [p.is_inference() for p in library.nn.Linear(2, 2).parameters()]),
}


def weight_of(library):
    with library.inference_mode():
        weight = library.nn.Linear(2, 1).weight
        weight.grad = library.ones(1, 2)
    return weight


@pytest.mark.parametrize("name", CASES)
def test_inference_tensors_are_pytorchs(name):
    assert outcome(CASES[name], genesis) == outcome(CASES[name], torch)


def test_replays_make_inference_tensors():
    double = genesis.compile(lambda x: (x * 2)[:1])
    for _ in range(3):
        with genesis.inference_mode():
            assert double(genesis.ones(2)).is_inference()
        with genesis.no_grad():
            assert not double(genesis.ones(2)).is_inference()
