"""What other processes do in the tests of shared memory. They begin anew: each imports this file, and the library it is for."""

import importlib


def change(name, tensors, model, back, forth):
    """Writes to each, answers with what it found, and reads what is written meanwhile."""
    lib = importlib.import_module(name)
    x, columns, bits, p = tensors
    found = [t.tolist() for t in (x, columns, bits, p)], [t.is_shared() for t in tensors], p.requires_grad, type(p).__name__
    x.add_(1)
    columns.mul_(10)
    bits.bitwise_xor_(1)
    optimizer = lib.optim.SGD([p, *model.parameters()], lr=0.5)
    (p * 2).sum().backward()
    model(lib.ones(1, 2)).sum().backward()
    optimizer.step()
    back.put((*found, x))
    forth.get()
    back.put(x.tolist())


def fill(x):
    x.fill_(5)
