"""Checks of an entry of PyTorch's module database, in training or evaluation mode."""

import contextlib
import copy
import io
import pickle
import warnings
from typing import NamedTuple

import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, ModuleInfo, module_db

import genesis
from tests.conformance.converting import DTYPES, UnconvertibleError, assert_same, converted, leaves

_RANDOM = ("Dropout", "RReLU", "FractionalMaxPool", "AlphaDropout")  # in training mode
# Where gradients are compared: PyTorch's of a CTC loss is that of one of normalized logarithms.
_POINTS = {"CTCLoss": lambda args: [args[0].log_softmax(-1), *args[1:]]}


class Entry(NamedTuple):
    """A module, and the mode that it runs in."""

    info: ModuleInfo
    training: bool

    @property
    def name(self):
        """The class's name."""
        return self.info.module_cls.__name__

    @property
    def compares(self):
        """Whether results are the same numbers at each call."""
        return not (self.training and any(part in self.name for part in _RANDOM))


def entries():
    """Each module, and once more in evaluation mode where that differs."""
    return [Entry(info, training) for info in module_db if info.module_cls.__module__.startswith("torch.nn.")
            for training in ((True, False) if info.train_and_eval_differ else (True,))]


def title(entry):
    """The entry's name, with its mode."""
    return entry.name if entry.training else f"{entry.name} (eval)"


def _module(value):
    """A constructor's argument: a layer of a Transformer as this library's."""
    if isinstance(value, torch.nn.TransformerEncoderLayer | torch.nn.TransformerDecoderLayer):
        attention = value.self_attn
        made = getattr(genesis.nn, type(value).__name__)(
            attention.embed_dim, attention.num_heads, value.linear1.out_features, value.dropout.p,
            converted(value.activation), value.norm1.eps, attention.batch_first, value.norm_first,
            value.linear1.bias is not None)
        made.load_state_dict(converted(dict(value.state_dict())))
        return made
    return converted(value)


def _input(value, met=None):
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return genesis.nn.utils.rnn.PackedSequence(*[None if part is None else converted(part) for part in value])
    if isinstance(value, tuple):
        return tuple([_input(item, met) for item in value])
    return converted(value, met=met)


class Case(NamedTuple):
    """A module of torch's, this library's with the same parameters, and what to call them with."""

    theirs: torch.nn.Module
    ours: genesis.nn.Module
    args: tuple
    kwargs: dict

    def own_inputs(self):
        """The inputs as this library's tensors."""
        met: dict = {}
        return [_input(a, met) for a in self.args], {name: _input(value, met) for name, value in self.kwargs.items()}


def cases(entry, dtype=torch.float32, grad=False, limit=None):
    """The entry's inputs, each with both modules. The parameters are torch's."""
    info = entry.info
    torch.manual_seed(0)
    inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=grad, training=entry.training)
    for given in inputs[:limit]:
        if given.forward_input is None:
            continue
        args, kwargs = given.constructor_input.args, given.constructor_input.kwargs
        theirs = info.module_cls(*args, **kwargs).to(dtype).train(entry.training)
        if any(t.dtype not in DTYPES for t in leaves([given.forward_input.args, given.forward_input.kwargs], torch.Tensor)):
            continue
        settings = {name: _module(value) for name, value in kwargs.items()}
        ours = getattr(genesis.nn, entry.name)(*[_module(a) for a in args], **settings).to(DTYPES[dtype]).train(entry.training)
        if info.is_lazy:
            with torch.no_grad():
                theirs(*given.forward_input.args, **given.forward_input.kwargs)
        ours.load_state_dict(converted(dict(theirs.state_dict())))
        case = Case(theirs, ours, given.forward_input.args, given.forward_input.kwargs)
        if info.is_lazy:
            args, kwargs = case.own_inputs()
            ours(*args, **kwargs)
        yield case


def _compared(entry, case, theirs=None, ours=None):
    """Both modules called: their results, which agree."""
    torch.manual_seed(1)
    args, kwargs = case.own_inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        point = _POINTS.get(entry.name, list)
        want = (theirs or case.theirs)(*point(case.args), **case.kwargs)
        got = (ours or case.ours)(*point(args), **kwargs)
    assert_same(got, want, entry.name, entry.compares)
    return got, want, args, kwargs


def check_build(entry, limit=None):
    """The same parameters and buffers in the same order, and the same defaults of attributes."""
    for case in cases(entry, limit=limit):
        assert [*case.ours.state_dict()] == [*case.theirs.state_dict()]
        assert [n for n, _ in case.ours.named_parameters()] == [n for n, _ in case.theirs.named_parameters()]
        assert [n for n, _ in case.ours.named_buffers()] == [n for n, _ in case.theirs.named_buffers()]
        assert [n for n, _ in case.ours.named_modules()] == [n for n, _ in case.theirs.named_modules()]
        for name, value in vars(case.theirs).items():
            if not name.startswith("_") and isinstance(value, bool | int | float | str | tuple) and name != "__constants__":
                assert getattr(case.ours, name) == value, f"{name} is {getattr(case.ours, name)} for {value}"


