"""gradcheck says yes to right gradients and no to wrong ones, and where they are wrong."""

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import GradcheckError, gradcheck, gradgradcheck, numerical_gradient_check


def leaf(*shape, seed=0, dtype=genesis.float64):
    return genesis.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=dtype, requires_grad=True)


def half_forgotten(x):
    """x^2, of whose derivative 2x only a half is recorded."""
    return x * x.detach()


def test_float32_and_a_bare_tensor_pass_at_steps_of_a_millionth():
    x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert x.dtype is genesis.float32
    assert gradcheck(lambda x: (x**2).sum(), x, eps=1e-6)


@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16, genesis.float32])
def test_the_function_sees_float64(dtype):
    seen = []
    fixed = genesis.ones(2, dtype=dtype)
    assert gradcheck(lambda x, y: [seen.append((x.dtype, y.dtype)), x * y][1], (leaf(2, dtype=dtype), fixed))
    assert set(seen) == {(genesis.float64, genesis.float64)}


def test_a_wrong_gradient_is_told_with_its_place_and_both_numbers():
    x, y = leaf(3), leaf(2, 2, seed=1)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x, y: (x.exp(), half_forgotten(y)), (x, y))
    row, column = np.unravel_index(np.abs(y.detach().numpy()).argmax(), (2, 2))
    largest = y[row, column].item()
    said = str(caught.value)
    assert f"output 1 by input 1 differs most at element ({row}, {column}) by element ({row}, {column})" in said
    assert f"numerical {2 * largest:.4f}"[:-1] in said and f"analytical {largest:.4f}"[:-1] in said
    assert "wrong: 4 of 16" in said


