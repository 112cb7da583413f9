"""Public functions, classes and their methods have PyTorch's names of parameters."""

import importlib
import inspect

import genesis

SPACES = [
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn",
    "torch.nn.utils.prune", "torch.nn.utils.parametrize", "torch.nn.utils.parametrizations", "torch.optim",
    "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.func", "torch.autograd", "torch.autograd.functional",
    "torch.autograd.forward_ad", "torch.autograd.graph", "torch.utils.data", "torch.utils.checkpoint", "torch.distributions",
    "torch.distributions.transforms", "torch.amp", "torch.signal.windows", "torch.random", "torch.testing",
    "torch.nn.attention", "torch.serialization", "torch.sparse", "torch.nested", "torch.profiler", "torch.distributed",
    "torch.cuda",
]
KINDS = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL


def parameters(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None


def lacking(ours, theirs):
    """The names of parameters that ours has not."""
    have, want = parameters(ours), parameters(theirs)
    if have is None or want is None or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in have.values()):
        return []
    return [name for name, p in want.items() if name not in have and name != "self" and name[0] != "_" and p.kind not in KINDS]


def pairs(space):
    """(name, ours, theirs) of what both have."""
    theirs, ours = importlib.import_module(space), genesis
    for part in space.split(".")[1:]:
        ours = getattr(ours, part)
    for name in getattr(theirs, "__all__", dir(theirs)):
        given, wanted = getattr(ours, name, None), getattr(theirs, name, None)
        if name[0] == "_" or not callable(wanted) or not callable(given):
            continue
        yield name, given, wanted
        if inspect.isclass(wanted) and inspect.isclass(given):
            yield from ((f"{name}.{method}", getattr(given, method), function) for method, function in vars(wanted).items()
                        if method[0] != "_" and inspect.isfunction(function) and hasattr(given, method))


OTHERWISE = {  # what has not, and why
    "Size": "a tuple takes none by name",
    "compile": "PyTorch's compilers have settings; the door passes them over",
    "norm": "`out` is taken by all operations", "tensordot": "`out` is taken by all operations",
    "normalize": "`out` is taken by all operations",
    "split": "both names are taken", "backward": "PyTorch has given it up",
    "Tensor.dim_order": "axes of extent 1 stand where their strides put them", "Sequential.extend": "as that of lists",
    "GradientEdge": "nothing owns a graph", "make_tensor": "tensors lie in one way", "narrow": "`input` as elsewhere",
    "init_device_mesh": "a mesh has the job's backend", "DeviceMesh": "a mesh has the job's backend",
    "tensorboard_trace_handler": "PyTorch's own exporter",
}


def test_parameters_have_pytorchs_names():
    found = {name: lack for space in SPACES for name, ours, theirs in pairs(space) if (lack := lacking(ours, theirs))}
    assert found.keys() == OTHERWISE.keys(), found
