"""Layers as declarations: settings, and the function to call with them.

    class ELU(Layer, function=functional.elu):
        alpha: float = 1.0
        inplace: bool = False

`__init__`, `forward`, `repr` and the docstring follow from it. The two methods are generated as source, so they are as fast
as handwritten ones and have proper signatures. Functions of `nn.functional` are looked up there at each call, because users
replace some. Type checkers treat the settings like a dataclass's fields.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY
from inspect import Parameter, cleandoc, get_annotations, signature
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from genesis.ir.annotations import AnyFunction
from genesis.ir.made_methods import made_initializer, made_method
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = ["KW_ONLY", "Layer"]


@dataclass_transform(eq_default=False)
class Layer(Module):
    """A module with settings, its annotated names; it calls a function with those that are the function's parameters.

    A class with its own `function`, given behind its bases or as an attribute, gets an `__init__` of all settings in order,
    those of its bases first, and a `forward` of the function's parameters that are not settings and have no default;
    `training` is the module's. Methods it defines itself are kept. `_: KW_ONLY` precedes keyword-only settings;
    `__post_init__`, if defined, is called last. Without a docstring it has its function's, whose examples call the layer.

    Raises TypeError if `forward` is generated and `function` lacks a parameter for a setting.
    """

    function: ClassVar[AnyFunction]
    _settings: ClassVar[Mapping[str, Parameter]] = {}

    if TYPE_CHECKING:
        def forward(self, *inputs: Any, **options: Any) -> Tensor: ...

    def __init_subclass__(cls, function: AnyFunction | None = None) -> None:
        super().__init_subclass__()
        function = vars(cls).get("function", function)
        if function is None:
            return
        cls._settings = settings = _settings_of(cls)
        if getattr(cls.__init__, "_is_made", cls.__init__ is Module.__init__):
            cls.__init__ = _initializer(cls, settings)  # type: ignore[method-assign]
            cls.__init__._is_made = True  # type: ignore[attr-defined]
        if getattr(cls.forward, "_is_made", cls.forward is Module.forward):
            cls.forward = _forward(cls, function, settings)  # type: ignore[method-assign]
            cls.forward._is_made = True  # type: ignore[attr-defined]
        cls.function = staticmethod(looked_up(cls, function))
        if vars(cls)["__doc__"] is None:
            cls.__doc__ = _FunctionsDocumentation()  # type: ignore[assignment]

    def extra_repr(self) -> str:
        if self._printed is not None:
            return super().extra_repr()
        return ", ".join([self._setting_text(name) for name in self._settings if name != "inplace" or getattr(self, name)])


def _settings_of(cls: type[Layer]) -> dict[str, Parameter]:
    """The annotated names of a class and its bases, as parameters."""
    by_name, settings = False, {}
    for base in reversed(cls.__mro__[: cls.__mro__.index(Layer)]):
        for name, annotation in get_annotations(base).items():
            if annotation in ("KW_ONLY", KW_ONLY):
                by_name = True
            elif not name.startswith("_") and not str(annotation).startswith("ClassVar"):
                kind = Parameter.KEYWORD_ONLY if by_name else Parameter.POSITIONAL_OR_KEYWORD
                settings[name] = Parameter(name, kind, default=vars(base).get(name, Parameter.empty), annotation=annotation)
    return settings


def _initializer(cls: type[Layer], settings: Mapping[str, Parameter]) -> AnyFunction:
    begin = "super(Layer, self).__init__()"  # skips the bases' `__init__`, which set their own settings
    lines = [begin, *[f"self.{name} = {name}" for name in settings]] + ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    return made_initializer(cls, settings.values(), lines, Layer=Layer)


def _forward(cls: type[Layer], function: AnyFunction, settings: Mapping[str, Parameter]) -> AnyFunction:
    inputs, arguments, by_name = [], [], False
    parameters = signature(function).parameters
    if unknown := settings.keys() - parameters.keys():
        raise TypeError(f"{cls.__name__}: its function has no parameters {sorted(unknown)}; want settings of {[*parameters]}")
    for name, parameter in parameters.items():
        if name in settings or name == "training":
            value = f"self.{name}"
        elif parameter.default is Parameter.empty:
            value = name
            inputs.append(name)
        else:
            by_name = True  # omitted, so later ones are passed by name
            continue
        by_name = by_name or name == "inplace" or parameter.kind is Parameter.KEYWORD_ONLY
        arguments.append(f"{name}={value}" if by_name else value)
    called = _public_name(cls, function) or "function"
    made = made_method(cls, "forward", ["self", *inputs], [f"return {called}({', '.join(arguments)})"], function=function)
    made.__annotations__ = dict.fromkeys((*inputs, "return"), Tensor)
    made.__doc__ = f"See `nn.functional.{getattr(function, '__name__', 'function')}`."
    return made


# ---- documentation ----
class _FunctionsDocumentation:
    """The docstring of a layer without one, made when it is read."""

    def __get__(self, layer: Layer | None, cls: type[Layer]) -> str:
        lines = cleandoc(cls.function.__doc__ or "").splitlines()
        return "\n".join([">>> " + _of_layer(cls, line[4:]) if line.startswith(">>> ") else line for line in lines])


def _of_layer(cls: type[Layer], line: str) -> str:
    """A line of an example that calls the layer: `softmin(x, dim=0)` becomes `genesis.nn.Softmin(dim=0)(x)`."""
    text, signed = functools.partial(ast.get_source_segment, line), signature(cls.function)
    with suppress(SyntaxError):  # the first line of several
        for call in ast.walk(ast.parse(line)):
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == cls.function.__name__:
                by_name = {one.arg: text(one.value) for one in call.keywords if one.arg}
                given = signed.bind_partial(*map(text, call.args), **by_name).arguments
                settings = ", ".join([f"{name}={value}" for name, value in given.items() if name in cls._settings])
                inputs = ", ".join([value for name, value in given.items() if name not in cls._settings and name != "training"])
                home = "genesis.nn." * cls.__module__.startswith("genesis.")
                defaults = {name: str(parameter.default) for name, parameter in signed.parameters.items()}
                mode = ".eval()" if (defaults | given).get("training") == "False" else ""
                return line.replace(text(call) or "", f"{home}{cls.__name__}({settings}){mode}({inputs})", 1)
    return line


# ---- functions that users replace ----
def looked_up(cls: type, function: AnyFunction) -> AnyFunction:
    """`function`; if it is from `nn.functional`, it is looked up by name at each call, as PyTorch's layers do."""
    name = _public_name(cls, function)
    if name is None:
        return function
    made = made_method(cls, function.__name__, ["*args", "**kwargs"], [f"return {name}(*args, **kwargs)"])
    return functools.update_wrapper(made, function)


