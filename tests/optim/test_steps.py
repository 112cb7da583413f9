"""What a training step records: one path through the trie, taken again by every step."""

import contextlib

import numpy as np
import pytest
import torch

import genesis
from genesis import nn, optim
from genesis.debug import Recording
from genesis.tracing.state import current_trace


def train(optimizer_class, steps, **settings):
    """The programs that `steps` steps of a small network ran, setup left out."""
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = optimizer_class(model.parameters(), **settings)
    x, y = genesis.tensor(genesis.randn(16, 4).numpy()), genesis.tensor([0, 1, 2, 1] * 4)
    losses = []
    with Recording() as recording:
        for number in range(steps):
            optimizer.param_groups[0]["lr"] = 0.02 / (number + 1)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss)
    assert losses[-1].item() < losses[0].item()
    return recording.programs


@pytest.mark.parametrize(("name", "settings"), [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True}),
    ("RMSprop", {"momentum": 0.9, "centered": True}), ("Adagrad", {"lr_decay": 0.1}),
    ("Adamax", {}), ("NAdam", {}), ("Adadelta", {"eps": 0.1}), ("ASGD", {"lambd": 0.1}),
    ("Rprop", {}),
])
def test_every_step_runs_one_and_the_same_program(name, settings):
    programs = train(getattr(optim, name), 6, **settings)
    assert [flushed.runs for flushed in programs] == [6]


def test_parameters_stay_the_same_leaves():
    weight = nn.Parameter(genesis.ones(2))
    optimizer = optim.Adam([weight])
    (weight * weight).sum().backward()
    optimizer.step()
    assert optimizer.param_groups[0]["params"][0] is weight
    assert weight.is_leaf and weight.requires_grad and weight.grad.tolist() == [2, 2]
    assert len(current_trace().nodes) == 0


def test_a_clipped_step_is_one_program_too():
    weight = genesis.tensor([3.0, 4.0], requires_grad=True)
    optimizer = optim.SGD([weight], lr=1.0)
    with Recording() as recording:
        for _ in range(3):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            nn.utils.clip_grad_norm_([weight], 0.5)
            optimizer.step()
    assert [flushed.runs for flushed in recording.programs] == [3]
    assert weight.tolist() == pytest.approx([3 * 0.7, 4 * 0.7], rel=1e-5)


