"""Modes and classes of tensors under the door: what they are asked and what results are is what it is in PyTorch."""

import contextlib
import io
import pickle
import textwrap

import pytest
import torch

import genesis
from genesis.as_torch.finder import look_up
from tests.as_torch.test_door import run

SCRIPT = """
    import pickle

    import torch

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            print(torch.overrides.resolve_name(func).rpartition(".")[2], args[0].shape)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Mode():
        y = x + 1
        y.add(2)
        torch.add(x, y)
        x.sum()
        torch.nn.functional.linear(x, y.reshape(1, 2))
        y.add_(2).mul_(other=3)
        y += x
        y.fill_(1).zero_()
        y.copy_(x)
        y.relu_()
        y[0] = 2
        y[:1] = y[1:]
        y.t().double().contiguous().new_ones(2).ravel().repeat(2)
        y.view_as(x).movedim(0, 0).type_as(x)
        print(y[0].item(), y.tolist(), float(y[1]), int(y[1]), bool(y[0]), y.numpy().shape)

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print("asked", torch.overrides.resolve_name(func).rpartition(".")[2])
            return super().__torch_function__(func, types, args, kwargs)

    asked = x.as_subclass(Asked)
    doubled = asked * 2
    print(type(doubled).__name__, type(torch.stack([asked, asked])).__name__)
    for name, arguments in [
        ("t", ()), ("adjoint", ()), ("movedim", (0, 1)), ("ravel", ()), ("broadcast_to", ((3, 2, 2),)), ("double", ()),
        ("to", (torch.float64,)), ("contiguous", ()), ("view_as", (x.repeat(2, 1),)), ("new_zeros", (3,)), ("repeat", (2, 1)),
        ("type_as", (x,)), ("unsqueeze_", (0,)), ("squeeze_", (0,)), ("matrix_power", (2,)), ("is_same_size", (x,)),
    ]:
        print(name, type(getattr(torch.ones(2, 2).as_subclass(Asked), name)(*arguments)).__name__)
    print(type(torch.t(asked)).__name__, type(torch.movedim(asked, 0, 0)).__name__)
    for name in (
        "dim", "numel", "nelement", "stride", "is_contiguous", "is_floating_point", "element_size", "is_conj", "is_signed",
    ):
        print(name, getattr(asked, name)())
    print(asked.size(), asked.size(0), torch.Tensor.size(x, 0), torch.Tensor.dim(x))
    doubled += 1
    doubled[0] = doubled[1].item()
    print(doubled.mul_(2) is doubled, type(doubled).__name__)

    class Plain(torch.Tensor):
        pass

    plain = Plain([1.0, 2.0])
    print(type(plain + 1).__name__, type(plain.sum()).__name__, type(plain[0]).__name__, type(torch.ones(2) * plain).__name__)
    overrides = torch.overrides
    print(overrides.is_tensor_like(plain), overrides.has_torch_function((asked,)), overrides.has_torch_function((x,)))
    print(overrides.is_tensor_method_or_property(torch.Tensor.add))

    class Extra(torch.Tensor):
        @staticmethod
        def __new__(cls, data, extra):
            made = super().__new__(cls, data)
            made.extra = extra
            return made

        def __init__(self, data, extra):
            pass

    print(Extra(torch.ones(2), 3).extra, Extra(torch.ones(2), 3).sum().item())

    class Metadata:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "taken"

    def mine(a):
        if torch.overrides.has_torch_function((a,)):
            return torch.overrides.handle_torch_function(mine, (a,), a)
        return a

    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            assert all(issubclass(kind, Scaled) for kind in types)
            factors = [arg.factor if isinstance(arg, Scaled) else 1 for arg in args]
            return func.__name__, [arg.tolist() if isinstance(arg, torch.Tensor) else arg for arg in factors], kwargs or {}

    class More(Scaled):
        pass

    for name in ("zeros_like", "ones_like", "rand_like", "randn_like", "numel", "bernoulli", "poisson", "is_complex"):
        print(getattr(torch, name)(Scaled(2)), torch.empty_like(Scaled(2)))
    print(pickle.loads(pickle.dumps(torch.empty_like)) is torch.empty_like)
    print(torch.full_like(Scaled(2), 3), torch.meshgrid([Scaled(2), Scaled(4)], indexing="ij"))
    print(torch.normal(Scaled(0), Scaled(1)))
    scaled = Scaled(3)
    print(torch.clone(scaled), torch.matmul(scaled, x), torch.add(x, scaled), torch.linalg.solve(scaled, x)[1:])
    print(torch.abs(scaled), torch.diagonal(scaled), torch.cat([x, scaled]), torch.sum(scaled, 0), torch.relu(More(2))[0])
    print(x.matmul(scaled), torch.exp(x).equal(x.exp()), torch.masked_fill(scaled, x > 0, 2.0)[0])

    class Strict(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if not all(issubclass(cls, kind) for kind in types):
                return NotImplemented
            return super().__torch_function__(func, types, args, kwargs)

    class Stricter(Strict):
        pass

    class Declines:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

        def __radd__(self, other):
            return "its own sum"

    strict, stricter, declines = x.as_subclass(Strict), x.as_subclass(Stricter), Declines()
    print(type(strict + stricter).__name__, type(torch.cat([stricter, strict])).__name__)
    print(x == scaled, x != scaled, x + declines)
    print(torch.add(Metadata(1), declines), torch.add(declines, Metadata(1)))
    for arguments in [(declines, x), (x, declines), (strict, declines), (strict, asked), (asked, strict)]:
        try:
            print(type(torch.add(*arguments)).__name__)
        except TypeError as problem:
            print("refused")

    print(mine(Metadata(1)), mine(3), isinstance(torch.nn.Parameter(x) * 2, torch.nn.Parameter))
    print(type(torch.nn.Linear(2, 2).weight).__name__, type(torch.nn.Linear(2, 2).weight.detach()).__name__)
"""


