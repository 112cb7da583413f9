"""Packed sequences through an LSTM, a VAE's sampling by hand, hooks, a custom Function, functional transforms."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Function
from torch.func import functional_call, grad, vmap
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

numbers = np.random.RandomState(2)


def given(*shape):
    return torch.tensor(numbers.randn(*shape) * 0.3, dtype=torch.float32)


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= ctx.limit).to(gradient.dtype), None


lstm = nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True)
head = nn.Sequential(nn.Linear(10, 6), nn.GELU(), nn.Linear(6, 1))
model = nn.ModuleDict({"lstm": lstm, "head": head})
with torch.no_grad():
    for _name, parameter in sorted(model.named_parameters()):
        parameter.copy_(given(*parameter.shape))
lengths = torch.tensor([5, 3, 2])
batch = pad_sequence([given(int(n), 4) for n in lengths], batch_first=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
seen = []
handle = head.register_forward_hook(lambda module, inputs, output: seen.append(tuple(output.shape)))
for _ in range(3):
    packed = pack_padded_sequence(batch, lengths, batch_first=True)
    out, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
    loss = Clamp.apply(head(out), 0.4).pow(2).sum() + out.std()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
handle.remove()
print(seen, batch.size(), out.size(-1))
weights = dict(head.named_parameters())
one = vmap(grad(lambda w, x: functional_call(head, w, (x,)).sum()), in_dims=(None, 0))(weights, given(7, 10))
print({name: (list(g.shape), round(g.norm().item(), 4)) for name, g in one.items()})
x = given(3).requires_grad_()
(hessian,) = torch.autograd.functional.hessian(lambda t: (t.sin() * t).sum(), (x,))[0]
print([[round(v, 4) for v in row] for row in hessian.tolist()])
print(torch.einsum("ij,kj->ik", given(2, 3), given(2, 3)), torch.linalg.norm(given(3, 3)), torch.finfo(torch.float32).eps)
