"""Forward derivatives written by users, and those of dual tensors under `no_grad`, as in PyTorch."""

import numpy as np
import pytest
import torch

import genesis

X, T = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)


def of_product(lib):
    """x y and x^2, with a forward derivative that is twice the right one, so that a call of it shows."""

    class Product(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, scale, y):
            return x * y * scale, x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.scale, y = inputs
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(y, x)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y * ctx.scale + h * 2 * x, None, g * x * ctx.scale

        @staticmethod
        def jvp(ctx, x_t, no, y_t):
            y, x = ctx.saved_tensors
            assert no is None
            return 2 * (x_t * y + x * y_t) * ctx.scale, 4 * x * x_t

    return Product


def same(ours, theirs):
    for have, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(have.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_functions_own_jvp_is_called_in_forward_mode_and_backward_in_reverse():
    def run(lib):
        def apply(x, y):
            return of_product(lib).apply(x.sin(), 3.0, y)

        x, y, t = lib.tensor(X), lib.tensor(X + 1), lib.tensor(T)
        _, both = lib.func.jvp(apply, (x, y), (t, t * 2))
        _, one = lib.func.jvp(lambda x: apply(x, y), (x,), (t,))
        forward_ad = lib.autograd.forward_ad
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, t)
            tangents = [forward_ad.unpack_dual(r).tangent for r in apply(dual, y)]
        leaf = lib.tensor(X, requires_grad=True)
        u, v = apply(leaf, leaf)
        (u.sum() + v.sum()).backward()
        return *both, *one, *tangents, leaf.grad, lib.func.jacfwd(lambda x: apply(x, y)[0].sum(0))(x)

    same(run(genesis), run(torch))


def test_a_jvp_may_have_no_tangent_and_needs_no_backward():
    def run(lib):
        class Parts(lib.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x.clone(), x.sign()

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.set_materialize_grads(False)
                ctx.mark_non_differentiable(output[1])

            @staticmethod
            def jvp(ctx, x_t, y_t):
                assert y_t is None
                return x_t * 3, None

        return [lib.func.jvp(lambda x: Parts.apply(x, lib.ones(2))[0], (lib.tensor(X),), (lib.tensor(T),))[1]]

    same(run(genesis), run(torch))


def test_a_wrong_number_of_tangents_is_an_error():
    class Wrong(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, x_t):
            return x_t, x_t

    with pytest.raises(RuntimeError, match="2 tangents for 1 results"):
        genesis.func.jvp(Wrong.apply, (genesis.ones(2),), (genesis.ones(2),))


def test_a_level_under_no_grad_has_tangents():
    def run(lib):
        forward_ad, weight = lib.autograd.forward_ad, lib.tensor(T.T, requires_grad=True)
        with lib.no_grad():
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(lib.tensor(X), lib.tensor(T))
                made = forward_ad.unpack_dual((dual @ weight).tanh())
            weight.mul_(2)  # nothing is recorded any more
            assert not made.tangent.requires_grad and not (weight * 2).requires_grad
        return made

    same(run(genesis), run(torch))