@pytest.mark.parametrize("fast", [False, True])
def test_a_jacobian_is_not_its_transpose(fast):
    weight = genesis.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]], dtype=genesis.float64)

    class Turned(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return weight @ x

        @staticmethod
        def backward(ctx, g):
            return weight @ g

    assert gradcheck(lambda x: weight @ x, leaf(3), fast_mode=fast)
    assert not gradcheck(Turned.apply, leaf(3), raise_exception=False, fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_a_wrong_gradient_is_false_without_exceptions(fast):
    assert gradcheck(half_forgotten, leaf(2, 3), raise_exception=False, fast_mode=fast) is False
    assert gradcheck(lambda x: x * x, leaf(2, 3), raise_exception=False, fast_mode=fast) is True


def test_inputs_that_require_no_gradient_are_held_fixed():
    x, fixed = leaf(2), genesis.tensor([3.0, 4.0])
    assert gradcheck(lambda x, fixed: x * half_forgotten(fixed), (x, fixed))
    assert gradcheck(lambda x, index, factor: x[index] * factor, (x, genesis.tensor([1, 0, 1]), 2.5))


def test_outputs_without_a_gradient_are_left_out():
    assert gradcheck(lambda x: (x * x, x.detach() * 3, x.argmax()), leaf(3))


def test_where_no_output_has_a_gradient_differences_must_be_zero():
    assert gradcheck(lambda x: x.detach().floor(), leaf(3))
    with pytest.raises(GradcheckError, match=r"numerical 1, analytical 0|numerical 1\.0*\d*, analytical 0"):
        gradcheck(lambda x: x.detach(), leaf(3))


def test_an_input_that_is_not_used_has_a_gradient_of_zeros():
    assert gradcheck(lambda x, y: y.sin(), (leaf(2), leaf(2, seed=1)))
    assert gradgradcheck(lambda x, y: y.sin(), (leaf(2), leaf(2, seed=1)))


def test_several_outputs_0d_and_empty_inputs():
    assert gradcheck(lambda x, y: (x * y, (x + y).exp()), (leaf(), leaf(2, 0)))
    assert gradcheck(lambda x: (x.sum(), x.amax(0)), leaf(3, 2))
    assert gradgradcheck(lambda x: x.clone().exp().sum(), leaf())


def test_a_gradient_that_changes_from_run_to_run_is_told():
    calls = []

    def moody(x):
        calls.append(x)
        return x * x.detach() + x.detach() * x * (len(calls) == 2)

    with pytest.raises(GradcheckError, match=r"backward of output 0 to input 0 is not deterministic"):
        gradcheck(moody, leaf(2))


def test_nan_is_not_a_right_gradient():
    with pytest.raises(GradcheckError, match="nan"):
        gradcheck(lambda x: (x - x).sqrt(), leaf(2))


def test_no_input_requires_a_gradient():
    with pytest.raises(ValueError, match="none of the 1 inputs requires a gradient"):
        gradcheck(lambda x: x, genesis.ones(2))


def test_the_function_must_return_tensors():
    with pytest.raises(TypeError, match="must return a tensor or a tuple of tensors, not int"):
        gradcheck(lambda x: 3, leaf(2))


def test_inputs_are_not_touched():
    x = leaf(2)
    with genesis.no_grad():
        assert gradcheck(lambda x: x.exp(), x)
        assert not genesis.is_grad_enabled()
    assert x.grad is None and x.is_leaf and x.requires_grad


# ---- second derivatives ----


def wrong_in_the_second(x):
    """x^3, with its derivative 3x^2, of whose own derivative 6x a part is missing."""
    held = x.detach()
    return x**3 - (x - held) * 0 + ((x - held) ** 2) * held


def test_second_derivatives_are_checked():
    assert gradcheck(wrong_in_the_second, leaf(3))
    with pytest.raises(GradcheckError, match="gradgradcheck: the Jacobian of output 0 by input 0"):
        gradgradcheck(wrong_in_the_second, leaf(3))
    assert gradgradcheck(lambda x: x**3, leaf(3), raise_exception=False)
    assert not gradgradcheck(wrong_in_the_second, leaf(3), raise_exception=False, fast_mode=True)


def test_cotangents_may_be_given():
    assert gradgradcheck(lambda x, w: (x @ w).tanh(), (leaf(2, 3), leaf(3, 2)), genesis.ones(2, 2, requires_grad=True))
    assert gradgradcheck(lambda x: (x.exp(), x.sum()), leaf(2), (leaf(2, seed=4), genesis.tensor(2.0)))


def test_a_module_is_checked_in_float64():
    layer = genesis.nn.Linear(3, 2).to(genesis.float64)
    assert gradcheck(layer, leaf(4, 3)) and gradgradcheck(layer, leaf(4, 3))


def test_inputs_on_another_device_are_checked_there():
    w = leaf(2, seed=3).to("cpu:1")
    x = genesis.tensor([1.0, 2.0], device="cpu:1", requires_grad=True)
    assert gradcheck(lambda x: x.exp() * w, x) and gradgradcheck(lambda x: x.exp() * w, x)
    assert not gradcheck(half_forgotten, x, raise_exception=False)


# ---- what is checked ----


class Tripled(genesis.autograd.Function):
    """2 x, whose backward says 3."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g


@pytest.mark.parametrize("options", [
    {"check_forward_ad": True}, {"check_forward_ad": True, "check_backward_ad": False}, {"check_batched_grad": True},
    {"check_forward_ad": True, "fast_mode": True}, {"check_undefined_grad": False, "check_grad_dtypes": True, "masked": False},
])
def test_the_options_of_pytorch_find_what_it_finds(options):
    def product(x, y):
        return (x * y).sin(), x.sum()

    for lib in (genesis, torch):
        given = [lib.tensor([0.5, 1.5], dtype=lib.float64, requires_grad=True), lib.tensor([2.0, -1.0], dtype=lib.float64)]
        assert lib.autograd.gradcheck(product, given, **options)
    with pytest.raises(GradcheckError, match="forward" if options.get("check_backward_ad") is False else "Jacobian"):
        gradcheck(Tripled.apply, leaf(3), **options)
    assert not gradcheck(Tripled.apply, leaf(3), raise_exception=False, **options)


def test_complex_numbers_have_tangents_of_both_parts():
    z = genesis.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    assert gradcheck(lambda z: z * z.conj() + z.exp(), z, check_forward_ad=True, check_batched_grad=True)


@pytest.mark.parametrize("options", [{"check_fwd_over_rev": True}, {"check_batched_grad": True},
                                     {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False}])
def test_second_derivatives_have_the_options_too(options):
    for lib in (genesis, torch):
        x = lib.tensor([0.5, 1.5], dtype=lib.float64, requires_grad=True)
        assert lib.autograd.gradgradcheck(lambda x: x.exp() * x, x, gen_non_contig_grad_outputs=True, **options)
    assert not gradgradcheck(wrong_in_the_second, leaf(3), raise_exception=False, **options)


def test_something_is_to_be_checked():
    with pytest.raises(ValueError, match="nothing is to be checked"):
        gradcheck(lambda x: x * x, leaf(2), check_backward_ad=False)


# ---- one input ----


def test_numerical_gradient_check():
    assert numerical_gradient_check(genesis.tanh, genesis.tensor([0.5, -1.0]))
    assert numerical_gradient_check(lambda x: (x**3).sum(), genesis.tensor([1, 2]))
    assert genesis.function.numerical_gradient_check is numerical_gradient_check
    with pytest.raises(GradcheckError, match="numerical"):
        numerical_gradient_check(half_forgotten, genesis.tensor([0.5, -1.0]))
