"""Names that PyTorch does not document and code imports: what they answer is what PyTorch's answer."""

import importlib

import numpy as np
import pytest
import torch

import genesis
from genesis.as_torch.finder import Door, look_up


def of(path: str):
    home, _, name = path.rpartition(".")
    return look_up(home, name)


def theirs(path: str):
    home, _, name = path.rpartition(".")
    return getattr(importlib.import_module(home), name)


LAYERS = [
    ("BatchNorm1d", 2), ("BatchNorm3d", 2), ("InstanceNorm2d", 2), ("LayerNorm", 2), ("Conv2d", 1, 1, 1), ("Conv1d", 1, 1, 1),
    ("ConvTranspose2d", 1, 1, 1), ("MaxPool2d", 2), ("AvgPool1d", 2), ("AdaptiveAvgPool2d", 1), ("Dropout", 0.5),
    ("Dropout2d", 0.5), ("MSELoss",), ("CrossEntropyLoss",), ("NLLLoss",), ("BCELoss",), ("Linear", 1, 1), ("GroupNorm", 1, 2),
]


@pytest.mark.parametrize("path", [
    "batchnorm._BatchNorm", "batchnorm._NormBase", "conv._ConvNd", "conv._ConvTransposeNd", "pooling._MaxPoolNd",
    "pooling._AvgPoolNd", "pooling._AdaptiveAvgPoolNd", "dropout._DropoutNd", "loss._Loss", "loss._WeightedLoss",
    "instancenorm._InstanceNorm",
])
def test_layers_are_of_the_families_that_pytorchs_are_of(path):
    mine, yours = of(f"torch.nn.modules.{path}"), theirs(f"torch.nn.modules.{path}")
    for name, *arguments in LAYERS:
        have, want = (getattr(lib.nn, name)(*arguments) for lib in (genesis, torch))
        assert isinstance(have, mine) == isinstance(want, yours), name
        assert issubclass(type(have), mine) == issubclass(type(want), yours), name


def test_norms_of_ones_own_check_their_inputs():
    def run(lib, base, norm):
        class Rows(base):
            def _check_input_dim(self, input):
                if input.dim() != 3:
                    raise ValueError("wants three")

        class Any2d(norm):
            def _check_input_dim(self, input):
                pass

        x = lib.arange(12.0).reshape(2, 3, 2)
        rows, flat = Rows(3, momentum=0.5), Any2d(3)
        with pytest.raises(ValueError, match="wants three"):
            rows(x[:, :, 0])
        return [y.detach().numpy() for y in (rows(x), rows.running_mean, flat(x[:, :, 0]))]

    mine = run(genesis, of("torch.nn.modules.batchnorm._BatchNorm"), genesis.nn.BatchNorm2d)
    yours = run(torch, theirs("torch.nn.modules.batchnorm._BatchNorm"), torch.nn.BatchNorm2d)
    for have, want in zip(mine, yours, strict=True):
        np.testing.assert_allclose(have, want, atol=1e-6)


def test_losses_of_ones_own():
    class Scaled(of("torch.nn.modules.loss._WeightedLoss")):
        def forward(self, x, y):
            return (self.weight * (x - y) ** 2).mean()

    loss = Scaled(genesis.tensor([1.0, 3.0]), reduction="sum")
    assert loss(genesis.ones(2), genesis.zeros(2)).item() == 2 and loss.reduction == "sum"
    assert isinstance(loss, of("torch.nn.modules.loss._Loss")) and [*loss.state_dict()] == ["weight"]
    for arguments in ((), (True, None), (False, None), (None, False), (True, True)):
        assert of("torch.nn.modules.loss._Loss")(*arguments).reduction == torch.nn.modules.loss._Loss(*arguments).reduction


