"""What is around the function of a random script: tensors and objects that it reads, the calls, and what comes between."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.fuzz.scripts import Script, Value, Writer
from tests.fuzz.statements import write_function

# How the two tensors come as arguments: parameters, the call, and how the function unpacks them.
PACKINGS = [
    ("p, n=1", "({}, {})", "p"), ("p, n=1", "[{}, {}]", "p"), ("p, n=1", "{{'a': {}, 'b': {}}}", "p['a'], p['b']"),
    ("p, n=1", "Settings(a={}, b={})", "p.a, p.b"), ("p, n=1", "Pair({}, {})", "p.a, p.b"), ("*p, n=1", "*({}, {})", "p"),
]


def script(seed: int) -> Script:
    """The script of a seed."""
    w = Writer(seed)
    prepare(w)
    if w.chance(0.25):
        w.script.parameters, w.script.packing, unpacked = w.one_of(PACKINGS)
        w.script.body.append(f"a, b = {unpacked}")
    w.pool += [Value("a", w.shape), Value("b", w.b_shape)]
    write_function(w)
    calls(w)
    return w.script


# ---- before ----


def prepare(w: Writer) -> None:
    """Tensors that share memory and others, leaves, an optimizer, a module, a user's object."""
    before, names = w.script.before, w.script.names
    for _ in range(w.one_of([1, 1, 2])):
        base = w.name("base")
        before.append(f"{base} = {w.fresh(w.doubled)}")
        w.given += [Value(base, w.doubled), *[Value(part, w.shape) for part in w.parts(base)]]
        w.outside.append(Value(base, w.doubled))
        if w.chance(0.5):
            view = Value(w.name("h"), w.shape)
            before.append(f"{view.text} = {w.one_of(w.parts(base))}")
            w.outside.append(view)
            w.given.append(view)
    for _ in range(w.number(1, 2)):
        name = w.name("x")
        before.append(f"{name} = {w.fresh(w.shape)}")
        w.given.append(Value(name, w.shape))
    for _ in range(w.number(0, 2)):
        _hold(w)
    if w.dtype.startswith("float") and w.chance(0.6):
        _leaves(w)
    names += [line.split(" = ")[0] for line in before]
    held = f"held={w.fresh(w.shape)}, table={{'k': 2}}, items=[1, 2]"
    before.append(f"kept, seen, S = [], [], Settings(k=1, flag=True, {held})")
    names += ["kept", "seen", "S"]
    if w.chance(0.4):
        w.known.add("net")
        before += [f"net = Net(lib, {w.shape}, {w.dtype!r})", "saved = net.state_dict()"]
        names.append("net.state_dict()")
        w.outside += [Value("net.weight", w.shape, w.dtype.startswith("float")), Value("net.total", ())]
    if w.chance(0.2):
        w.known.add("inner")
        returned = w.one_of(["v + 1", "v.add_(2)", "v[...]", "v * S.k", "v.detach()", "v + S.held"])
        before.append(f"inner = wrap(lambda v: {returned})")
    w.outside.append(Value("S.held", w.shape))
    w.given.append(Value("S.held", w.shape))


def _hold(w: Writer) -> None:
    """A tensor outside, or another name or view of one."""
    name, whole = w.name("g"), w.value(w.outside, lambda value: len(value.shape) > 0)
    x = whole.text
    value = w.one_of([
        Value(w.fresh(w.shape), w.shape), Value(w.fresh(w.shape), w.shape), Value(w.fresh(w.shape[1:]), w.shape[1:]),
        Value(f"{x}.detach()", whole.shape), Value(f"{x}.data", whole.shape), whole,
        Value(f"{x}.reshape(-1)", (math.prod(whole.shape),)), Value(f"{x}[1:]", (whole.length - 1, *whole.shape[1:])),
        Value(f"{x}[:1]", (1, *whole.shape[1:])),
    ])
    w.script.before.append(f"{name} = {value.text}")
    w.outside.append(Value(name, value.shape))


def _leaves(w: Writer) -> None:
    """Leaves that require gradients, and an optimizer of them."""
    leaves = [w.name("w") for _ in range(w.number(1, 2))]
    for leaf in leaves:
        numbers = f"numbers({w.number(0, 8)}, {w.shape}, {w.dtype!r})"
        w.script.before.append(f"{leaf} = lib.tensor({numbers}, requires_grad=True)")
        w.outside.append(Value(leaf, w.shape, True))
    if w.chance(0.4):
        w.known.add("optimizer")
        more = w.one_of(["", "", ", momentum=1.0", ", weight_decay=1.0", ", momentum=1.0, nesterov=True", ", maximize=True"])
        w.script.before.append(f"optimizer = lib.optim.SGD([{', '.join(leaves)}], lr={w.one_of([1.0, 0.5, 2.0])}{more})")


