"""Gradients of what is computed from Cholesky's factor."""

import pytest
import torch

import genesis


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("upper", [False, True])
def test_gradients_of_both_orders_are_by_both_triangles_of_the_factor_as_pytorchs(upper, dtype):
    torch.manual_seed(0)
    a, b = torch.randn(2, 3, 3, dtype=dtype), torch.randn(3, 2, dtype=dtype)
    factor = torch.linalg.cholesky(a @ a.mH + torch.eye(3, dtype=dtype), upper=upper)
    for name, given in (("cholesky_solve", (b, factor)), ("cholesky_inverse", (factor,))):
        found = []
        for library, tensor in ((torch, torch.tensor), (genesis, genesis.tensor)):
            xs = [tensor(x.numpy(), requires_grad=True) for x in given]
            y = getattr(library, name)(*xs, upper=upper)
            first = library.autograd.grad(y.abs().square().sum(), xs, create_graph=True)
            second = library.autograd.grad(sum(g.abs().square().sum() for g in first), xs)
            found.append([torch.as_tensor(g.detach().numpy()) for g in (*first, *second)])
        for theirs, ours in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
        assert any(g.triu(1).abs().max() > 1e-3 and g.tril(-1).abs().max() > 1e-3 for g in found[1] if g.shape[-1] == 3)
