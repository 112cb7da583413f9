"""What scripts print of gradients, modules, optimizers and distributions reads as PyTorch's output does."""

import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest
import torch

import genesis
from genesis.ir.library import Library

OF_GRADIENTS = """
    x.sum()|x.sum(1)|x.mean()|x.mean(1)|x.max()|x.prod(1)|x.norm()
    x @ x|x @ v|v @ v|b @ x|1 - x|x ** 2|x ** v|2 ** x|x.clamp(0, 1)|x.log1p()
    x[0]|x[1:]|x[:, 1]|x[..., 0]|x[None]|x[i]|x.reshape(-1)|x.flatten()|x.squeeze()|x.squeeze(0)|x.repeat(2, 1)|x.double()
    lib.nn.functional.linear(x, x)|lib.nn.functional.linear(x, x, v)|lib.nn.functional.linear(b, x, v)
    lib.nn.functional.linear(b, x)|lib.nn.functional.cross_entropy(x, i)|lib.nn.functional.cross_entropy(x, x.detach())
    lib.nn.functional.cross_entropy(x, i, label_smoothing=0.1)|lib.nn.functional.relu6(x)
    lib.nn.functional.mse_loss(x, x * 2)|lib.nn.functional.l1_loss(x, x * 2)|lib.nn.functional.layer_norm(x, (2,))
    lib.nn.functional.max_pool2d(b, 2)|lib.nn.functional.conv2d(b[None], b[None])|lib.hstack([x, x])
    lib.nn.functional.ctc_loss(b.log_softmax(2).transpose(0, 1), i.reshape(2, 1) * 0 + 1, i * 0 + 2, i * 0 + 1)
    lib.nn.functional.kl_div(x, x.detach(), reduction='batchmean')|lib.nn.functional.l1_loss(x, x * 2, reduction='sum')
    lib.nn.functional.interpolate(b[None], scale_factor=2)|lib.nn.functional.interpolate(b[None], size=3, mode='bicubic')
    lib.linalg.inv(x)
    x.t()|x.T|v.t()|x.narrow(0, 0, 1)|v.diag()|1 / x|x / 2|x.masked_fill(x > 1, 0.0)|lib.where(x > 1, x, x * 2)
    lib.einsum('ij,jk->ik', x, x)|lib.einsum('ij,ij->ij', x, x)|lib.einsum('ij->i', x)|lib.einsum('ij->ji', x)
    lib.nn.functional.pad(x, (1, 1))|lib.nn.functional.pad(b, (1, 1), mode='reflect')
    x.as_strided((2,), (1,))|x.scatter(0, i[None], 1.0)|x.quantile(0.5)|lib.nn.functional.softmin(x, 1)
    lib.nn.functional.bilinear(x, x, b)|lib.nn.functional.pad(b, (1, 1), mode='circular')
    lib.nn.LSTM(2, 3)(b)[0]|lib.nn.GRU(2, 3)(b)[0]
    lib.nn.functional.pad(b[None], (1, 1, 1, 1), mode='replicate')|lib.nn.LSTMCell(2, 3)(x)[0]|lib.nn.GRUCell(2, 3)(x)
    lib.nn.functional.adaptive_avg_pool2d(b, 1)|lib.nn.functional.adaptive_avg_pool2d(b[None], (1, 2))|lib.nn.RMSNorm(2)(x)
    lib.nn.functional.scaled_dot_product_attention(b[None], b[None], b[None])|lib.nn.functional.tanhshrink(x)
    lib.nn.functional.l1_loss(x, x * 2, reduction='none')|lib.nn.functional.kl_div(x, x.detach(), reduction='none')
    lib.nn.functional.cross_entropy(x, x.detach(), reduction='sum')|lib.nn.functional.cosine_embedding_loss(x, x * 2, i * 2 - 1)
    lib.nn.functional.poisson_nll_loss(x, x.detach(), reduction='none')|lib.nn.functional.multilabel_soft_margin_loss(x, x * 0)
    lib.nn.functional.hinge_embedding_loss(v, i * 2 - 1, reduction='none')
    lib.nn.functional.margin_ranking_loss(v, v * 2, i * 2 - 1, reduction='none')
    lib.nn.functional.triplet_margin_loss(x, x * 2, x * 3, reduction='none')
    lib.nn.functional.gaussian_nll_loss(x, x.detach(), x.detach(), reduction='none')
""".replace("\n", "|").split("|")