def check_repr(entry, limit=None):
    """What is printed."""
    for case in cases(entry, limit=limit):
        assert repr(case.ours) == repr(case.theirs), f"{case.ours!r} for {case.theirs!r}"


def check_values(entry, limit=None):
    """Results, and buffers after the call."""
    for dtype in (torch.float32, torch.float64):
        for case in cases(entry, dtype, limit=limit):
            _compared(entry, case)
            if entry.compares:
                assert_same([*case.ours.buffers()], [*case.theirs.buffers()], "buffers")


def check_gradients(entry, limit=None):
    """Gradients of inputs and of parameters, in float64."""
    if not entry.compares:
        raise NotImplementedError
    for case in cases(entry, torch.float64, grad=True, limit=limit):
        got, want, args, kwargs = _compared(entry, case)
        want = [t for t in leaves(want, torch.Tensor) if t.requires_grad]
        got = [t for t in leaves(got, genesis.Tensor) if t.requires_grad]
        if not want:
            continue
        assert len(got) == len(want), f"{len(got)} differentiable results for {len(want)}"
        seeds = [torch.randn_like(t) for t in want]
        their_inputs = [t for t in leaves([case.args, case.kwargs], torch.Tensor) if t.requires_grad] + [
            p for p in case.theirs.parameters() if p.requires_grad]
        own = [t for t in leaves([args, kwargs], genesis.Tensor) if t.requires_grad] + [
            p for p in case.ours.parameters() if p.requires_grad]
        if not own:
            continue
        want = torch.autograd.grad(want, their_inputs, seeds, allow_unused=True)
        got = genesis.autograd.grad(got, own, converted(seeds), allow_unused=True)
        for a, b in zip(got, want, strict=True):
            assert (a is None) == (b is None) or not (a if b is None else b).numpy().any(), "a gradient is missing"
            if a is not None and b is not None:
                assert_same(a, b, "gradient")


def check_copies(entry, limit=None):
    """Copies by `copy.deepcopy` and by pickling compute the same."""
    for case in cases(entry, limit=limit):
        for again in (copy.deepcopy(case.ours), pickle.loads(pickle.dumps(case.ours))):
            assert repr(again) == repr(case.ours)
            if entry.compares:
                _compared(entry, case, copy.deepcopy(case.theirs), again)


def check_state(entry, limit=None):
    """State dicts, saved and loaded, by name and strictly."""
    for case in cases(entry, limit=limit):
        assert_same([*case.ours.state_dict().values()], [*case.theirs.state_dict().values()], "state")
        file = io.BytesIO()
        genesis.save(case.ours.state_dict(), file)
        file.seek(0)
        found = case.ours.load_state_dict(genesis.load(file))
        assert not found.missing_keys and not found.unexpected_keys
        if case.theirs.state_dict():
            with contextlib.suppress(RuntimeError):
                case.ours.load_state_dict({})
                raise AssertionError("an empty state dict was loaded")


def check_moves(entry, limit=None):
    """Conversions of dtype, training and evaluation, and gradients forgotten."""
    for case in cases(entry, limit=limit):
        for name in ("double", "half", "bfloat16", "float"):
            getattr(case.ours, name)()
            getattr(case.theirs, name)()
            for (_, a), (_, b) in zip(case.ours.state_dict().items(), case.theirs.state_dict().items(), strict=True):
                assert a.dtype is DTYPES[b.dtype], f"{name}: {a.dtype} for {b.dtype}"
        assert not case.ours.eval().training and case.ours.train().training
        case.ours.zero_grad()
        case.ours.requires_grad_(False)
        assert not any(p.requires_grad for p in case.ours.parameters())


def check_compile(entry, limit=None):
    """`genesis.compile` of a call."""
    for case in cases(entry, limit=limit):
        compiled = genesis.compile(case.ours)
        for _ in range(3):
            _compared(entry, case, ours=compiled)


def check_errors(entry, limit=None):
    """What torch refuses, at construction or at the call, is refused."""
    info = entry.info
    if info.module_error_inputs_func is None:
        raise NotImplementedError
    made = info.module_error_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=entry.training)
    for error in made[:limit]:
        given = error.module_error_input
        building, calling = given.constructor_input, given.forward_input
        try:
            settings = {name: _module(value) for name, value in building.kwargs.items()}
            module = getattr(genesis.nn, entry.name)(*[_module(a) for a in building.args], **settings)
            if error.error_on is ModuleErrorEnum.FORWARD_ERROR:
                results = module(*[_input(a) for a in calling.args], **{name: _input(v) for name, v in calling.kwargs.items()})
                [t.numpy() for t in leaves(results, genesis.Tensor)]
        except UnconvertibleError:
            continue
        except AttributeError as missing:
            if entry.name in str(missing):
                raise
            continue
        except Exception:
            continue
        raise AssertionError(f"nothing raised, want {error.error_type} {error.error_regex!r}")


CHECKS = {
    "build": check_build, "repr": check_repr, "values": check_values, "gradients": check_gradients, "copies": check_copies,
    "state": check_state, "moves": check_moves, "compile": check_compile, "errors": check_errors,
}