def _public_name(cls: type, function: AnyFunction) -> str | None:
    """The name of `function` in the class's module, if it is from `nn.functional`."""
    functional, name = vars(sys.modules[cls.__module__]).get("functional"), getattr(function, "__name__", "")
    return f"functional.{name}" if getattr(functional, name, None) is function else None


_EXTENTS = {1: "l", 2: "h, w", 3: "d, h, w"}


class Family(Module):
    """The base of families: `class Conv2d(_Conv, axes=2, function=functional.conv2d)` is the member for two axes.

    A member without a docstring gets its base's. These are filled in: the member's `{name}`, the `{first}` line of the family,
    the `{function}` of `nn.functional`, `{axes}` in words, `{extents}` as letters, and `{8}`: an 8 per axis.
    """

    function: ClassVar[AnyFunction]
    _axes: ClassVar[int] = 0
    _template: ClassVar[str] = ""

    def __init_subclass__(cls, axes: int = 0, function: AnyFunction | None = None) -> None:
        if function is not None:
            cls.function = function
        super().__init_subclass__()  # a Layer generates its methods here
        if function is not None:
            cls.function = staticmethod(looked_up(cls, function))
        if axes:
            cls._axes = axes
            if cls.__doc__ is None:
                cls.__doc__ = _filled(cls, cls._template)
        elif not cls._axes and cls.__doc__ is not None:
            cls._template = cls.__doc__
            cls.__doc__ = cls.__doc__.partition(">>>")[0]  # an example with braces does not run


def _filled(cls: type[Family], template: str) -> str:
    axes, name = cls._axes, cls.__name__
    return template.format(
        *[", ".join([str(extent)] * axes) for extent in range(17)], name=name, first=f"{name[:-2]}1d", extents=_EXTENTS[axes],
        function=getattr(getattr(cls, "function", None), "__name__", ""), axes="axis" if axes == 1 else f"{axes} axes")
