"""Optimizers as declarations: a rule, and a table of settings.

    @update_rule
    def sign_update(parameter: Value, gradient: Value, lr: Scalar, maximize: bool) -> Results:
        return (parameter - sign(descent(parameter, gradient, 0, maximize)) * lr,)

    class SignDescent(DeclaredOptimizer):
        lr: float = setting(default=1e-2, least=0, doc="the step size")
        operation = sign_update

`__init__` and its signature, the defaults of groups, the checks, and the docstring's "Args:" follow from the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, cleandoc
from typing import Any, ClassVar, TypeVar, dataclass_transform

from genesis.ir.annotations import AnyFunction
from genesis.ir.made_methods import made_initializer
from genesis.ops.signatures import parameter_names
from genesis.optim.optimizer import HINTS, Group, Members, Numbers, Optimizer, State as State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table of settings: see `setting`."""

    default: object
    doc: str
    least: float
    below: float
    most: float
    kw_only: bool
    annotation: str = ""

    def admits(self, value: float | Sequence[float]) -> bool:
        """Whether `value`, or each of its elements, is in the range; NaN never is."""
        values = value if isinstance(value, tuple | list) else (value,)
        return all([self.least <= v < self.below and v <= self.most for v in values])

    @property
    def range(self) -> str:
        """The range in words: "0 or more", "in [0, 1)"; empty if there is none."""
        if self.least == -INFINITY:
            return ""
        if self.below < INFINITY:
            return f"in [{self.least}, {self.below})"
        return f"{self.least} or more" if self.most == INFINITY else f"in [{self.least}, {self.most}]"


INFINITY = float("inf")


def setting(
    *, default: T, doc: str, least: float = -INFINITY, below: float = INFINITY, most: float = INFINITY, kw_only: bool = False
) -> T:
    """A setting of a declared optimizer: its default, documentation, and range (for a tuple, of each element)."""
    return Setting(default, doc, least, below, most, kw_only)  # type: ignore[return-value]


def _ordered(settings: Mapping[str, Setting]) -> list[tuple[str, Setting]]:
    """The rows, with keyword-only ones last."""
    return sorted(settings.items(), key=lambda item: item[1].kw_only)


def _initializer(cls: type, settings: Mapping[str, Setting]) -> AnyFunction:
    """An `__init__` of the parameters and `settings`, whose code has their names: libraries read `__init__.__code__`."""
    rows = [Parameter("params", Parameter.POSITIONAL_OR_KEYWORD, annotation=Members)]
    for name, row in _ordered(settings):
        kind = Parameter.KEYWORD_ONLY if row.kw_only else Parameter.POSITIONAL_OR_KEYWORD
        rows.append(Parameter(name, kind, default=row.default, annotation=row.annotation))
    given = ", ".join([f"{row.name}={row.name}" for row in rows])
    return made_initializer(cls, rows, [f"begin(self, {given})"], begin=_begin)


def _begin(self: Any, params: Any, **defaults: Any) -> None:
    """What each `__init__` does: its groups have the settings, in PyTorch's order, without the hints that it does not show."""
    hints = {name: defaults.pop(name) for name in HINTS}
    known = {**defaults, **{name: hints[name] for name in self.hints}, **self.fixed}
    first = {name: known[name] for name in self.group_order.split() if name in known}
    Optimizer.__init__(self, params, {**first, **known}, hints)


_EXAMPLE = """
x = genesis.tensor([1.0, 2.0], requires_grad=True)
optimizer = {name}([x], {given})
(x * x).sum().backward()
optimizer.step()
x"""


def _documented(cls: type[DeclaredOptimizer], settings: Mapping[str, Setting]) -> str:
    """The docstring of a class with the table of settings before its example."""
    text, mark, example = cleandoc(cls.__doc__ or "").partition(">>>")
    if "example" in vars(cls):
        given, result = cls.example
        mark = _EXAMPLE.format(name=cls.__name__, given=given).replace("\n", "\n>>> ").lstrip()
        example = f"\ntensor({result}, requires_grad=True)"
    lines = ["    params: tensors or groups of them."]
    for name, row in _ordered(settings):
        if row.doc:
            lines.append(f"    {name}: {row.doc}{', ' * bool(row.range)}{row.range}.")
    lines += [f"    {name}: of no effect{'; must not be true' * (name == 'differentiable')}." for name in HINTS]
    lines += ["", "Raises ValueError for a setting out of its range.", "", mark + example]
    return "\n".join([text.rstrip(), "", "Args:", *lines])


@dataclass_transform(eq_default=False, field_specifiers=(setting,))
class _Declared(Optimizer):
    """Builds a class from its table; type checkers treat the table like a dataclass's fields."""

    _settings: Mapping[str, Setting] = {}
    lacks: ClassVar[tuple[str, ...]] = ()  # settings of the base class that it lacks
    _passed: tuple[str, ...] = ()  # the names of the operation's numbers

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {
            name: Setting(s.default, s.doc, s.least, s.below, s.most, s.kw_only, str(cls.__annotations__[name]))
            for name, s in [*vars(cls).items()] if isinstance(s, Setting)
        }
        if "operation" in vars(cls):
            cls._passed = parameter_names(cls.operation)[2 + len(cls.kinds) :]
        if not own:
            return
        for name in own:
            delattr(cls, name)
        cls._settings = {name: row for name, row in {**cls._settings, **own}.items() if name not in cls.lacks}
        cls.__doc__ = _documented(cls, cls._settings)  # type: ignore[arg-type]
        if "__init__" not in vars(cls):
            cls.__init__ = _initializer(cls, cls._settings)  # type: ignore[method-assign]


class DeclaredOptimizer(_Declared):
    """The base of optimizers whose settings are a table. Subclasses name their `operation`, and its tensors in `kinds`.

    `example` is the docstring example's constructor arguments, and the result of a step from [1, 2] down x^2.
    After the tensors, `operation` gets the group's settings by its parameters' names, unless `settings` is overridden.
    """

    example: ClassVar[tuple[str, str]]
    hints: ClassVar[tuple[str, ...]] = ("foreach", "capturable", "differentiable")  # shown in groups, as in PyTorch
    group_order: ClassVar[str] = ""  # the keys of a group, if PyTorch's order is not the table's followed by the hints
    params: Members
    maximize: bool = setting(default=False, kw_only=True, doc="climb")
    foreach: bool | None = setting(default=None, kw_only=True, doc="")
    fused: bool | None = setting(default=None, kw_only=True, doc="")
    capturable: bool = setting(default=False, kw_only=True, doc="")
    differentiable: bool = setting(default=False, kw_only=True, doc="")

    def check(self, group: Group) -> None:
        """Raise ValueError for a setting out of its range."""
        for name, row in self._settings.items():
            if name in group and row.range and not row.admits(value := group[name]):
                are, them = ("are", "them ") if isinstance(value, tuple | list) else ("is", "it ")
                wanted = f"{them}{row.range}" if row.range.startswith("in") else row.range
                raise ValueError(f"{type(self).__name__}: {name} {are} {value}; want {wanted}")

    def settings(self, group: Group, age: int) -> Numbers:
        """The group's settings that `operation` has parameters for."""
        return tuple([group[name] for name in self._passed])
