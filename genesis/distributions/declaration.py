"""Distributions as declarations: parameters with their constraints, and formulas.

    class Normal(Distribution):
        loc: Parameter = parameter(constraints.real)
        scale: Parameter = parameter(constraints.positive)
        support = constraints.real
        mean = mode = formula(lambda d: d.loc)
        stddev = formula(lambda d: d.scale)

From the parameters follow `arg_constraints`, `__init__` with its signature, broadcasting, checks and `expand`. A class may
write its own `__init__`, which calls `_declare`. Type checkers read the parameters as they read a dataclass's fields.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, dataclass_transform

from genesis.distributions import constraints
from genesis.distributions.constraints import OF_NUMBERS, Constraint, is_dependent
from genesis.distributions.utils import Number, Operand, as_tensors, derived, formula, joint_shape
from genesis.ir.annotations import AnyFunction
from genesis.ir.described import Described
from genesis.ir.made_methods import made_initializer
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size
from genesis.tracing.recording_hooks import reads_forbidden

REQUIRED, KIND = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD


class Parameter(derived[Tensor]):
    """A declared parameter: a tensor or a number is given, a tensor is read."""

    def __init__(self, constraint: Constraint, default: object, of: str | Callable[[Any], Tensor]) -> None:
        self.constraint, self.default, self.of = constraint, default, of
        self.axes = constraint.event_dim

    if TYPE_CHECKING:
        def __set__(self, instance: object, value: Operand) -> None: ...


class Alternative(Parameter):
    """One of several parameters, of which exactly one is given; the others follow."""

    if TYPE_CHECKING:
        def __set__(self, instance: object, value: Operand | None) -> None: ...


def parameter(
    constraint: Constraint, *, default: object = REQUIRED, of: str | Callable[[Any], Tensor] = "", kw_only: bool = False
) -> Any:
    """A parameter of a declared class. The default of an `Alternative` is None.

    One `of` an attribute is that attribute's, one `of` a function is a formula.
    """
    return Parameter(constraint, default, of)


@dataclass_transform(eq_default=False, field_specifiers=(parameter,))
class _Declaring(Described):
    """Creates a class's attributes from its declaration."""

    arg_constraints: ClassVar[Any] = {}  # a mapping of names to constraints, or a property
    support: ClassVar[Any] = constraints.dependent
    _declared: ClassVar[Mapping[str, Parameter]] = {}  # those of the bases included
    _event_axes: ClassVar[int] = 0  # how many of the last axes are an event's

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        rows = {name: row for name, row in [*vars(cls).items()] if isinstance(row, Parameter)}
        if not rows:
            return
        cls._declared = {**cls._declared, **rows}
        cls.arg_constraints = {name: row.constraint for name, row in rows.items()}
        for name, row in rows.items():
            if row.of:
                setattr(cls, name, _part_of(row.of, name) if isinstance(row.of, str) else formula(row.of))
            else:
                delattr(cls, name)  # an attribute of instances, or derived
        if not all([row.of for row in rows.values()]):
            cls._event_axes = cls.support.event_dim
            if "__init__" not in vars(cls):
                setattr(cls, "__init__", _initializer(cls, rows))  # noqa: B010


def _part_of(part: str, name: str) -> property:
    return property(lambda self: getattr(getattr(self, part), name))


def _initializer(cls: type, rows: Mapping[str, Parameter]) -> AnyFunction:
    given = ", ".join([f"{name}={name}" for name in rows])
    lines = [f"self._declare(validate_args, {given})"] + ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    settings = [
        inspect.Parameter(name, KIND, default=row.default, annotation="Operand | None" if row.default is None else "Operand")
        for name, row in rows.items()]
    checks = inspect.Parameter("validate_args", KIND, default=None, annotation="bool | None")
    return made_initializer(cls, [*settings, checks], lines)


