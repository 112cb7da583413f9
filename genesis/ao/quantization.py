"""Converts models of float32 into models with int8 weights."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from genesis.ao import fake_quantizers, observers
from genesis.ao.fake_quantizers import *  # noqa: F403
from genesis.ao.nn.quantized import dynamic
from genesis.ao.observers import *  # noqa: F403
from genesis.ir.dtypes import DType, int8
from genesis.nn.linear import Linear
from genesis.nn.module import Module

__all__ = ["default_dynamic_qconfig", "per_channel_dynamic_qconfig", "quantize_dynamic"]
__all__ += [*fake_quantizers.__all__, *observers.__all__]

ModuleKey = type[Module] | str  # a class of modules, or a module's path


class DynamicQConfig:
    """The quantisation of a module with dynamically quantised inputs."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


per_channel_dynamic_qconfig = default_dynamic_qconfig = DynamicQConfig("per_channel_dynamic_qconfig")


class Quantized(Protocol):
    """A class of quantised layers, which have `from_float`."""

    @classmethod
    def from_float(cls, mod: Any) -> Module: ...


MAPPING: Mapping[type[Module], type[Quantized]] = {Linear: dynamic.Linear}


def quantize_dynamic(
    model: Module, qconfig_spec: Collection[ModuleKey] | Mapping[ModuleKey, DynamicQConfig | None] | None = None,
    dtype: DType = int8, mapping: Mapping[type[Module], type[Quantized]] | None = None, inplace: bool = False,
) -> Module:
    """The model with int8 weights in its linear layers, a scale for each output; for inference.

    Args:
        model: is copied, unless `inplace`. If the model itself is a layer to be quantised, its replacement is returned.
        qconfig_spec: the modules to quantise with everything below them, by class or path: `{nn.Linear}`,
            `{"head", nn.TransformerEncoder}`; in a mapping, None excludes modules. By default all linear layers.
        dtype: the dtype of weights, int8.
        mapping: classes -> their replacements, which have `from_float`.

    Warns if an entry of `qconfig_spec` matches nothing to quantise. Raises ValueError for another dtype or qconfig.

    >>> from genesis import nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    >>> genesis.ao.quantization.quantize_dynamic(model, {nn.Linear})[2]
    DynamicQuantizedLinear(in_features=8, out_features=2, bias=True, dtype=genesis.int8, qscheme=per_channel_symmetric)
    """
    if dtype is not int8:
        raise ValueError(f"quantize_dynamic: no weights of {getattr(dtype, 'name', dtype)}; want int8")
    mapping = MAPPING if mapping is None else mapping
    spec: Mapping[ModuleKey, DynamicQConfig | None] = qconfig_spec if isinstance(qconfig_spec, Mapping) else dict.fromkeys(
        mapping if qconfig_spec is None else qconfig_spec, default_dynamic_qconfig)
    for key, qconfig in spec.items():
        if qconfig is not None and qconfig is not default_dynamic_qconfig:
            raise ValueError(f"quantize_dynamic: {qconfig!r} for {key!r}; want per_channel_dynamic_qconfig or None")
    walk = _Walk(spec, mapping)
    model = walk.quantized(model if inplace else copy.deepcopy(model), "", None)
    if qconfig_spec is not None:
        for key in [key for key, qconfig in spec.items() if qconfig is not None and key not in walk.served]:
            named = repr(key) if isinstance(key, str) else key.__name__
            warnings.warn(f"quantize_dynamic: nothing to quantise for {named}: {', '.join(k.__name__ for k in mapping)} alone "
                          "has a quantised form", stacklevel=2)
    return model


class _Walk:
    """Replaces the modules below one; each once, however many paths lead to it."""

    def __init__(
        self, spec: Mapping[ModuleKey, DynamicQConfig | None], mapping: Mapping[type[Module], type[Quantized]]
    ) -> None:
        self.spec, self.mapping = spec, mapping
        self.served: set[ModuleKey] = set()
        self.made: dict[Module, Module] = {}

    def quantized(self, module: Module, path: str, above: ModuleKey | None) -> Module:
        """The module, or its replacement; `above` is the entry of the specification that covers it."""
        for key in (type(module), path):
            if key in self.spec:
                above = key
        if above is not None and self.spec[above] is not None and type(module) in self.mapping:
            self.served.add(above)
            if module not in self.made:
                self.made[module] = made = self.mapping[type(module)].from_float(module)
                made._hooks = module._hooks
            return self.made[module]
        for name, child in module._children():
            found = self.quantized(child, f"{path}.{name}" if path else name, above)
            if found is not child:
                setattr(module, name, found)
        return module
