"""How far results may lie from another library's, per dtype, and the comparison itself.

PyTorch is imported by who compares with it: that takes longer than many a process that tests start.
"""

import sys

import ml_dtypes
import numpy as np

import genesis

# relative, absolute
TOLERANCES = {
    "float64": (1e-11, 1e-12),
    "float32": (8e-6, 2e-6),
    "float16": (2e-3, 2e-3),
    "bfloat16": (1.6e-2, 1.6e-2),
}
TOLERANCES |= {"complex32": TOLERANCES["float16"], "complex64": TOLERANCES["float32"], "complex128": TOLERANCES["float64"]}


def to_numpy(values):
    """An ndarray of a genesis or torch tensor; bfloat16 as ml_dtypes'."""
    if isinstance(values, genesis.Tensor):
        return values.cpu().numpy(force=True).copy()
    if (torch := sys.modules.get("torch")) is not None and isinstance(values, torch.Tensor):
        if values.dtype is torch.bfloat16:
            return values.float().numpy(force=True).astype(ml_dtypes.bfloat16)
        if values.dtype is torch.complex32:
            return values.to(torch.complex64).numpy(force=True).astype(ml_dtypes.complex32)
        return values.numpy(force=True).copy()
    return np.asarray(values)


def to_torch(array, requires_grad=False):
    """A torch tensor with a copy of an ndarray."""
    import torch

    array = np.asarray(array)
    if array.dtype == ml_dtypes.complex32:
        return torch.from_numpy(array.astype(np.complex64)).to(torch.complex32).requires_grad_(requires_grad)
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16).requires_grad_(requires_grad)
    return torch.from_numpy(array.copy()).requires_grad_(requires_grad)


def torch_dtype(dtype):
    """torch's dtype of the same name."""
    import torch

    return getattr(torch, dtype.name)


def assert_close(ours, theirs, note="", scale=1.0, check_dtype=True):
    """Equal shapes, dtypes and values, NaN equal to NaN, within the dtype's tolerance (times `scale`)."""
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), note
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b, note, scale, check_dtype)
        return
    a, b = to_numpy(ours), to_numpy(theirs)
    assert a.shape == b.shape, f"{note}: shape {a.shape}, want {b.shape}"
    if check_dtype:
        assert a.dtype == b.dtype, f"{note}: dtype {a.dtype}, want {b.dtype}"
    relative, absolute = TOLERANCES.get(a.dtype.name, (0, 0))
    if relative:
        wide = np.complex128 if a.dtype.name.startswith("complex") else np.float64
        a, b = a.astype(wide), b.astype(wide)
        np.testing.assert_allclose(a, b, relative * scale, absolute * scale, equal_nan=True, err_msg=note)
    else:
        np.testing.assert_array_equal(a, b, err_msg=note)