class Declared(_Declaring):
    """The base of classes with declared parameters, which are checked."""

    _validate_args = __debug__

    if TYPE_CHECKING:
        validate_args: bool | None = parameter(constraints.dependent, default=None, kw_only=True)

    def _begin(self, batch_shape: Sequence[int], event_shape: Sequence[int], validate_args: bool | None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args

    def _declare(self, validate_args: bool | None, **parameters: Operand | None) -> None:
        """Set the parameters, broadcast to one batch shape, and check them."""
        given, batch = self._set(parameters)
        event = next((getattr(self, name).shape[len(batch) :] for name in given if self._axes(name) >= self._event_axes), ())
        self._begin(batch, event[: self._event_axes], validate_args)
        self._check_parameters({name: x for name, x in given.items() if not isinstance(x, Tensor)})

    def _set(self, parameters: Mapping[str, Operand | None]) -> tuple[dict[str, Operand], tuple[int, ...]]:
        """Set the parameters, broadcast; returns those given, and the batch shape."""
        given = self._given(parameters)
        tensors = dict(zip(given, as_tensors(*given.values()), strict=True))
        batch = joint_shape(*[x.shape[: x.ndim - self._axes(name)] for name, x in tensors.items()])
        for name, x in self._spread(tensors, batch).items():
            setattr(self, name, x)
        return given, batch

    def _given(self, parameters: Mapping[str, Operand | None]) -> dict[str, Operand]:
        """The parameters without the alternatives that are None, which must be all but one."""
        names = [name for name in parameters if self._declared[name].default is None]
        if names and sum([parameters[name] is not None for name in names]) != 1:
            among = f"{', '.join(names[:-1])} or {names[-1]}"
            raise ValueError(
                f"{type(self).__name__}: either {among} must be given, and not {'both' if len(names) == 2 else 'several'}")
        return {name: x for name, x in parameters.items() if x is not None or name not in names}  # type: ignore[misc]

    def _axes(self, name: str) -> int:
        """The number of a parameter's event axes."""
        return self._declared[name].axes if name in self._declared else 0

    def _spread(self, tensors: Mapping[str, Tensor], batch_shape: Sequence[int]) -> dict[str, Tensor]:
        spread = {}
        for name, x in tensors.items():
            shape = (*batch_shape, *x.shape[x.ndim - self._axes(name) :])
            spread[name] = x if tuple(x.shape) == shape else x.expand(shape)
        return spread

    # ---- checks ----
    def _check_parameters(self, numbers: Mapping[str, Number]) -> None:
        """Raise unless all parameters satisfy their constraints; tensors are tested together, in one program."""
        if not self._validate_args or reads_forbidden():
            return
        try:
            known = self.arg_constraints
        except NotImplementedError:  # a property that does not know
            return
        answers: list[tuple[str, Constraint, Tensor]] = []
        for name, constraint in known.items():
            if is_dependent(constraint) or (name not in vars(self) and self._follows(name)):
                continue
            if name in numbers and isinstance(constraint, OF_NUMBERS):
                if not bool(constraint.check(numbers[name])):  # type: ignore[arg-type]
                    self._complain(name, constraint)
            else:
                answers.append((name, constraint, constraint.check(getattr(self, name)).all()))
        if answers and not bool(reduce(and_, [answer for _, _, answer in answers])):
            self._complain(*next((name, constraint) for name, constraint, answer in answers if not bool(answer)))

    def _follows(self, name: str) -> bool:
        """Whether a parameter that is not given is computed from others."""
        row = self._declared.get(name)
        return isinstance(getattr(type(self), name, None), derived) or (row is not None and row.default is None)

    def _complain(self, name: str, constraint: Constraint) -> NoReturn:
        value = getattr(self, name)
        raise ValueError(
            f"{type(self).__name__}: parameter {name} of shape {tuple(value.shape)} must satisfy {constraint!r}, got\n{value}"
        )

    def _require(self, condition: Callable[[], Tensor], what: str) -> None:
        """Raise ValueError where a condition on several parameters fails, if parameters are checked."""
        if self._validate_args and not reads_forbidden() and not bool(condition().all()):
            raise ValueError(f"{type(self).__name__}: {what}")
