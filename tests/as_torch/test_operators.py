"""`torch.library` and `torch.ops` under the door: what libraries with kernels of their own do when they are imported."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

import genesis
from genesis.as_torch.finder import look_up
from genesis.as_torch.missing import MissingError
from tests.tolerances import assert_close

OPS = look_up("torch", "ops")


def test_a_library_of_kernels_for_pytorch_is_refused_as_one_that_does_not_fit():
    with pytest.raises(OSError, match=r"_C\.so is compiled for PyTorch"):
        OPS.load_library("_C.so")


def test_operations_of_ones_own_are_found_by_their_names():
    custom_op, impl, library = (look_up("torch.library", name) for name in ("custom_op", "impl", "Library"))

    @custom_op("door_tests::twice", mutates_args=())
    def twice(x):
        return x * 2

    impl("door_tests::thrice", "cpu", lambda x: x * 3)
    impl("door_tests::fake", "Meta", lambda x: x)
    fragment = library("door_tests", "DEF")
    fragment.define("fourfold(Tensor x) -> Tensor")
    fragment.impl("fourfold", lambda x: x * 4, "CompositeExplicitAutograd")
    x = genesis.tensor([1.0], requires_grad=True)
    own = OPS.door_tests
    assert [f(x).item() for f in (twice, own.twice, own.twice.default, own.thrice, own.fourfold)] == [2, 2, 2, 3, 4]
    own.thrice(x).sum().backward()
    assert x.grad.tolist() == [3.0]
    for name in ("fake", "absent"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(own, name)


def of_library(lib, name):
    return getattr(torch.library, name) if lib is torch else look_up("torch.library", name)


def rounded_up(lib):
    """An operation by NumPy, with a gradient that is not the derivative of what it computes."""
    custom_op, register = of_library(lib, "custom_op"), of_library(lib, "register_autograd")

    def rounded(x: torch.Tensor, step: float, shift: float = 1.0) -> torch.Tensor:
        return lib.from_numpy(np.ceil(x.detach().numpy() / step) * step + shift)

    made = custom_op("door_tests::rounded", rounded, mutates_args=())

    def keep(ctx, inputs, output):
        ctx.inputs = inputs[1:]
        ctx.save_for_backward(output)

    register("door_tests::rounded", lambda ctx, gradient: (gradient * ctx.inputs[1] * ctx.saved_tensors[0], None, None),
             setup_context=keep)
    return made


def test_gradients_of_ones_own_operations_are_those_that_are_registered():
    found = []
    for lib in (genesis, torch):
        operation = rounded_up(lib)
        x = lib.tensor([0.3, 0.8], requires_grad=True)
        y = operation(x * 2, 0.5, shift=3.0)
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist(), operation(x, 0.5).tolist(), y.requires_grad))
    assert found[0] == found[1]


def test_operations_of_pytorch_can_be_named_and_not_called():
    with pytest.raises(MissingError, match=r"torch\.ops\.aten\._fused_sdp_choice\.default"):
        OPS.aten._fused_sdp_choice.default(1)


def test_backward_operations_without_a_function_are_torchs():
    x, scale = torch.randn(2, 5, 6), 1.25
    values, indices = torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)
    pooled = [torch.randn_like(values), x, [3, 3], [2, 2], [1, 1], [1, 1], False, indices]
    dropped = [x, x > 0, scale]
    for name, given in (("max_pool2d_with_indices_backward", pooled), ("native_dropout_backward", dropped)):
        want = getattr(torch.ops.aten, name).default(*given)
        own = [genesis.tensor(v.numpy()) if isinstance(v, torch.Tensor) else v for v in given]
        assert_close(getattr(OPS.aten, name).default(*own), want)


def test_what_torchvision_does_at_its_import_goes_well():
    keys, guard = look_up("torch._C", "DispatchKeySet"), look_up("torch._C", "_ExcludeDispatchKeyGuard")
    kinds = look_up("torch._C", "DispatchKey")
    with guard(keys(kinds.AutocastCPU) | keys(kinds.AutocastCUDA)):
        function = look_up("torch.jit", "_script_if_tracing")(len)
    assert function is len and look_up("torch.onnx.symbolic_helper", "parse_args")("v", "i")(len) is len
    assert look_up("torch.hub", "get_dir")().startswith(look_up("torch.hub", "_get_torch_home")())


def test_what_timm_imports_of_the_hub_is_there():
    assert look_up("torch.hub", "HASH_REGEX").search("net-12ab34cd.pth")[1] == "12ab34cd"
    assert look_up("torch.hub", "urlparse")("https://a/b.pth").path == "/b.pth"


def annotated(lib):
    T = lib.Tensor

    def first(x: T, y: T | None, n: int, s: list[int], f: float = 2.5, name: str = "a", dtype: lib.dtype = lib.float32,
              *, k: int | None = None) -> T: ...

    def second(x: T, ys: list[T], flags: Sequence[bool], c: int | float | bool = 3) -> tuple[T, int, float]: ...

    def third(x: T) -> None: ...

    def fourth(x: T, os: list[T | None]) -> list[T]: ...

    return first, second, third, fourth


def test_schemas_of_annotated_functions_are_torchs():
    infer = [of_library(lib, "infer_schema") for lib in (genesis, torch)]
    for ours, theirs in zip(annotated(genesis), annotated(torch), strict=True):
        for writes in ((), ("x",)):
            assert infer[0](ours, mutates_args=writes, op_name="f") == infer[1](theirs, mutates_args=writes, op_name="f")
    for function in (lambda x: x, dict.fromkeys):
        with pytest.raises(ValueError):
            infer[0](function, mutates_args=())


def test_kernels_casts_and_libraries_of_ones_own():
    found = []
    for lib in (genesis, torch):
        def half(x: lib.Tensor) -> lib.Tensor:
            return x * 2

        made = of_library(lib, "custom_op")("door_tests::half", half, mutates_args=(), device_types="cuda")
        assert made.register_kernel("cpu")(half) is half
        made.register_kernel("cuda", lambda x: x * 7)
        of_library(lib, "register_kernel")("door_tests::half", "cpu", lambda x: x * 0.5)
        x = lib.tensor([3.0])
        found.append([made(x).item(), (OPS if lib is genesis else torch.ops).door_tests.half(x).item()])
        of_library(lib, "register_autocast")("door_tests::half", "cpu", lib.bfloat16)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            found[-1].append(str(made(x).dtype).split(".")[1])
        found[-1].append(of_library(lib, "Library")("door_tests_too", "FRAGMENT").define("same(Tensor x) -> Tensor"))
    assert found[0] == found[1]


def test_a_compiled_call_sees_that_an_operation_has_another_kernel():
    operation = look_up("torch.library", "custom_op")("door_tests::scaled", lambda x: x * 2, mutates_args=())
    compiled = genesis.compile(lambda x: OPS.door_tests.scaled(x))
    assert [compiled(genesis.ones(1)).item() for _ in range(3)] == [2, 2, 2] and compiled.entries[0].replays == 2
    operation.register_kernel("cpu", lambda x: x * 5)
    assert compiled(genesis.ones(1)).item() == 5
