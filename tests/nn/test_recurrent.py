"""Recurrent networks against torch's: outputs, states, gradients, state dicts, packed sequences, plans, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.nn.utils import rnn
from tests.devices import tensor
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
SETTINGS = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True}]


def both(name, dtype="float64", **settings):
    """The module of genesis, with the parameters of torch's, and torch's."""
    theirs = getattr(torch.nn, name)(3, 4, **settings, dtype=getattr(torch, dtype))
    ours = getattr(nn, name)(3, 4, **settings, dtype=getattr(genesis, dtype))
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def state_for(name, *shape):
    states = RANDOM.normal(size=(2, *shape))
    return tuple(states) if name.startswith("LSTM") else states[0]


def of(state, make):
    return tuple(map(make, state)) if isinstance(state, tuple) else make(state)


def results(module, library, x, hx):
    """Output, states, and the gradients of input, first states and parameters."""
    x = library.tensor(x, requires_grad=True)
    hx = None if hx is None else of(hx, lambda a: library.tensor(a, requires_grad=True))
    output, states = module(x, hx)
    states = states if isinstance(states, tuple) else (states,)
    ((output**2).sum() + sum((s * (k + 1.5)).sum() for k, s in enumerate(states))).backward()
    leaves = [x, *(hx if isinstance(hx, tuple) else () if hx is None else (hx,)), *module.parameters()]
    return [output, *states, *[leaf.grad for leaf in leaves]]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_outputs_states_and_gradients_are_torchs(name, settings):
    ours, theirs = both(name, **settings)
    assert repr(ours) == repr(theirs)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    layers = settings.get("num_layers", 1) * (1 + settings.get("bidirectional", False))
    x = RANDOM.normal(size=(3, 2, 3))
    hx = state_for(name, layers, 3 if settings.get("batch_first") else 2, 4)
    for first in (None, hx):
        assert_close(results(ours, genesis, x, first), results(theirs, torch, x, first), f"{name} {settings}", scale=10)
        ours.zero_grad()
        theirs.zero_grad()


@pytest.mark.parametrize("case", [("RNN", {"nonlinearity": "relu"}), ("LSTM", {"proj_size": 2, "bidirectional": True,
                                                                               "num_layers": 2})], ids=str)
def test_variants_are_torchs(case):
    ours, theirs = both(case[0], **case[1])
    x = RANDOM.normal(size=(4, 3, 3))
    assert_close(results(ours, genesis, x, None), results(theirs, torch, x, None), scale=10)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_sequence_without_a_batch_has_states_without_one(name):
    ours, theirs = both(name, bidirectional=True)
    x, hx = RANDOM.normal(size=(5, 3)), state_for(name, 2, 4)
    assert_close(results(ours, genesis, x, hx), results(theirs, torch, x, hx), scale=10)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_float32_is_torchs(name):
    ours, theirs = both(name, "float32", num_layers=2)
    x = RANDOM.normal(size=(4, 5, 3)).astype(np.float32)
    assert_close(results(ours, genesis, x, None), results(theirs, torch, x, None), scale=10)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells_are_torchs(name):
    for settings, shape in (({}, (2, 3)), ({"bias": False}, (3,))):
        ours, theirs = both(name, **settings)
        assert repr(ours) == repr(theirs)
        x, hx = RANDOM.normal(size=shape), state_for(name, *shape[:-1], 4)
        for first in (None, hx):
            given = [None if first is None else of(first, make) for make in (genesis.tensor, torch.tensor)]
            assert_close(ours(genesis.tensor(x), given[0]), theirs(torch.tensor(x), given[1]), name)


def test_dropout_is_between_layers_and_while_training():
    lstm = nn.LSTM(3, 4, num_layers=2, dropout=1.0, dtype=genesis.float64).requires_grad_(False)
    x, nothing = genesis.tensor(RANDOM.normal(size=(5, 2, 3))), genesis.zeros(5, 2, 4, dtype=genesis.float64)
    alone = nn.LSTM(4, 4, dtype=genesis.float64)
    alone.load_state_dict({k.replace("l1", "l0"): v for k, v in lstm.state_dict().items() if k.endswith("l1")})
    alone.requires_grad_(False)
    assert_close(lstm(x)[0], alone(nothing)[0])
    assert not np.allclose(lstm.eval()(x)[0].numpy(), alone(nothing)[0].numpy())


# ---- several lengths ----


@pytest.mark.parametrize(("name", "lengths"), [
    ("RNN", [4, 2, 2, 1]), ("GRU", [4, 2, 2, 1]), ("LSTM", [4, 2, 2, 1]), ("LSTM", [2, 4, 1, 3])], ids=str)
def test_packed_sequences_go_through_as_torchs(name, lengths):
    ours, theirs = both(name, num_layers=2, bidirectional=True)
    x, hx = RANDOM.normal(size=(4, 4, 3)), state_for(name, 4, 4, 4)
    found = []
    for module, library, r in ((ours, genesis, rnn), (theirs, torch, torch.nn.utils.rnn)):
        leaf = library.tensor(x, requires_grad=True)
        packed = r.pack_padded_sequence(leaf, lengths, enforce_sorted=lengths[0] == 4)
        output, states = module(packed, of(hx, library.tensor))
        steps, sizes = r.pad_packed_sequence(output, total_length=5, padding_value=7.0)
        states = states if isinstance(states, tuple) else (states,)
        ((steps**2).sum() + sum(s.sum() for s in states)).backward()
        found.append([packed.data, packed.batch_sizes, output.data, steps, sizes, *states, leaf.grad,
                      *[p.grad for p in module.parameters()]])
    assert_close(*found, scale=10)


def test_batches_of_other_lengths_are_few_programs():
    gru, draw, built = nn.GRU(3, 4), np.random.default_rng(3), []
    for _ in range(30):
        lengths = [6, *sorted(draw.integers(1, 7, 4), reverse=True)]
        x = genesis.tensor(draw.normal(size=(6, 5, 3)).astype(np.float32)) * 2
        output, state = gru(rnn.pack_padded_sequence(x, lengths))
        (rnn.pad_packed_sequence(output)[0].sum() + state.sum()).backward()
        gru.weight_ih_l0.grad.sum().item()
        built.append(genesis.debug.stats()["plans_built"])
    assert built[-1] == built[5]


def test_packed_elements_are_those_of_the_time_of_packing():
    found = []
    for library, r in ((genesis, rnn), (torch, torch.nn.utils.rnn)):
        x, w = library.arange(12.0).reshape(3, 2, 2).clone(), library.full((2,), 2.0, requires_grad=True)
        packed = r.pack_padded_sequence(x, [3, 1])
        x[0] = -1
        data = packed.data
        scaled = x * w
        with library.no_grad():
            without = r.pack_padded_sequence(scaled, [1, 3], enforce_sorted=False).data
        within = r.pack_padded_sequence(scaled, [1, 3], enforce_sorted=False)
        (within.data * within[0]).sum().backward()
        elements, *rest = within
        assert tuple(elements.shape) == (4, 2) and elements is within.data and len(rest) == 3 == len(within[1:])
        assert not without.requires_grad and elements.requires_grad and "data=tensor([[" in repr(within)
        again = pickle.loads(pickle.dumps(r.PackedSequence(*(None if m is None else m.detach() for m in within))))
        doubled = pickle.loads(pickle.dumps(again.double))()  # a method is found by its name
        found.append([data, without, elements, w.grad, again.data, copy.copy(again).data, within._replace(data=data).data,
                      doubled.data])
    assert_close(*found)


def test_the_way_back_from_sorted_indices_is_found():
    for library, r in ((genesis, rnn), (torch, torch.nn.utils.rnn)):
        packed = r.PackedSequence(*map(library.tensor, ([4, 1, 6, 5, 7], [3, 2], [2, 0, 1])))
        assert [row.tolist() for row in r.unpack_sequence(packed)] == [[1, 7], [6], [4, 5]]


def test_layers_take_steps_as_they_were_packed():
    found, values = [], RANDOM.normal(size=(4, 2, 3))
    for module, library, r in zip(both("GRU"), (genesis, torch), (rnn, torch.nn.utils.rnn), strict=True):
        x, scale = library.tensor(values), library.full((3,), 2.0, dtype=library.float64, requires_grad=True)
        written = r.pack_padded_sequence(x, [4, 2])
        x.numpy()[...] = 0
        with library.no_grad():
            constant = r.pack_padded_sequence(library.tensor(values) * scale, [2, 4], enforce_sorted=False)
        outputs = [module(packed)[0].data for packed in (written, constant)]
        sum(output.sum() for output in outputs).backward()
        assert scale.grad is None
        found.append([written.data, *outputs, *[p.grad for p in module.parameters()]])
    assert_close(*found, scale=10)


def test_what_lies_in_the_padding_does_not_matter():
    found = []
    for module, library, r in zip(both("LSTM"), (genesis, torch), (rnn, torch.nn.utils.rnn), strict=True):
        x = library.tensor(np.arange(24.0).reshape(4, 2, 3) / 24)
        x[2:, 1] = float("nan")
        leaf = library.ones(1, dtype=x.dtype, requires_grad=True)
        output, (h, _) = module(r.pack_padded_sequence(x * leaf, [4, 2]))
        (output.data.sum() + h.sum()).backward()
        found.append([output.data, leaf.grad, *[p.grad for p in module.parameters()]])
    assert_close(*found, scale=10)


def test_sequences_are_padded_and_packed_as_torchs():
    arrays = [RANDOM.normal(size=(n, 2)) for n in (2, 4, 1)]
    ours, theirs = ([library.tensor(a) for a in arrays] for library in (genesis, torch))
    for settings in ({}, {"batch_first": True, "padding_value": 3.0}, {"padding_side": "left"}):
        assert_close(rnn.pad_sequence(ours, **settings), torch.nn.utils.rnn.pad_sequence(theirs, **settings))
    for mixed in ([ours[0], ours[1].float()], [ours[0].int(), ours[1]]):
        assert rnn.pad_sequence(mixed).dtype is mixed[0].dtype
    packed, expected = (r.pack_sequence(s, enforce_sorted=False) for r, s in ((rnn, ours), (torch.nn.utils.rnn, theirs)))
    assert_close([*packed], [*expected])
    assert_close(rnn.unpad_sequence(rnn.pad_sequence(ours), [2, 4, 1]), theirs)


# ---- plans ----


def steps_of(train, count):
    """The programs that `count` calls take, after one."""
    train()
    with genesis.debug.Recording() as recording:
        for _ in range(count):
            train()
    return [flushed.runs for flushed in recording.programs]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_training_step_through_time_is_one_program(compiled):
    model, head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)
    optimizer = genesis.optim.Adam([*model.parameters(), *head.parameters()], lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(head(model(x)[0][:, -1]), y)
        loss.backward()
        optimizer.step()
        return loss

    run = genesis.compile(step) if compiled else step
    x = genesis.tensor(RANDOM.normal(size=(8, 12, 3)).astype(np.float32))
    y = x.sum(1)[:, :1] * 0.1
    losses = []
    assert steps_of(lambda: losses.append(run(x, y)), 6)[-1] >= 5
    genesis.debug.reset_stats()
    losses.append(run(x, y))
    values = [loss.item() for loss in losses]
    made = genesis.debug.stats()
    assert (made["plans_built"], made["kernels_compiled"], made["native_calls"]) == (0, 0, 1)
    assert values[-1] < values[0]


@pytest.mark.device
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_devices_agree_with_torch(name):
    ours, theirs = both(name, "float32", bidirectional=True)
    x = RANDOM.normal(size=(4, 2, 3)).astype(np.float32)
    on_device = tensor(x)
    ours.to(on_device.device)
    output, _ = ours(on_device)
    (output**2).sum().backward()
    expected, _ = theirs(torch.tensor(x))
    (expected**2).sum().backward()
    assert_close([output, *[p.grad for p in ours.parameters()]], [expected, *[p.grad for p in theirs.parameters()]], scale=10)


X = genesis.ones(5, 2, 3)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: nn.LSTM(3, 4)(genesis.ones(5, 2, 4)), r"LSTM: input has shape \(5, 2, 4\); want \(.., 3\), 2 or 3 axes"),
    (lambda: nn.GRU(3, 4)(X, genesis.zeros(2, 2, 4)), r"GRU: h_0 has shape \(2, 2, 4\); want \(1, 2, 4\)"),
    (lambda: nn.LSTM(3, 4)(X, (genesis.zeros(1, 2, 4), genesis.zeros(1, 2))), r"c_0 has shape \(1, 2\); want \(1, 2, 4\)"),
    (lambda: nn.RNN(3, 4, nonlinearity="sine"), "nonlinearity must be 'tanh' or 'relu', got 'sine'"),
    (lambda: nn.RNN(3, 0), "sizes 3, 0 and 1 layers; want 1 or more"),
    (lambda: nn.GRU(3, 4, dropout=2), "dropout is a probability, got 2"),
    (lambda: nn.LSTM(3, 4, proj_size=4), "proj_size is 4; want less than hidden_size, 4"),
    (lambda: nn.LSTM(3, 4)(X[:0]), "a sequence of length 0"),
    (lambda: nn.GRUCell(3, 4)(X), r"GRUCell: input has shape \(5, 2, 3\); want \(.., 3\) of 1 or 2 axes"),
    (lambda: nn.LSTMCell(3, 4)(X[0], (genesis.zeros(2, 3),) * 2), r"hx has shape \(2, 3\); want \(2, 4\)"),
    (lambda: rnn.pack_padded_sequence(X, [3, 5]), r"lengths \[3, 5\] do not descend; want enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(X, [6, 5]), r"want 2 of them, from 1 to 5"),
    (lambda: rnn.pad_sequence([]), "0 sequences"),
    (lambda: rnn.pad_sequence([X, X[..., :2]]), "want .l, ..., l alone different"),
])
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
