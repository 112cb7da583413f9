"""What libraries ask of classes of tensors, and old forms of calls."""

import warnings

import torch
from torch import nn


class Plain:
    def __init__(self):
        self.kept = {"a": 1}


class Mixed(Plain, torch.Tensor):
    @staticmethod
    def __new__(cls, data, extra=None):
        return torch.as_tensor(data).as_subclass(cls)

    def __init__(self, data, extra=None):
        super().__init__()
        self.extra = extra


mixed = Mixed([1.0, 2.0], extra=3)
print(sorted(mixed.__dict__), sorted(vars(mixed)), type(mixed + 1).__name__, mixed)
other = torch.zeros(2).as_subclass(Mixed)
other.__dict__ = mixed.__dict__.copy()
print(type(other).__name__, other.extra, other.kept, other.tolist(), sorted(other.__dict__))
plain = torch.zeros(2)
plain.mine, plain.__dict__ = 1, {"other": 2}
print(plain.__dict__, plain.tolist(), hasattr(plain, "mine"))

print(torch.Generator, type(torch.default_generator), type(torch.Generator()).__module__)
torch.manual_seed(0)
zeros = torch.zeros(5)
print(torch.randint_like(zeros, high=7), torch.randint_like(zeros, 7), torch.randint_like(zeros, 3, 9))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(nn.Hardtanh(min_value=-2.0, max_value=3.0), nn.Hardtanh(-2.0, 3.0, True, min_value=-1.0))


class Signed(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = nn.Parameter(torch.ones(()))


class Hidden(Signed):
    """A property that cannot be set hides the parameter of the base."""

    @property
    def k(self):
        return -self.c

    def __init__(self):
        super().__init__()
        self.c = 2.0


hidden = Hidden()
print(hidden.k, list(hidden.state_dict()), [p.item() for p in hidden.parameters()])


class Quiet(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


quiet = torch.ones(2).as_subclass(Quiet)
print(type(quiet).__name__, type(quiet + 1).__name__, type(quiet.sum()).__name__, (quiet * 3).tolist())


class Named(nn.Parameter):
    def __new__(cls, data=None, name="", requires_grad=True):
        made = torch.Tensor._make_subclass(cls, data, requires_grad)
        made.mine = name
        return made


named = Named(torch.ones(2), name="first")
print(type(named).__name__, named.mine, named.requires_grad, isinstance(named, nn.Parameter), named.tolist())
print(nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1), False))


class Scale(nn.Parameter):
    """A positive number: a step multiplies it."""

    def add_(self, other, alpha=1):
        with torch.no_grad():
            return self.copy_(self.as_subclass(torch.Tensor) * torch.exp(alpha * other.as_subclass(torch.Tensor)))


for kind, settings in ((torch.optim.SGD, dict(lr=0.5, momentum=0.9)), (torch.optim.Adadelta, dict(lr=0.5)),
                       (torch.optim.RAdam, dict(lr=0.1)), (torch.optim.Adam, dict(lr=0.1))):
    scale, plain = Scale(torch.tensor([0.5, 2.0])), nn.Parameter(torch.tensor([1.0, -1.0]))
    optimizer = kind([scale, plain], **settings)
    for _ in range(3):
        optimizer.zero_grad()
        ((scale.log() ** 2).sum() + (plain * scale.detach()).sum()).backward()
        optimizer.step()
    print(kind.__name__, scale.tolist(), plain.tolist())


class Coordinates(torch.Tensor):
    pass


def bent(x):
    return (x ** 2).sum() * x


at, functional = torch.arange(3.0).as_subclass(Coordinates), torch.autograd.functional
for found in (functional.jacobian(bent, at), functional.jacobian(bent, at, vectorize=True), functional.vjp(bent, at, at)[1],
              functional.jvp(bent, at, at)[1], functional.hessian(lambda x: bent(x).sum(), at)):
    print(type(found).__name__, found.tolist())


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3).as_subclass(Tagged))
        self.fixed = nn.Parameter(data=torch.ones(3, dtype=torch.int64).as_subclass(Tagged), requires_grad=False)

    def forward(self, x):
        return x @ self.weight.t()


holder = Holder()
holder(torch.ones(4, 3)).sum().backward()
torch.optim.SGD(holder.parameters(), 0.5).step()
print([(name, type(p), p.requires_grad, isinstance(p, nn.Parameter)) for name, p in holder.double().named_parameters()])
print(holder.weight.tolist(), type(holder.weight * 1), isinstance(holder.weight * 1, nn.Parameter))
holder.load_state_dict(Holder().state_dict(), assign=True)
print(type(holder.weight), isinstance(holder.weight, nn.Parameter), holder.weight.tolist())
