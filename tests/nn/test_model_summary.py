"""Summaries of models: shapes, parameters and multiplications, and that nothing is computed or left behind."""

import pytest

import genesis
from genesis import nn
from genesis.nn.hooks import register_module_forward_hook


class Net(nn.Module):
    def __init__(self, looks=False):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(4 * 8 * 8, 10, bias=False))
        self.unused, self.looks = nn.Linear(2, 2), looks

    def forward(self, x):
        x = self.norm(self.conv(x)).relu()
        if self.looks and x.sum().item() > 1e9:
            return x
        return self.head(x)


def test_shapes_parameters_and_multiplications_are_those_of_the_call():
    net = Net()
    found = {row.path: row for row in nn.summary(net, genesis.ones(2, 3, 8, 8)).rows}
    assert found["conv"].shapes == ((2, 4, 8, 8),) and found["head.1"].shapes == ((2, 10),) and found["unused"].shapes == ()
    assert found["conv"].parameters == 4 * 3 * 9 + 4 and found[""].parameters == sum(p.numel() for p in net.parameters())
    assert found["conv"].multiplications == 2 * 4 * 8 * 8 * 27
    assert found["head.1"].multiplications == found["head"].multiplications == 2 * 10 * 256
    assert found[""].multiplications == found["conv"].multiplications + found["head"].multiplications


def test_nothing_is_computed_and_the_model_is_as_before():
    net, seen = Net(), []
    mean, flushes = net.norm.running_mean.tolist(), genesis.debug.stats()["flushes"]
    net.head.eval()
    text = repr(nn.summary(net, input_size=(2, 3, 8, 8), depth=1))
    assert genesis.debug.stats()["flushes"] == flushes
    assert net.training and not net.head.training and "_hooks" not in vars(net.conv) and net.norm.running_mean.tolist() == mean
    with register_module_forward_hook(lambda module, inputs, output: seen.append(module)):
        net(genesis.ones(2, 3, 8, 8))
    assert net.conv in seen
    assert "head (Sequential)" in text and "Linear" not in text.replace("unused (Linear)", "") and "2,686 parameters" in text


def test_what_is_not_known_is_said():
    assert nn.summary(Net(looks=True), genesis.ones(2, 3, 8, 8)).rows[0].multiplications is None
    with pytest.raises(TypeError, match="wants what the model is called with"):
        nn.summary(Net())
