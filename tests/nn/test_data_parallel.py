"""DataParallel computes what its module computes on one device: outputs, gradients, state."""

import collections

import pytest
import torch

import genesis
from genesis import nn
from genesis.nn.parallel import gather, replicate, scatter
from tests.growth import growth
from tests.tolerances import assert_close

DEVICES = ["cpu", "cpu:1", "cpu:2"]
Pair = collections.namedtuple("Pair", "left right")


def network():
    genesis.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8, dtype=genesis.float64), nn.Tanh(), nn.Linear(8, 3, dtype=genesis.float64))


def torch_network():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()


def batch(rows):
    return genesis.linspace(-2, 2, rows * 4, dtype=genesis.float64).reshape(rows, 4)


def gradients(model):
    return [None if p.grad is None else p.grad.tolist() for p in model.parameters()]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 12])
@pytest.mark.parametrize("devices", [DEVICES[:1], DEVICES[:2], DEVICES], ids=len)
def test_outputs_and_gradients_are_those_of_one_device(rows, devices):
    alone, model = network(), network()
    parallel = nn.DataParallel(model, devices)
    inputs = batch(rows).requires_grad_()
    expected, computed = alone(inputs), parallel(inputs)
    assert computed.device == "cpu"
    assert_close(computed.detach(), expected.detach())
    for module, output in ((alone, expected), (parallel, computed)):
        inputs.grad = None
        (output * output).mean().backward()
        module.seen = inputs.grad
    assert_close(parallel.seen, alone.seen)
    for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
        assert_close(ours.grad, theirs.grad)
        assert ours.grad.device == "cpu"


def test_training_is_that_of_torch():
    ours = network()
    theirs = torch_network()
    theirs.load_state_dict({k: torch.tensor(v.tolist(), dtype=torch.float64) for k, v in ours.state_dict().items()})
    parallel = nn.DataParallel(ours, DEVICES)
    steps = genesis.optim.Adam(parallel.parameters(), lr=0.05), torch.optim.Adam(theirs.parameters(), lr=0.05)
    labels = [0, 1, 2, 1, 0]
    for _ in range(5):
        for optimizer in steps:
            optimizer.zero_grad()
        loss = nn.functional.cross_entropy(parallel(batch(5)), genesis.tensor(labels))
        output = theirs(torch.tensor(batch(5).tolist(), dtype=torch.float64))
        wanted = torch.nn.functional.cross_entropy(output, torch.tensor(labels))
        loss.backward()
        wanted.backward()
        assert_close(loss.detach(), wanted.detach())
        for optimizer in steps:
            optimizer.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(a.detach(), b.detach(), scale=10)


class Structured(nn.Module):
    """Takes and gives containers."""

    def __init__(self):
        self.weight = nn.Parameter(genesis.tensor([1.0, 2.0]))

    def forward(self, pair, *, options, scale=1.0):
        y = pair.left * self.weight * scale + options["shift"][0]
        return {"sum": y.sum(1), "pair": Pair(y, [pair.right, options["name"]]), "loss": y.mean()}


def test_containers_and_keywords_are_taken_apart_and_put_together():
    module = Structured()
    left, right = genesis.arange(10.0).reshape(5, 2), genesis.arange(5)
    given = {"options": {"shift": [genesis.ones(5, 1)], "name": "n"}, "scale": genesis.tensor(3.0)}
    alone = module(Pair(left, right), **given)
    joined = nn.DataParallel(module, DEVICES[:2])(Pair(left, right), **given)
    assert_close(joined["sum"].detach(), alone["sum"].detach())
    assert isinstance(joined["pair"], Pair) and joined["pair"].right[0].tolist() == [0, 1, 2, 3, 4]
    assert joined["pair"].right[1] == "n"
    assert joined["loss"].shape == (2,)  # a 0-d output of each device


def test_fewer_rows_than_devices_use_the_first_devices():
    shares = scatter((batch(2), "x"), DEVICES)
    assert [(share[0].device, share[0].shape, share[1]) for share in shares] == [
        ("cpu", (1, 4), "x"), ("cpu:1", (1, 4), "x"),
    ]
    assert nn.DataParallel(network(), DEVICES)(batch(0)).shape == (0, 3)
    sizes = [share.shape[0] for share in scatter(batch(5), ["cpu"] * 4)]
    assert sizes == [len(part) for part in torch.zeros(5).chunk(4)]


def test_another_axis_and_another_output_device():
    parallel = nn.DataParallel(nn.Tanh(), ["cpu:1", "cpu:2"], output_device=2, dim=1)
    inputs = genesis.arange(6.0).reshape(2, 3)
    assert_close(parallel(inputs), inputs.tanh().to("cpu:2"))
    assert parallel(inputs).device == "cpu:2"


def test_the_module_lives_on_the_first_device():
    model = network().to("cpu:1")
    parallel = nn.DataParallel(model, [1, 0])
    assert parallel.device_ids == ["cpu:1", "cpu"] and nn.DataParallel(model).device_ids == ["cpu:1"]
    parallel(batch(4)).sum().backward()
    assert {p.grad.device for p in model.parameters()} == {genesis.device("cpu:1")}
    with pytest.raises(RuntimeError, match="DataParallel: the module has a tensor on cpu:1; want all on cpu:2"):
        nn.DataParallel(model, ["cpu:2", "cpu:1"])(batch(4))