OF_CLASSES = """
    import torch

    class Kind(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = torch.Tensor.__torch_function__(func, [torch.Tensor], args, kwargs or {})
            if func.__name__ in ("clone", "detach", "__getitem__", "add", "view_as", "view") and type(result) is torch.Tensor:
                result = result.as_subclass(cls)
                result.mine = f"{func.__name__} of {next(a.mine for a in args if isinstance(a, Kind))}"
            return result

    class Plain(torch.Tensor):
        pass

    x = torch.ones(2, 3).as_subclass(Kind)
    x.mine = "x"
    for result in (x.clone(), x[0], x[None, 1:], x.view(6), x + 1, x.detach(), x * 2, x.sum()):
        print(type(result).__name__, getattr(result, "mine", ""))
    plain = torch.ones(2, 3).as_subclass(Plain)
    with torch._C.DisableTorchFunctionSubclass():
        print(*[type(y).__name__ for y in (plain + 1, plain[0], plain.view(6), plain.detach(), plain.add_(1))])
    print(*[type(y).__name__ for y in (plain + 1, plain[0], plain.view(6), plain.detach())])

    def squared(x):
        print(type(x).__name__, getattr(x, "mine", ""), x.requires_grad)
        return (x * x).sum()

    for given in (x, plain):
        print(torch.autograd.functional.jacobian(squared, given).tolist())
"""


@pytest.mark.filterwarnings("ignore")
def test_results_are_of_the_class_that_torch_function_gives_them(tmp_path):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(textwrap.dedent(OF_CLASSES), {"__name__": "script"})
    assert run(OF_CLASSES, tmp_path=tmp_path) == printed.getvalue()


@pytest.mark.filterwarnings("ignore")
def test_modes_and_classes_are_asked_as_in_pytorch(tmp_path):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(textwrap.dedent(SCRIPT), {"__name__": "script"})
    assert run(SCRIPT, tmp_path=tmp_path) == printed.getvalue()


def test_a_class_that_is_asked_leaves_replays_of_other_calls_alone(tmp_path):
    printed = run("""
        import torch, genesis

        class Asked(torch.Tensor):
            asked = 0

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                Asked.asked += 1
                return super().__torch_function__(func, types, args, kwargs)

        class Scaled(torch.Tensor):
            pass

        x = torch.ones(3)
        asked = x.as_subclass(Asked)

        @torch.compile
        def double(x):
            return x * 2

        @torch.compile
        def met_within(x):
            return x * asked

        for given in (x, asked, x.as_subclass(Scaled), asked, x):
            for _ in range(4):
                result = double(given)
            print(type(result).__name__, result.sum().item())
        print(Asked.asked, genesis.debug.explain(double, x).replays > 0, genesis.debug.explain(double, x).refusals)
        before = Asked.asked
        for _ in range(5):
            met_within(x)
        print(Asked.asked - before, genesis.debug.explain(met_within, x).refusals[0].reason)
    """, tmp_path=tmp_path)
    assert printed.splitlines() == [
        "Tensor 6.0", "Asked 6.0", "Scaled 6.0", "Asked 6.0", "Tensor 6.0", "12 True []",
        "5 calls with a tensor of Asked go to its `__torch_function__`"]


def test_functions_of_ones_own_are_overridden_by_the_arguments_that_count():
    def run(lib, wrap, substitute):
        class Own:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented if args[1:] else (func.__name__, len(args))

        @wrap(lambda a, b=None: (a,))
        def twice(a, b=None):
            return a * 2

        with pytest.raises(TypeError, match="no implementation found"):
            twice(Own(), 1)
        return twice(Own()), twice(lib.ones(1), Own()).item(), substitute(len)(abs) is abs

    ours = run(genesis, look_up("torch.overrides", "wrap_torch_function"), look_up("torch.compiler", "substitute_in_graph"))
    assert ours == (*run(torch, torch.overrides.wrap_torch_function, lambda name: lambda function: function)[:2], True)


@pytest.mark.parametrize("name, arguments", [
    ("ones", (2,)), ("zeros", ((2,),)), ("empty", (2,)), ("full", ((2,), 1.0)), ("arange", (3,)), ("linspace", (0, 1, 3)),
    ("logspace", (0, 1, 3)), ("eye", (2,)), ("rand", (2,)), ("randn", (2,)), ("randint", (0, 3, (2,))), ("randperm", (3,)),
    ("tensor", ([1.0],)), ("as_tensor", ([1.0],)), ("tril_indices", (2, 2)), ("empty_strided", ((2,), (1,))),
    ("hann_window", (5,)), ("hamming_window", (4, False, 0.6, 0.3)), ("kaiser_window", (4, True, 3.0)),
    ("bartlett_window", (4,)), ("blackman_window", (4,)),
])
def test_modes_see_what_creates_tensors(name, arguments):
    def seen(found, base):
        class Mode(base):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                names.append((func.__name__, len(args)))
                return func(*args, **(kwargs or {}))

        names = []
        with Mode():
            found(name)(*arguments)
        return names

    ours = seen(lambda name: look_up("torch", name), look_up("torch.overrides", "TorchFunctionMode"))
    assert ours == seen(lambda name: getattr(torch, name), torch.overrides.TorchFunctionMode) == [(name, len(arguments))]
    function = look_up("torch", name)
    assert pickle.loads(pickle.dumps(function)) is function