@pytest.mark.parametrize("text", [text.strip() for text in OF_GRADIENTS if text.strip()])
def test_steps_of_backward_have_pytorchs_names(text, monkeypatch):
    monkeypatch.setattr(Library, "name", "torch")
    names = []
    for lib in (torch, genesis):
        x = lib.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
        known = {"lib": lib, "x": x, "v": x.sum(0).detach().requires_grad_(), "b": lib.stack([x, x]), "i": lib.tensor([0, 1])}
        step = eval(text, known).grad_fn
        names.append((step.name(), type(step).__name__))
    assert names[1] == names[0]


def test_steps_of_leaves_and_steps_themselves_read_as_pytorchs(monkeypatch):
    monkeypatch.setattr(Library, "name", "torch")
    step, theirs = [(lib.ones(1, requires_grad=True) * 2).grad_fn for lib in (genesis, torch)]
    assert repr(step).startswith("<MulBackward0 object at 0x") and repr(theirs).startswith("<MulBackward0 object at 0x")
    ((leaf, _), _), ((their_leaf, _), _) = step.next_functions, theirs.next_functions
    assert (leaf.name(), type(leaf).__name__) == (their_leaf.name(), type(their_leaf).__name__)


def test_slices_of_a_sequential_keep_names():
    sliced = [lib.nn.Sequential(OrderedDict(a=lib.nn.ReLU(), b=lib.nn.Tanh(), c=lib.nn.ReLU()))[1:] for lib in (genesis, torch)]
    assert str(sliced[0]) == str(sliced[1])


@pytest.mark.parametrize("shown", [
    lambda lib: lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh())._modules.keys(),
    lambda lib: lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh())._modules.items(),
    lambda lib: lib.nn.Sequential(lib.nn.ReLU())._modules.values(),
    lambda lib: lib.optim.SGD([{"params": [lib.ones(1)]}, {"params": [lib.ones(2)], "lr": 0.1}], lr=0.2),
])
def test_members_and_groups_print_as_pytorchs(shown):
    assert str(shown(genesis)) == str(shown(torch))


def test_lists_of_parameters_print_a_line_each(monkeypatch):
    monkeypatch.setattr(Library, "name", "torch")

    def shown(lib):
        module = lib.nn.Module()
        module.held = lib.nn.ParameterList([lib.ones(2, 3), lib.ones(())])
        return str(module)

    assert shown(genesis) == shown(torch)


def test_normals_print_the_matrix_that_was_given(monkeypatch):
    monkeypatch.setattr(Library, "name", "torch")
    ours, theirs = [str(lib.distributions.MultivariateNormal(lib.zeros(2), lib.eye(2))) for lib in (genesis, torch)]
    assert ours.replace("torch.Size([2, 2])", "(2, 2)") == theirs.replace("torch.Size([2, 2])", "(2, 2)").replace(
        "torch.Size([2])", "(2,)")


def test_mixtures_print_their_parts_on_lines():
    d = genesis.distributions
    mixture = d.MixtureSameFamily(d.Categorical(genesis.ones(2)), d.Normal(genesis.ones(2), 1.0))
    assert str(mixture) == f"MixtureSameFamily(\n  {mixture.mixture_distribution},\n  {mixture.component_distribution})"


def test_functional_call_takes_parameters_and_buffers():
    layer = genesis.nn.BatchNorm1d(2).eval()
    parameters, buffers = dict(layer.named_parameters()), {"running_mean": genesis.ones(2)}
    x = genesis.tensor([[1.0, 2.0]])
    together = genesis.func.functional_call(layer, {**parameters, **buffers}, x)
    assert genesis.func.functional_call(layer, (parameters, buffers), x).tolist() == together.tolist()
    with pytest.raises(ValueError, match="in several of the dicts"):
        genesis.func.functional_call(layer, (parameters, parameters), x)


def test_torch_export_is_a_module():
    code = "import genesis.as_torch; genesis.as_torch.install(); import torch; " \
           "print(torch.export.export.__name__, torch.eye(2).to_sparse().shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "export torch.Size([2, 2])\n"


def test_dictionaries_of_parameters_print_their_entries():
    def shown(lib):
        return repr(lib.nn.ParameterDict({"a": lib.nn.Parameter(lib.ones(2, 3)), "b": lib.zeros(2), "c": 3, "d": None}))

    assert shown(genesis) == shown(torch).replace("torch.", "genesis.")


def test_modules_print_numbers_of_numpy_as_numbers():
    def shown(lib):
        nn, n = lib.nn, np.int64(4)
        return repr(nn.Sequential(nn.Linear(n, np.prod((2, 3))), nn.Dropout(np.float64(0.5)), nn.BatchNorm1d(n),
                                  nn.MaxPool2d(n), nn.Upsample(scale_factor=2, mode="nearest"),
                                  nn.Conv1d(n, 2, 3, padding_mode="circular")))

    assert shown(genesis) == shown(torch)