def test_a_frozen_parameter_gets_no_gradient():
    model = network()
    model[0].bias.requires_grad = False
    nn.DataParallel(model, DEVICES)(batch(6)).sum().backward()
    assert model[0].bias.grad is None and model[0].weight.grad is not None


def test_a_parameter_that_no_replica_uses_gets_no_gradient():
    model = nn.Sequential(nn.Linear(4, 3), nn.Identity())
    model[1].unused = nn.Parameter(genesis.ones(2))
    nn.DataParallel(model, DEVICES)(batch(6).float()).sum().backward()
    assert model[1].unused.grad is None and model[0].bias.grad.tolist() == [6, 6, 6]


def test_gradients_of_gradients_go_through_the_replicas():
    alone, model = network(), network()
    for module, call in ((alone, alone), (model, nn.DataParallel(model, DEVICES))):
        weight = module[0].weight
        (slope,) = genesis.autograd.grad(call(batch(5)).square().sum(), weight, create_graph=True)
        (module.twice,) = genesis.autograd.grad(slope.square().sum(), weight)
    assert_close(model.twice, alone.twice, scale=10)


class Counting(nn.Module):
    """Writes to a buffer, which it reads."""

    def __init__(self):
        self.register_buffer("rows", genesis.zeros(1))

    def forward(self, x):
        with genesis.no_grad():
            self.rows += x.shape[0]
        return x + self.rows


def test_what_the_first_device_writes_to_buffers_stays():
    module = Counting()
    parallel = nn.DataParallel(module, DEVICES[:2])
    assert parallel(genesis.zeros(5)).tolist() == [3, 3, 3, 2, 2]
    assert parallel(genesis.zeros(5)).tolist() == [6, 6, 6, 5, 5]
    assert module.rows.item() == 6


def test_a_shared_parameter_is_one_parameter():
    class Tied(nn.Module):
        def __init__(self):
            self.first = nn.Linear(2, 2, bias=False)
            self.again = self.first
            self.weight = self.first.weight

        def forward(self, x):
            assert self.again is self.first and self.weight is self.first.weight
            return self.again(self.first(x)) + self.weight.sum()

    alone, tied = Tied(), Tied()
    tied.load_state_dict(alone.state_dict())
    x = genesis.arange(8.0).reshape(4, 2)
    nn.DataParallel(tied, DEVICES)(x).sum().backward()
    alone(x).sum().backward()
    assert len(list(tied.parameters())) == 1
    assert_close(tied.first.weight.grad, alone.first.weight.grad, scale=4)


def test_modes_and_no_grad_reach_the_replicas():
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(1.0))
    parallel = nn.DataParallel(model, DEVICES)
    inputs = batch(6).float()
    assert not parallel(inputs).any()
    parallel.eval()
    with genesis.no_grad():
        output = parallel(inputs)
    assert not output.requires_grad
    assert_close(output, model[0](inputs).detach())


def test_state_dicts_have_torchs_keys_and_load_back():
    parallel = nn.DataParallel(network(), DEVICES)
    state = parallel.state_dict()
    assert list(state) == list(torch.nn.DataParallel(torch_network()).state_dict())
    other = nn.DataParallel(network(), DEVICES)
    nn.init.zeros_(other.module[0].weight)
    other.load_state_dict(state)
    assert_close(other(batch(3)).detach(), parallel(batch(3)).detach())


def test_replicas_list_no_parameters_and_leave_the_module_as_it_was():
    model = network()
    before = dict(model.named_parameters())
    for copy in replicate(model, DEVICES[:2]):
        assert copy is not model and not list(copy.parameters())
    assert replicate(model, ["cpu"]) == [model]
    assert all(dict(model.named_parameters())[name] is p for name, p in before.items())


WRONG = {
    "lengths": (lambda: nn.DataParallel(nn.Tanh(), DEVICES).forward(batch(3), batch(4)), ValueError, r"scatter: .*\[3, 4\]"),
    "axis": (lambda: scatter([genesis.ones(2), genesis.ones(2, 2)], DEVICES, 1), ValueError, "axis 1"),
    "no devices": (lambda: nn.DataParallel(nn.Tanh(), []), ValueError, "one device at least"),
    "device": (lambda: nn.DataParallel(nn.Tanh(), ["cuda:0"]), ValueError, "'cuda:0' is not available"),
    "types": (lambda: gather([genesis.ones(1), None], "cpu"), TypeError, "different types"),
    "keys": (lambda: gather([{"a": 1}, {"b": 1}], "cpu"), TypeError, "different keys"),
    "values": (lambda: gather([1, 2], "cpu"), TypeError, "equal values"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_arguments_raise(name):
    function, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        function()


def test_steps_keep_memory_flat_without_the_collector():
    model = nn.DataParallel(network(), DEVICES)
    optimizer = genesis.optim.Adam(model.parameters())
    inputs = batch(8)

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    assert growth(step, warm=60).is_flat()