# ---- after ----


def calls(w: Writer) -> None:
    """Calls that are alike, or differ in what their arguments share, with changes in between."""
    patterns = [_arguments(w) for _ in range(w.number(1, 3))]
    names: list[str] = []
    for k in range(w.number(3, 5)):
        result = w.name("r") if w.chance(0.5) or not names else w.one_of(names)
        call = f"{result} = f({w.one_of(patterns) if k else patterns[0]})"
        if w.chance(0.4):
            call = f"for _ in range({w.number(2, 3)}): {call}"
        elif w.chance(0.1):
            call = f"with lib.no_grad(): {call}"
        w.script.after.append(call)
        names = [*dict.fromkeys([*names, result])]
        while w.chance(0.4):
            w.script.after.append(_between(w, names))
    w.script.before += [f"{name} = None" for name in names]
    w.script.names += names


def _arguments(w: Writer) -> str:
    pair = [_argument(w, w.shape), _argument(w, w.b_shape)]
    number = w.one_of(["", "", f", n={w.number(1, 3)}", f", n={w.number(1, 4)}", ", n=1.0", ", n=True"])
    return w.script.packing.format(*pair) + number


def _argument(w: Writer, shape: tuple[int, ...]) -> str:
    x = w.value(w.given, lambda value: value.shape == shape).text
    return w.one_of([*[x] * 6, f"{x}.detach()", f"({x} + 1)", w.fresh(shape), f"first({x})"])


def _between(w: Writer, results: Sequence[str]) -> str:
    """What happens between two calls."""
    x, held, result = w.value(w.given).text, w.value(w.outside).text, w.one_of(results)
    leaf, name = w.leaf(), x.split("[")[0]
    grown = w.doubled if name.startswith("base") else w.shape
    tensors = [
        f"see({result})", f"see({held})", f"see({x})", f"{x}.add_(1)", f"{held}.data.add_(1)", f"{held}.data.mul_(-1)",
        f"first({result}).data.add_(1)", f"{name} = {w.fresh(grown)}", f"{name} = first({result}).detach()", f"{result} = None",
        f"kept.append({result})", "kept.clear()", f"S.held = {held}", f"S.held = {x}", "S.held = S.held + 1", "see(S.held)",
        f"{held}.numpy()[...] = 2", f"{x}.detach().numpy()[0] = 3", f"lib.from_dlpack({x}.detach()).add_(1)",
        f"{x}.data = {w.fresh(w.shape)}", f"{held}.data = first({result}).detach()", f"seen.append({x}.sum().item())",
    ]
    grads = [
        f"first({result}).requires_grad and first({result}).sum().backward()",
        f"first({result}).requires_grad and first({result}).sum().backward(retain_graph=True)",
        "optimizer.zero_grad()", "optimizer.step()", "optimizer.param_groups[0]['lr'] = 0.25", "net.zero_grad()",
    ]
    if leaf is not None:
        grads += [leaf.text + end for end in (
            ".grad = None", ".grad = None", ".grad.zero_()", ".requires_grad_(False)", ".requires_grad_()", ".grad.add_(1)")]
        grads += [f"see({leaf.text}.grad)", f"see({leaf.text}._version)"]
    objects = [
        "S.k = 3", "S.flag = not S.flag", "S.more = 2", "del S.more", "S.table['k'] = 5", "S.table.pop('k', None)",
        "S.items.append(3)", "S.k = 2.0", "S.k = 1", "net.weight.requires_grad_(False)", "net.total.zero_()", "net.eval()",
        "net.scale = 3", "net.load_state_dict(net.state_dict())", "net.weight.data = net.weight.data + 1",
        "net.total = net.total + 1", f"net.register_buffer('total', first({result}).detach().sum())",
        "net.forward = lambda v: v + 2", "net.register_forward_hook(lambda m, i, o: o + 1)", "net.weight.grad = None",
        "junk = [lib.ones(9) + k for k in range(3)]", f"lib.set_num_threads({w.number(1, 2)})", "lib.manual_seed(3)",
        f"see(inner({x}))", f"{result} = inner({x})",
    ]
    others = [  # objects in place of those that were there
        "net = copy.deepcopy(net)", "f = copy.deepcopy(f)", "S = copy.deepcopy(S)", "S = Settings(**vars(S))",
        f"net.weight = lib.nn.Parameter({w.fresh(w.shape)})", "saved = copy.deepcopy(net.state_dict())",
        "net.load_state_dict(saved, assign=True)", "optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))",
        "optimizer.state.clear()", "optimizer.param_groups[0]['momentum'] = 0.5", "optimizer = copy.copy(optimizer)",
    ]
    return w.statement(w.one_of([tensors, tensors, grads, grads, objects, objects, others]))
