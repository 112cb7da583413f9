"""Libraries with parts that are compiled for PyTorch: what their modules get, once imported, in place of these."""

from __future__ import annotations

from typing import Any

from genesis.as_torch.stand_ins.settings import no, nothing

AMENDED: dict[str, dict[str, Any]] = {  # by the module
    "torchaudio._extension.utils": {"_load_lib": no},  # as where there is no such file: its Python functions run
    "torchvision.ops.boxes": {"_assert_has_ops": nothing},  # `torch.ops.torchvision` has those that are called there
    "torchvision.ops.deform_conv": {"_assert_has_ops": nothing},
}