def test_step_calls_its_closure_with_gradients_on():
    weight = genesis.tensor(1.0, requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = weight * weight
        loss.backward()
        return loss

    with genesis.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 1.0 and weight.item() == 0.5


def test_zero_grad_makes_zeros_when_asked():
    weight = genesis.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([weight])
    weight.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad.tolist() == [0]
    optimizer.zero_grad()
    assert weight.grad is None


@pytest.mark.parametrize(("build", "message"), [
    (lambda x: optim.SGD([]), "SGD: got no parameters"),
    (lambda x: optim.SGD([x * 2]), "wants leaf tensors"),
    (lambda x: optim.SGD([x, x]), r"a parameter of shape \(1,\) is given twice"),
    (lambda x: optim.SGD([x], lr=-1), "lr is -1; want 0 or more"),
    (lambda x: optim.SGD([x], nesterov=True), "nesterov wants a momentum above 0"),
    (lambda x: optim.RMSprop([x], alpha=-1), "RMSprop: alpha is -1; want 0 or more"),
    (lambda x: optim.Adagrad([x], lr_decay=-1), "Adagrad: lr_decay is -1; want 0 or more"),
    (lambda x: optim.Adam([x], betas=(0.9, 1.0)), r"betas are \(0.9, 1.0\); want them in \[0, 1\)"),
    (lambda x: optim.Adam([x]).load_state_dict(optim.Adam([x, genesis.ones(1)]).state_dict()), "groups of .2. param"),
])
def test_settings_that_make_no_sense_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build(genesis.tensor([1.0], requires_grad=True))


def test_constructors_have_their_settings_in_their_code_as_torchs():
    for name in ("Adam", "SGD", "RMSprop"):
        ours, theirs = (getattr(library, name).__init__.__code__.co_varnames for library in (optim, torch.optim))
        assert ours[:6] == theirs[:6]


def test_unknown_settings_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nesterov'"):
        optim.RMSprop([genesis.ones(1)], nesterov=True)


def test_how_a_step_is_run_is_a_hint_but_steps_are_not_derived():
    parameter = genesis.ones(1, requires_grad=True)
    optim.Adam([parameter], foreach=True, fused=False, capturable=True, differentiable=False)
    with pytest.raises(ValueError, match="Adam: steps are not derived; want differentiable=False"):
        optim.Adam([parameter], differentiable=True)


def test_an_optimizer_says_what_it_lacks():
    class Still(optim.Optimizer):
        pass

    parameter = genesis.ones(1, requires_grad=True)
    parameter.sum().backward()
    with pytest.raises(NotImplementedError, match=r"Still has neither settings\(group, age\), .* nor a step\(\) of its own"):
        Still([parameter], {"lr": 0.1}).step()


@pytest.mark.parametrize("mode", [contextlib.nullcontext, genesis.eager])
def test_a_step_whose_state_has_another_shape_writes_nothing(mode):
    with mode():
        w = genesis.tensor([1.0], requires_grad=True)
        optimizer = optim.SGD([w], lr=1.0, momentum=0.9)
        (w * w).sum().backward()
        optimizer.step()
        w.grad, w.data = None, genesis.tensor([3.0, -3.0])
        (w * w).sum().backward()
        with pytest.raises(ValueError, match=r"shape \(2,\), which does not fit into \(1,\)"):
            optimizer.step()
        assert w.tolist() == [3.0, -3.0]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_parameters_that_are_views_of_one_buffer_are_moved_as_in_torch(seed, compiled):
    """In any order, some over others, while the buffer is written between steps, and one of them within."""
    moved = []
    for library in (genesis, torch):
        random = np.random.default_rng(seed)
        flat = library.tensor(random.normal(size=24).astype("float32"))
        ends = [(k, k + 4) for k in range(0, 20, 4)] if seed == 0 else np.sort(random.integers(0, 25, (5, 2)), 1).tolist()
        parts = [library.nn.Parameter(flat[start:end]) for start, end in ends]
        parts += [library.nn.Parameter(flat[k::3]) for k in range(seed)]
        optimizer = library.optim.SGD(parts, lr=0.1, momentum=0.9) if seed % 2 else library.optim.Adam(parts, lr=0.1)
        weights = [library.tensor(random.normal(size=tuple(p.shape)).astype("float32")) for p in parts]

        def step(parts=parts, optimizer=optimizer, weights=weights, library=library):
            optimizer.zero_grad()
            loss = sum((p * p * w).sum() for p, w in zip(parts, weights, strict=True))
            loss.backward()
            with library.no_grad():
                parts[1].mul_(1.5)
            optimizer.step()
            return loss

        step = genesis.compile(step) if compiled and library is genesis else step
        for number in range(6):
            moved.append(step().item())
            if number == 3:
                with library.no_grad():
                    flat[2:9] += 1
        moved += [*flat.tolist(), *[number for p in parts for number in p.tolist()]]
    half = len(moved) // 2
    assert moved[:half] == pytest.approx(moved[half:], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_that_share_memory_are_all_moved_as_in_torch(compiled):
    """One is tied to the other through `.data`, another is a part of it."""
    moved = []
    for library in (genesis, torch):
        whole, tied, part = (library.nn.Parameter(library.ones(3)) for _ in range(3))
        tied.data, part.data = whole.data, whole.data[1:]
        optimizer = library.optim.SGD([whole, tied, part], lr=0.1, momentum=0.9)

        def step(whole=whole, tied=tied, part=part, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (whole * whole).sum() + (tied * 3).sum() - part.sum() / 2
            loss.backward()
            optimizer.step()
            return loss

        step = genesis.compile(step) if compiled and library is genesis else step
        losses = [step().item() for _ in range(4)]
        moved.append([*losses, *whole.tolist(), *tied.tolist(), *part.tolist()])
    assert moved[0] == pytest.approx(moved[1], rel=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("name", "settings"), [("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {}), ("Adafactor", {})])
def test_a_parameter_that_has_lost_its_state_begins_anew_as_in_torch(name, settings, compiled):
    found = []
    for library in (genesis, torch):
        x, y = (library.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True) for _ in range(2))
        optimizer = getattr(optim if library is genesis else torch.optim, name)([x, y], **settings)

        def step(x=x, y=y, optimizer=optimizer):
            optimizer.zero_grad()
            (x * x + y * y * y).sum().backward()
            optimizer.step()

        step = genesis.compile(step) if compiled and library is genesis else step
        for number in range(8):
            if number == 3:
                y.requires_grad_(False)
                y.grad = None
                optimizer.state.pop(y)
            elif number == 6:
                assert y not in optimizer.state
                assert optimizer.state[y] == {}  # which makes an entry
                assert [at for at, state in optimizer.state_dict()["state"].items() if state] == [0]
                y.requires_grad_()
            step()
        found.append([x.detach().numpy(), y.detach().numpy()])
    np.testing.assert_allclose(*found, rtol=1e-5)