def test_small_functions():
    for shape in ((2, 3), (4, 3, 5, 5)):
        assert of("torch.nn.init._calculate_fan_in_and_fan_out")(genesis.ones(shape)) == (
            torch.nn.init._calculate_fan_in_and_fan_out(torch.ones(shape)))
    assert of("torch.nn.init._calculate_correct_fan")(genesis.ones(2, 3), "fan_out") == 2
    assert [of("torch.nn._reduction.get_enum")(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    clones = of("torch.nn.modules.transformer._get_clones")(genesis.nn.Linear(2, 2), 2)
    assert len(clones) == 2 and clones[0].weight is not clones[1].weight
    parts = [genesis.ones(2), genesis.zeros(3, 1)]
    flat = of("torch._utils._flatten_dense_tensors")(tensors=parts)
    assert [p.shape for p in of("torch._utils._unflatten_dense_tensors")(flat, parts)] == [(2,), (3, 1)]


def test_profiles_are_those_of_the_library(tmp_path):
    x = genesis.ones(8, 8)
    with of("torch.profiler.profile")(activities=[of("torch.profiler.ProfilerActivity").CPU], record_shapes=True) as measured:
        for _ in range(2):
            with of("torch.profiler.record_function")("doubled"):
                (x * 2).exp().tolist()
            measured.step()
    averages = measured.key_averages()
    assert {row.key: row.count for row in averages} == {"mul": 2, "exp": 2, "doubled": 2}
    assert "exp" in averages.table(sort_by="self_cpu_time_total") and averages.total_average().count == 4
    measured.export_chrome_trace(str(tmp_path / "trace.json"))
    assert (tmp_path / "trace.json").read_text().count('"name": "doubled"') == 2


def test_steps_of_optimizers_of_ones_own_ask_these():
    assert of("torch.optim.optimizer._default_to_fused_or_foreach")([genesis.ones(2)], False) == (False, False)
    devices = of("torch.optim.optimizer._get_fused_kernels_supported_devices")
    assert devices() is not devices()  # a caller may add its own
    assert of("torch.optim.optimizer._get_value")(genesis.tensor(2.0)) == 2.0
    seen = []

    class Optimizer:
        def __init__(self, differentiable):
            self.defaults = {"differentiable": differentiable}

        def step(self):
            """A step."""
            seen.append(genesis.is_grad_enabled())

    step = of("torch.optim.optimizer._use_grad_for_differentiable")(Optimizer.step)
    step(Optimizer(False))
    step(Optimizer(True))
    assert seen == [False, True] and step.__doc__ == "A step."


def test_wrapping_classes_are_known_by_their_protocol():
    asked = "torch.utils._python_dispatch.is_traceable_wrapper_subclass"
    for lib, is_wrapper in ((genesis, of(asked)), (torch, theirs(asked))):
        ways = {"__tensor_flatten__": lambda self: ([], None), "__tensor_unflatten__": staticmethod(lambda *a: None)}
        kind = type("Wrapper", (lib.Tensor,), ways)
        assert [is_wrapper(x) for x in (lib.ones(2), 1, lib.ones(2).as_subclass(kind))] == [False, False, True]


def test_there_are_no_generators_of_gpus_and_settings_of_cudnn_change_nothing():
    assert of("torch.cuda.default_generators") == theirs("torch.cuda.default_generators") == ()
    with of("torch.backends.cudnn.flags")(enabled=False):
        pass
    assert of("torch.nn.MultiheadAttention")(4, 2)._reset_parameters() is None


@pytest.mark.parametrize("name", ["_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented"])
@pytest.mark.parametrize("arguments", [(False, lambda: "why"), (True, None), (1, None), (False, "why")])
def test_checks_raise_what_pytorchs_raise(name, arguments):
    def problem(check):
        try:
            return check(*arguments)
        except Exception as raised:
            return type(raised), str(raised)

    assert problem(of(f"torch.{name}")) == problem(theirs(f"torch.{name}"))


def test_checks_of_a_class_of_errors_and_of_tensors():
    with pytest.raises(KeyError, match="which"):
        of("torch._check_with")(KeyError, False, lambda: "which")
    of("torch._check_tensor_all")(genesis.tensor([True, True]))
    with pytest.raises(RuntimeError, match="one is not"):
        of("torch._check_tensor_all")(genesis.tensor([True, False]), lambda: "one is not")
    with pytest.raises(KeyError, match="one is not"):
        of("torch._check_tensor_all_with")(KeyError, genesis.tensor([True, False]), lambda: "one is not")
    with pytest.raises(TypeError, match="got a Tensor"):
        of("torch._check")(genesis.tensor(True))


def test_context_managers_that_decorate():
    """A call is within a clone; a generator's steps are, and what is between them is not; a class is refused."""
    for path in ("_DecoratorContextManager", "_NoParamDecoratorContextManager"):
        said = []
        for base in (of(f"torch.utils._contextlib.{path}"), theirs(f"torch.utils._contextlib.{path}")):
            log: list[object] = []

            class Entered(base):
                def __enter__(self, log=log):
                    log.append("in")

                def __exit__(self, *problem, log=log):
                    log.append("out")

            @Entered()
            def add(x, y=1, log=log):
                log.append(x + y)
                return x + y

            @Entered()
            def steps(log=log):
                try:
                    log.append((yield 1))
                except KeyError:
                    log.append("caught")
                yield 2
                return 3

            going = steps()
            log += [add(1, y=2), next(going), "between", going.send("sent"), *going]
            thrown = steps()
            log += [next(thrown), thrown.throw(KeyError()), thrown.close(), add.__name__]
            if "NoParam" in path:
                log.append(Entered(lambda log=log: log.append("bare") or 4)())
            said.append(log)
        assert said[0] == said[1]
    with pytest.raises(RuntimeError, match="cannot decorate a class"):
        of("torch.utils._contextlib.context_decorator")(lambda: None, Entered)


def test_what_libraries_import_by_private_names():
    x, g = np.random.RandomState(0).randn(2, 3, 4).astype("float32")
    for path, arguments in (("torch.distributions.transforms._clipped_sigmoid", [x * 100]),
                            ("torch._softmax_backward_data", [g, x])):
        more = [[0, lib.float32] if len(arguments) == 2 else [] for lib in (genesis, torch)]
        have = of(path)(*map(genesis.tensor, arguments), *more[0])
        assert np.allclose(have.numpy(), theirs(path)(*map(torch.tensor, arguments), *more[1]).numpy(), atol=1e-6)
    assert dict(of("torch.nn.modules.module._global_forward_hooks")) == {}
    assert of("torch.utils.tensorboard.writer.SummaryWriter") is of("torch.utils.tensorboard.SummaryWriter")
    with pytest.raises(NotImplementedError, match=r"torch\.jit\._get_trace_graph"):
        Door("torch.jit")._get_trace_graph()


def test_the_line_search_of_lbfgs_takes_torchs_steps():
    def search(lib, strong_wolfe):
        def at(x, step, d):
            y = x + step * d
            return float((y**4 - 3 * y**2 + y).sum()), 4 * y**3 - 6 * y + 1

        x, d = lib.tensor([2.0, -0.5]), lib.tensor([-1.0, 0.3])
        f, g = at(x, 0.0, d)
        loss, gradient, step, count = strong_wolfe(at, x, 0.1, d, f, g, g.dot(d))
        return loss, gradient.tolist(), float(step), count

    ours = search(genesis, look_up("torch.optim.lbfgs", "_strong_wolfe"))
    loss, gradient, step, count = search(torch, importlib.import_module("torch.optim.lbfgs")._strong_wolfe)
    assert ours == (pytest.approx(loss, 1e-5), pytest.approx(gradient, 1e-4), pytest.approx(step, 1e-5), count)
    points = (0.0, 1.0, -2.0, 1.5, 0.5, 1.0)
    assert look_up("torch.optim.lbfgs", "_cubic_interpolate")(*points) == pytest.approx(
        importlib.import_module("torch.optim.lbfgs")._cubic_interpolate(*map(torch.tensor, points)).item())


def test_row_numbers_are_compressed_and_shares_drawn():
    rows = [0, 0, 2, 5]
    expected = torch._convert_indices_from_coo_to_csr(torch.tensor(rows), 7, out_int32=True)
    found = of("torch._convert_indices_from_coo_to_csr")(genesis.tensor(rows), 7, out_int32=True)
    assert found.tolist() == expected.tolist() and found.dtype == genesis.int32
    shares = of("torch._sample_dirichlet")(genesis.full((500, 3), 2.0))
    np.testing.assert_allclose(shares.sum(1).numpy(), 1, rtol=1e-5)
    assert abs(shares[:, 0].mean().item() - 1 / 3) < 0.05


def test_assertions_within_compiled_functions_are_replayed():
    check = of("torch._assert")

    def double(x):
        check(x.ndim == 1, f"one axis, not {x.ndim}")
        return x * 2

    compiled = genesis.compile(double)
    for n in (1.0, 2.0, 3.0):
        assert compiled(genesis.full((2,), n)).tolist() == [2 * n, 2 * n]
    assert len(compiled.entries) == 1 and not compiled.refusals
    with pytest.raises(AssertionError, match="one axis, not 2"):
        compiled(genesis.ones(2, 2))
