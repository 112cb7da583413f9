"""S3: what the PyTorch autograd tutorial promises. A test is named for its row of the contract."""

import re

import numpy as np
import pytest

import genesis as torch
from tests.contract.documents import document


def scalars():
    return torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)


def test_s3_1_numbers_format_as_numbers():
    x, _ = scalars()
    assert x.shape == () and f"x: {x}, requires_grad: {x.requires_grad}" == "x: 2.0, requires_grad: True"
    assert str(x) == "tensor(2., requires_grad=True)"


def test_s3_2_the_history_of_a_sum_of_products():
    x, y = scalars()
    z = x * y + x**2
    assert f"{z}" == "10.0" and repr(z.grad_fn) == "<AddBackward>"
    assert [repr(node) for node, _ in z.grad_fn.next_functions] == ["<MulBackward>", "<PowBackward>"]


def test_s3_3_gradients_of_a_scalar():
    x, y = scalars()
    (x * y + x**2).backward()
    assert (f"{x.grad}", f"{y.grad}") == ("7.0", "2.0")


def test_s3_4_a_second_backward_adds():
    x, y = scalars()
    for expected in (7, 14):
        (x * y + x**2).backward()
        assert x.grad.item() == expected


def test_s3_5_zero_grad_of_the_module_clears_all_leaves():
    x, y = scalars()
    (x * y + x**2).backward()
    torch.zero_grad()
    assert x.grad is None and y.grad is None


def test_s3_6_the_third_backward_starts_anew():
    x, y = scalars()
    for _ in range(2):
        (x * y + x**2).backward()
    torch.zero_grad()
    (x * y + x**2).backward()
    assert x.grad.item() == 7


def test_s3_7_a_polynomial():
    x, _ = scalars()
    (x**2 + 2 * x + 1).backward()
    assert x.grad.item() == 6


def test_s3_8_what_is_no_scalar_needs_a_gradient_of_its_shape():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    y.backward(torch.tensor([1.0, 1.0, 1.0]))
    assert f"{x.grad}" == "tensor([2., 4., 6.])"
    with pytest.raises(RuntimeError, match=r"only a tensor of one element needs no gradient; this one has shape \(3,\)"):
        (x**2).backward()
    with pytest.raises(ValueError, match=r"gradient has shape \(2,\); want the tensor's \(3,\)"):
        (x**2).backward(torch.ones(2))
    assert x.grad.tolist() == [2, 4, 6]


def test_s3_9_no_grad_and_detach():
    x, _ = scalars()
    with torch.no_grad():
        y = x * x
        assert not y.requires_grad
    z = x.detach()
    assert not z.requires_grad
    with torch.no_grad():
        x += 5
    assert z.item() == 7
    z.zero_()
    assert x.item() == 0


def test_s3_10_inference_mode():
    x, _ = scalars()
    with torch.inference_mode():
        y = x * x
    assert not y.requires_grad and y.item() == 4

    @torch.inference_mode()
    def doubled(x):
        return x * 2

    assert not doubled(x).requires_grad and (x * 2).requires_grad


def test_s3_11_a_custom_function_of_plain_operations():
    MyFunction = document("s3_tutorial")[1]["MyFunction"]
    assert torch.autograd.Function is torch.Function and issubclass(MyFunction, torch.Function)
    x, _ = scalars()
    y = MyFunction.apply(x)
    y.backward()
    assert (f"{y}", f"{x.grad}") == ("8.0", "12.0")


def test_s3_12_the_second_derivative_after_clearing_the_first():
    x, _ = scalars()
    y = x**3
    y.backward(create_graph=True)
    assert f"{x.grad}" == "12.0"
    grad_x = x.grad
    x.grad.zero_()
    grad_x.backward()
    assert f"{x.grad}" == "12.0"


def test_s3_13_automatic_and_manual_gradient_agree():
    x, _ = scalars()
    (x**3 + 2 * x**2 + 1).backward()
    gradient = x.grad.item()
    assert isinstance(gradient, float) and gradient == 20.0


def test_s3_14_a_network_and_its_loss():
    model = torch.nn.Sequential(torch.nn.Linear(1, 10), torch.nn.ReLU(), torch.nn.Linear(10, 1))
    assert [tuple(p.shape) for p in model.parameters()] == [(10, 1), (10,), (1, 10), (1,)]
    loss = torch.nn.MSELoss()(model(torch.randn(100, 1)), torch.zeros(100, 1))
    assert loss.shape == () and loss.requires_grad


def test_s3_15_data_with_noise():
    x = torch.randn(100, 1)
    y = 2 * x + 1 + torch.randn(100, 1) * 0.1
    assert x.shape == y.shape == (100, 1)
    assert np.abs((y - (2 * x + 1)).numpy()).max() < 1


def test_s3_16_descent_by_hand_changes_the_models_own_parameters():
    printed, names = document("s3_tutorial")
    losses = [float(found) for found in re.findall(r"Loss: ([\d.]+)", printed)]
    assert len(losses) == 10 and losses[-1] < losses[0] / 2
    for parameter in names["model"].parameters():
        assert isinstance(parameter, torch.nn.Parameter) and parameter.is_leaf and parameter.requires_grad
        assert parameter.grad is None


def test_s3_16_descent_by_hand_equals_descent_by_the_optimizer():
    x, y = torch.randn(20, 3), torch.randn(20, 1)
    models = [torch.nn.Linear(3, 1) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizer = torch.optim.SGD(models[1].parameters(), lr=0.1)
    for _ in range(15):
        for model in models:
            model.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
        with torch.no_grad():
            for param in models[0].parameters():
                param -= 0.1 * param.grad
        optimizer.step()
    np.testing.assert_allclose(models[0].weight.detach().numpy(), models[1].weight.detach().numpy(), rtol=1e-5)


def test_s3_16_what_waits_is_bounded_in_a_loop_that_looks_at_nothing():
    x = torch.tensor([1.0], requires_grad=True)
    for _ in range(200):
        (x * x).sum().backward()
        with torch.no_grad():
            x -= 0.001 * x.grad
        x.grad = None
    assert len(torch.tracing.state.current_trace().nodes) < 1000


def test_s3_17_item_is_a_number_of_python():
    loss = torch.nn.MSELoss()(torch.ones(2), torch.zeros(2))
    assert type(loss.item()) is float and f"{loss.item():.4f}" == "1.0000"
