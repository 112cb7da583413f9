"""Random numbers of one seed: of tensors, in place, of layers, loaders and distributions."""
# ruff: noqa: B023

import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)


def show(name, draw):
    torch.manual_seed(3)
    numbers = draw().double().reshape(-1)
    print(name, numbers[:4].tolist(), f"sum {numbers.sum().item():.4f}")


for dtype in (torch.float32, torch.float64):
    for count in (3, 17, 100):
        show(f"rand {count}", lambda: torch.rand(count, dtype=dtype))
        show(f"randn {count}", lambda: torch.randn(count, dtype=dtype))
for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32):
    show(f"random_ {dtype}", lambda: torch.empty(5, dtype=dtype).random_())
show("in turns", lambda: torch.cat([torch.randn(3), torch.rand(2), torch.randn(2), torch.randperm(5), torch.randint(9, (3,))]))
show("ranges", lambda: torch.stack([torch.randint(2**40, (3,)), torch.randint(-5, 5, (3,))]))
show("normal", lambda: torch.normal(torch.ones(4), 2.0) + torch.normal(1.0, 2.0, (4,)))
show("complex", lambda: torch.view_as_real(torch.randn(20, dtype=torch.complex64)))
show("bernoulli", lambda: torch.bernoulli(torch.full((9,), 0.4)) + torch.empty(9).bernoulli_(0.4))
for name in ("exponential_", "cauchy_", "log_normal_"):
    show(name, lambda: getattr(torch.empty(20), name)())
covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
show("Wishart", lambda: D.Wishart(torch.tensor([5.0, 4.0]), covariance_matrix=covariance).sample((2,)))
show("LKJCholesky", lambda: D.LKJCholesky(2, torch.tensor([1.5, 0.5])).sample((3,)))
weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.1, 0.1]])
for count, replacement in ((1, False), (2, False), (6, True)):
    show("multinomial", lambda: torch.multinomial(weights, count, replacement))


def from_a_state():
    torch.randn(3)
    state = torch.get_rng_state()
    numbers = torch.randn(5)
    torch.set_rng_state(state)
    print(len(state), state.sum(), torch.equal(numbers, torch.randn(5)))
    return torch.rand(3, generator=torch.Generator().manual_seed(2**40 + 1))


show("state", from_a_state)

x = torch.linspace(-1, 1, 48).reshape(2, 3, 8)
for name in ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "rrelu"):
    show(name, lambda: getattr(F, name)(x, training=True))
for name, shape in (("dropout1d", (6, 8)), ("dropout2d", (6, 8)), ("dropout2d", (2, 3, 2, 2, 2)),
                    ("dropout3d", (6, 8)), ("dropout3d", (2, 3, 2, 4)), ("dropout3d", (2, 3, 2, 2, 2))):
    show(f"{name} of {len(shape)} axes", lambda: getattr(F, name)(x.reshape(shape), training=True))
show("of a view", lambda: F.dropout(x.transpose(0, 1)))
show("attention", lambda: F.scaled_dot_product_attention(x, x, x, dropout_p=0.3))
for name in ("xavier_uniform_", "kaiming_normal_", "orthogonal_", "trunc_normal_"):
    show(name, lambda: getattr(nn.init, name)(torch.empty(6, 5)))
show("trunc_normal_", lambda: nn.init.trunc_normal_(torch.empty(6, 5), 0, 1, 1.5, 2))
show("sparse_", lambda: nn.init.sparse_(torch.empty(6, 5), 0.3))


def layer(make, *inputs):
    module = make()
    result = module(*inputs)
    result = result[0] if isinstance(result, tuple) else result
    return torch.cat([result.reshape(-1), *[p.reshape(-1) for p in module.parameters()]])


for first in (False, True):
    show("LSTM", lambda: layer(lambda: nn.LSTM(8, 6, 2, dropout=0.5, batch_first=first), x))
    show("encoder", lambda: layer(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=first), x))
    show("Transformer", lambda: layer(lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=first), x, x))
show("LSTM of packed sequences", lambda: nn.LSTM(8, 6, 2, dropout=0.5)(
    nn.utils.rnn.pack_padded_sequence(torch.randn(4, 3, 8), [4, 2, 1]))[0].data)

torch.manual_seed(11)
low, high = torch.tensor(0.5), torch.tensor([2.0])
print(torch.empty(3).uniform_(low, high[0]), torch.empty(3).normal_(low, high[0]), torch.empty(3).random_(torch.tensor(3)))

data = list(range(21))
LOADERS = {
    "in order": lambda: {}, "shuffled": lambda: {"shuffle": True},
    "with replacement": lambda: {"sampler": RandomSampler(data, True, 40)},
    "beyond all": lambda: {"sampler": RandomSampler(data, num_samples=50)},
    "subset": lambda: {"sampler": SubsetRandomSampler(data[3:])},
    "weighted": lambda: {"sampler": WeightedRandomSampler(range(1, 22), 15, False)},
    "of a generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(5)},
}
for name, options in LOADERS.items():
    torch.manual_seed(3)
    print(name, [batch.tolist() for batch in DataLoader(data, 5, **options())], torch.rand(1))
own = torch.Generator().manual_seed(5)
loaders = [DataLoader(data, 5, shuffle=True, generator=own), DataLoader(data, sampler=RandomSampler(data, False, 9, own))]
print([[batch.tolist() for batch in loader] for loader in loaders * 2], torch.rand(1, generator=own))
print([list(part.indices) for part in random_split(data, [0.5, 0.5])], [*DistributedSampler(data, 3, 1, seed=4)])

two = torch.tensor([2.0, 0.5])
for kind in (
    D.Normal(0.0, 1.0), D.Categorical(torch.tensor([0.3, 0.6, 0.1])), D.Exponential(2.0), D.Laplace(0.0, 1.0),
    D.Gamma(two, 1.0), D.Beta(two, 1.0), D.Dirichlet(two), D.Poisson(torch.tensor([2.0, 50.0])),
    D.Binomial(40, torch.tensor([0.3, 0.6])),
    D.Cauchy(0.0, 1.0), D.StudentT(3.0), D.VonMises(0.0, 2.0), D.NegativeBinomial(5.0, 0.4),
):
    show(type(kind).__name__, lambda: kind.sample((4,)))

for name, method in {"elements": prune.RandomUnstructured(0.4), "parts": prune.RandomStructured(2, dim=0)}.items():
    show(name, lambda: method.prune(torch.ones(5, 3, dtype=torch.float64)))
