"""Layers as declarations: settings, and the function to call with them.

    class ELU(Layer):
        alpha: float = 1.0
        inplace: bool = False
        function = functional.elu

`__init__`, `forward` and `repr` follow from it. The two methods are generated as source, so they are as fast as handwritten
ones and have proper signatures. Functions of `nn.functional` are looked up there at each call, because users replace some. Type
checkers treat the settings like a dataclass's fields.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY
from inspect import Parameter, get_annotations, signature
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from genesis.ir.annotations import AnyFunction
from genesis.ir.made_methods import made_initializer, made_method
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = ["KW_ONLY", "Layer"]


@dataclass_transform(eq_default=False)
class Layer(Module):
    """A module with settings, its annotated names; it calls a function with those that are the function's parameters.

    A class with its own `function` gets an `__init__` of all settings in order, those of its bases first, and a `forward`
    of the function's parameters that are not settings and have no default; `training` is the module's. Methods it defines
    itself are kept. `_: KW_ONLY` precedes keyword-only settings; `__post_init__`, if defined, is called last.

    Raises TypeError if `forward` is generated and `function` lacks a parameter for a setting.
    """

    function: ClassVar[AnyFunction]
    _settings: ClassVar[Mapping[str, Parameter]] = {}

    if TYPE_CHECKING:
        def forward(self, *inputs: Any, **options: Any) -> Tensor: ...

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "function" not in vars(cls):
            return
        cls._settings = settings = _settings_of(cls)
        function = vars(cls)["function"]
        if getattr(cls.__init__, "_is_made", cls.__init__ is Module.__init__):
            cls.__init__ = _initializer(cls, settings)  # type: ignore[method-assign]
            cls.__init__._is_made = True  # type: ignore[attr-defined]
        if getattr(cls.forward, "_is_made", cls.forward is Module.forward):
            cls.forward = _forward(cls, function, settings)  # type: ignore[method-assign]
            cls.forward._is_made = True  # type: ignore[attr-defined]
        cls.function = staticmethod(looked_up(cls, function))

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
