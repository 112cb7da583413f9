"""Random functions read a small world in many ways while random changes are made to it: compiled, they do as they do plain."""

import os
import random

import numpy as np

import genesis

WORLD = '''
import collections, contextvars, copy, dataclasses, enum, functools, math, operator, os, types, weakref
import genesis
from genesis import nn
from genesis.nn import functional as F

number, word, flag, nothing = 2.0, "word", True, None
numbers, table, members = [1.0, 2.0, 3.0], {"a": 1.5, "b": [2.5, 3.5], "c": {"d": 4.5}}, {1.0, 2.0, 5.0}
ordered, queue = collections.OrderedDict(a=1.0, b=3.0), collections.deque([1.0, 4.0])
mod = types.ModuleType("mod_of_a_test")
mod.number, mod.act = 3.0, lambda v: v + 1
free = types.SimpleNamespace(by=2.0, inner=types.SimpleNamespace(by=3.0))
context = contextvars.ContextVar("context", default=2.0)


class Meta(type):
    level = 2.0

    def height(cls):
        return cls.level + 1


class Cell:
    """A descriptor of data."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner=None):
        return self.value

    def __set__(self, instance, value):
        self.value = value


class Soft:
    """A descriptor that objects may hide."""

    def __get__(self, instance, owner=None):
        return 6.0


class Base(metaclass=Meta):
    rate, shared = 1.5, [1.0]

    def gain(self):
        return self.rate + 1

    @classmethod
    def made(cls):
        return cls.rate

    @staticmethod
    def fixed():
        return 2.0

    @property
    def half(self):
        return self.rate / 2

    def __len__(self):
        return 3

    def __add__(self, other):
        return self.rate + other

    def __call__(self, v):
        return v * self.rate

    def __contains__(self, v):
        return v == self.rate


class Derived(Base):
    cell, soft = Cell(4.0), Soft()

    def __init__(self):
        self.own, self.items = 2.0, [1.0, 2.0]

    def gain(self):
        return super().gain() * 2

    def __getattr__(self, name):
        if name == "made_up":
            return 7.0
        raise AttributeError(name)

    def by_name(self, name):
        return getattr(self, name)


class Other(Base):
    own, cell, soft, items, made_up = 9.0, 8.0, 7.0, [5.0], 1.0

    def by_name(self, name):
        return 1.0


class Slotted:
    __slots__ = ("slot", "empty")

    def __init__(self):
        self.slot = 2.0


@dataclasses.dataclass
class Point:
    a: float = 1.0
    b: float = 2.0


class Colour(enum.Enum):
    RED, BLUE = 2, 3


Pair = collections.namedtuple("Pair", "first second")
thing, slotted, point, pair = Derived(), Slotted(), Point(), Pair(2.0, [3.0])
by_object, objects = {thing: 2.0}, [thing, point]
weak = weakref.WeakValueDictionary(thing=thing)


def closure():
    inner = 2.0

    def read(v=1.0, *, by=2.0):
        return v * by * inner

    def put(value):
        nonlocal inner
        inner = value

    def empty():
        nonlocal inner
        del inner

    return read, put, empty


read, put, empty = closure()
read.mark = 3.0
partial, bound, picked = functools.partial(read, 2.0), thing.gain, operator.attrgetter("own")


@functools.lru_cache
def cached(name):
    return table["a"] + 1


@functools.lru_cache(maxsize=None)
def kept():
    return [number]


def generator():
    for value in numbers:
        yield value * number


layer = nn.Linear(3, 3)
layer.scale = 2.0
'''
READS = """
number | len(word) | (2 if flag else 3) | (2 if nothing is None else 3) | numbers[1] | sum(numbers) | numbers[-1]
len(numbers) | max(numbers) | sorted(numbers)[0] | table["a"] | table["b"][0] | table["c"]["d"] | table.get("e", 1.0)
len(table) | sum(members) | functools.reduce(lambda p, q: p * 3 + q, members) | (2 if 5.0 in members else 3)
list(ordered.values())[0] | functools.reduce(lambda p, q: p * 3 + q, ordered.values()) | queue[0] | mod.number
mod.act(2.0) | getattr(mod, "extra", 1.0) | free.by | free.inner.by | getattr(free, "extra", 1.0) | math.floor(number)
operator.add(number, 1) | missing | missing_too | thing.own | thing.rate | thing.gain() | thing.made() | thing.fixed()
thing.half | thing.cell | thing.soft | len(thing) | thing + 1 | thing(2.0) | (2 if 1.5 in thing else 3)
thing.made_up | thing.items[0] | thing.shared[0] | thing.by_name("own") | thing.missing
getattr(thing, "missing", 1.0) | (2 if hasattr(thing, "missing") else 3) | getattr(thing, "o" + "wn")
vars(thing)["own"] | thing.__dict__["own"] | len(vars(thing)) | type(thing).rate | Base.rate | Base.level
Base.height() | Derived.made() | len(type(thing).__name__) | (2 if isinstance(thing, Derived) else 3)
(2 if issubclass(Derived, Other) else 3) | slotted.slot | slotted.empty | getattr(slotted, "empty", 1.0) | point.a
dataclasses.asdict(point)["a"] | dataclasses.replace(point, a=3.0).b | (2 if point == Point() else 3)
copy.copy(point).a | copy.deepcopy(point).b | Point().b | Colour.RED.value | Colour(2)._value_ | pair.first
pair.second[0] | pair[0] | sum(key.own for key in by_object) | by_object[thing] | objects[0].own | objects[1].a
read() | read(by=3.0) | read.mark | getattr(read, "other_mark", 1.0) | partial() | bound() | picked(thing)
cached("a") | kept()[0] | sum(generator()) | next(generator()) | [v * number for v in numbers][1]
{k: v for k, v in ordered.items()}["a"] | matched(point) | context.get() | len(weak)
float(os.environ.get("READ_OF_A_TEST", 2)) | abs(number) | round(number) | int(number) | layer.scale
layer.in_features | layer.weight.shape[0] | len(list(layer.parameters())) | (2 if layer.training else 3)
F.relu(X).sum() | genesis.exp(X).sum() | X.square().sum() | X.ndim | len(X) | (X + 1).sum() | nn.functional.silu(X)[1]
X._version | layer(X).sum().detach() | X.device.type.count("p") | str(number).count("2") | f"{number}".count("2")
dict(ordered)["a"] | zipped()
"""
MUTATIONS = """
number = 5.0 | number = 2.0 | number = 2 | del number | word = "longer" | flag = False | nothing = 1
numbers[1] = 9.0 | numbers.append(4.0) | numbers = [7.0, 8.0] | numbers.reverse() | del numbers[0] | table["a"] = 9.0
table["b"][0] = 9.0 | table["c"] = {"d": 1.0} | table["e"] = 3.0 | table = {"a": 1.5, "b": [1.0], "c": {"d": 2.0}}
del table["a"] | members.add(7.0) | members.discard(5.0) | members.clear(); members.update([5.0, 2.0])
ordered.move_to_end("a") | ordered["a"] = 6.0 | queue.rotate() | queue.append(1.0) | mod.number = 4.0
mod.act = lambda v: v + 5 | mod.extra = 4.0 | del mod.number | mod = types.ModuleType("other") | free.by = 5.0
free.inner = types.SimpleNamespace(by=7.0) | free.extra = 4.0 | missing = 4.0 | builtins.missing_too = 4.0 | max = min
sum = lambda v: 4.0 | len = lambda v: 9 | isinstance = lambda *v: False | getattr = lambda *v: 8.0 | thing.own = 5.0
del thing.own | thing.rate = 5.0 | thing.gain = lambda: 5.0 | thing.soft = 5.0 | thing.cell = 5.0
thing.missing = 5.0 | thing.made_up = 5.0 | thing.items[0] = 5.0 | thing.items = [9.0] | thing.shared[0] = 5.0
thing.__dict__ = {"own": 8.0, "items": [1.0]} | thing.__class__ = Other | thing = Derived() | thing = Other()
Base.rate = 4.0 | Derived.rate = 4.0 | del Base.rate | Base.gain = lambda self: 5.0 | Derived.gain = lambda self: 6.0
del Derived.gain | Base.missing = 5.0 | Derived.missing = 6.0 | Meta.missing = 6.0 | Meta.level = 5.0
Base.level = 6.0 | Meta.height = lambda cls: 9.0 | Base.half = property(lambda self: 9.0) | Derived.half = 4.0
Derived.own = property(lambda self: 3.0) | Derived.made = classmethod(lambda cls: 8.0)
Derived.fixed = lambda self: 3.0 | Base.__len__ = lambda self: 8 | Base.__add__ = lambda self, other: 8.0
Derived.__call__ = lambda self, v: 8.0 | Derived.__contains__ = lambda self, v: False
Derived.__getattr__ = lambda self, name: 8.0 | Derived.__bases__ = (Other,) | Derived.__name__ = "D"
Derived.by_name = lambda self, name: 4.0 | Cell.__get__ = lambda *v: 9.0 | del Cell.__set__
vars(Derived)["cell"].value = 7.0 | Soft.__get__ = lambda *v: 9.0 | Soft.__set__ = lambda *v: None
Derived.soft = 5.0 | Derived.__getattribute__ = lambda self, name: 3.0 | Base.__bool__ = lambda self: False
slotted.slot = 4.0 | slotted.empty = 4.0 | del slotted.slot | slotted = Slotted() | point.a = 4.0
point = Point(7.0, 8.0) | Point.__eq__ = lambda self, other: False | Point.__match_args__ = ("b", "a")
Point.__init__.__defaults__ = (5.0, 6.0) | Point.b = 9.0 | point.extra = 1.0 | point.__class__ = Other
Colour.RED._value_ = 7 | pair = Pair(4.0, [5.0]) | pair.second[0] = 8.0 | Pair.first = property(lambda self: 9.0)
by_object[thing] = 7.0 | by_object[Derived()] = 1.0 | objects.reverse() | objects[0] = Derived() | put(5.0) | empty()
read.mark = 4.0 | read.other_mark = 4.0 | del read.mark | read.__defaults__ = (3.0,)
read.__kwdefaults__ = {"by": 5.0} | read.__code__ = (lambda v=1.0, by=2.0: 3.0).__code__ | read = lambda *v, **w: 4.0
partial.keywords["by"] = 4.0 | partial = functools.partial(read, 3.0) | bound = thing.half | picked = len
cached.cache_clear() | kept()[0] = 5.0 | kept.cache_clear() | cached = lambda name: 4.0
generator = lambda: iter([5.0]) | context.set(5.0) | weak.clear() | os.environ["READ_OF_A_TEST"] = "5"
layer.scale = 5.0 | layer.in_features = 7 | layer.eval() | layer.weight.data.mul_(2) | layer.extra = nn.Linear(2, 2)
layer.forward = lambda v: v | layer.bias = None | F.relu = lambda v: v * 7 | genesis.exp = lambda v: v * 7
genesis.Tensor.square = lambda v: v * 7 | genesis.Tensor.__add__ = lambda v, w: v * 7 | genesis.Tensor.ndim = 7
F.silu = lambda v: v * 9 | nn.Linear.forward = lambda self, v: v | nn.Module.__call__ = lambda self, v: v | X.add_(1)
X = genesis.ones(3) | X = genesis.ones(2, 3) | genesis.Tensor.__len__ = lambda self: 9
F = types.SimpleNamespace(relu=abs)
"""
HELPERS = '''
def matched(value):
    match value:
        case Point(1.0, b):
            return b
        case Point(a=a, b=8.0):
            return a
        case Base(rate=rate):
            return rate
    return 5.0


def zipped():
    return [p * q for p, q in zip(numbers, ordered.values())][0]


'''
WRAPS = [
    "    y = y * ({read})\n",
    "    y = y + (lambda: {read})()\n",
    "    y = y + [{read} for _ in range(2)][0]\n",
    "    try:\n        y = y * ({read})\n    except Exception:\n        y = y - 3\n",
    "    try:\n        y = y * ({read})\n    finally:\n        y = y + 1\n",
    "    for k in range(2):\n        y = y + k * ({read})\n",
    "    if flag:\n        y = y + ({read})\n",
    "    def inner():\n        return {read}\n    y = y * inner()\n",
    "    y = y + sum(map(lambda _: {read}, [1]))\n",
]


