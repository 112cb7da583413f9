"""Modules for quantisation-aware training, and stubs at the beginning and end of a model's quantised part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.ao.observers import (
    Configured, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver, default_observer, default_weight_observer,
    fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine, per_channel_affine, per_channel_symmetric,
    per_tensor_symmetric, takes_sizes,
)
from genesis.ir.dtypes import int8, int32, uint8
from genesis.nn.module import Module
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor

__all__ = [
    "DeQuantStub", "FakeQuantize", "FakeQuantizeBase", "QConfig", "QuantStub", "default_fake_quant",
    "default_per_channel_weight_fake_quant", "default_qat_qconfig", "default_qconfig", "default_weight_fake_quant",
    "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
]


class QConfig(NamedTuple):
    """The factories of the observers or fake quantisers for a module's results and weights."""

    activation: Any
    weight: Any


class FakeQuantizeBase(Configured):
    """The base of fake quantisers: observing and rounding can be switched on and off."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", from_data([1], uint8))
        self.register_buffer("observer_enabled", from_data([1], uint8))

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round, or return the input unchanged."""
        self.fake_quant_enabled = from_data([int(enabled)], uint8)

    def disable_fake_quant(self) -> None:
        """Return the input unchanged."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Track ranges, or keep the scale."""
        self.observer_enabled = from_data([int(enabled)], uint8)

    def disable_observer(self) -> None:
        """Keep the scale."""
        self.enable_observer(False)


class FakeQuantize(FakeQuantizeBase):
    """Tracks the range of its input by an observer, and rounds it as quantisation does.

    >>> quantizer = genesis.ao.quantization.FakeQuantize(quant_min=0, quant_max=15)
    >>> quantizer(genesis.tensor([0.0, 0.24, 1.5]))
    tensor([0.0000, 0.2000, 1.5000])
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: int | None = None, quant_max: int | None = None,
        is_dynamic: bool = False, **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        self.is_dynamic = is_dynamic
        self.quant_min, self.quant_max = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        self.register_buffer("scale", from_data([1.0]))
        self.register_buffer("zero_point", from_data([0], int32))
        takes_sizes(self, "scale", "zero_point")
        self.dtype, self.qscheme = self.activation_post_process.dtype, self.activation_post_process.qscheme
        self.ch_axis = getattr(self.activation_post_process, "ch_axis", -1)
        self.is_per_channel = self.qscheme in (per_channel_affine, per_channel_symmetric)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point for the observed range."""
        found: tuple[Tensor, Tensor] = self.activation_post_process.calculate_qparams()
        return found

    def forward(self, X: Tensor) -> Tensor:
        """`X`, rounded to quantised values."""
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            self.scale, zero_point = self.calculate_qparams()
            self.zero_point = zero_point.to(int32)
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            return fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max)
        return fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, self.quant_min, self.quant_max)

    def extra_repr(self) -> str:
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
                f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
                f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}")


def _switch(name: str) -> Callable[[Module], None]:
    def switch(mod: Module) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"`FakeQuantize.{name}` of a module that has it, for `Module.apply`."
    return switch


disable_fake_quant, enable_fake_quant = _switch("disable_fake_quant"), _switch("enable_fake_quant")
disable_observer, enable_observer = _switch("disable_observer"), _switch("enable_observer")


class QuantStub(Module):
    """The beginning of a model's quantised part: returns its input."""

    def __init__(self, qconfig: QConfig | None = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """`x`."""
        return x


class DeQuantStub(QuantStub):
    """The end of a model's quantised part: returns its input."""


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=uint8, reduce_range=True)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=int8, qscheme=per_tensor_symmetric,
    reduce_range=False)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=int8, qscheme=per_channel_symmetric,
    reduce_range=False, ch_axis=0)
default_qconfig = QConfig(default_observer, default_weight_observer)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