def listed(text):
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


def function_text(draw, reads):
    body = "".join(draw.choice(WRAPS).format(read=read) for read in reads)
    return f"{HELPERS}def f(x):\n    y = x\n{body}    return y\n"


def outcome(function, x):
    try:
        result = function(x)
        return result.dtype, result.tolist()
    except Exception as problem:
        return type(problem)


class Kept:
    """Puts back what mutations do to classes and modules of the library."""

    def __enter__(self):
        import builtins

        self.owners = [builtins, genesis, genesis.Tensor, genesis.nn.functional, genesis.nn.Linear, genesis.nn.Module]
        self.before = [dict(vars(owner)) for owner in self.owners]

    def __exit__(self, *problem):
        for owner, before in zip(self.owners, self.before, strict=True):
            for name in vars(owner).keys() - before.keys():
                delattr(owner, name)
            for name, value in before.items():
                if vars(owner)[name] is not value:
                    setattr(owner, name, value)
        os.environ.pop("READ_OF_A_TEST", None)


def differences(seed, reads=None, mutations=None):
    """Run one random program; returns how many calls were replayed. Fails where compiled and plain differ."""
    draw = random.Random(seed)
    reads = reads or draw.sample(listed(READS), 3)
    text = function_text(draw, reads)
    names = {"__name__": f"world_of_a_test_{seed}"}
    exec(compile(WORLD, f"world_{seed}.py", "exec"), names)
    names["builtins"] = __import__("builtins")
    names["X"] = x = genesis.arange(3).float()
    exec(compile(text, f"program_{seed}.py", "exec"), names)
    function = names["f"]
    compiled = genesis.compile(function)
    done = []
    with Kept():
        for step in range(7):
            if step > 1:
                change = draw.choice(mutations or listed(MUTATIONS))
                done.append(change)
                try:
                    exec(compile(change, "mutation.py", "exec"), names)
                except Exception as problem:
                    done[-1] += f" -> {type(problem).__name__}"
            for _ in range(2):
                want, got = outcome(function, x), outcome(compiled, x)
                np.testing.assert_equal(got, want, f"seed {seed}, {reads}, after {done}:\n{text}")
    return sum(entry.replays for entry in compiled.entries)


def test_functions_that_read_do_compiled_what_they_do_plain():
    replays = sum(differences(seed) > 0 for seed in range(80))
    assert replays > 40  # most of them are understood
