"""Tensors in shared memory: moving them there, and sending them with `multiprocessing`.

As arguments of a process and through queues, such a tensor arrives as the same memory, other tensors as copies.
"""

from __future__ import annotations

from multiprocessing import reduction
from typing import Any

from genesis.execution.realize import is_interrupted
from genesis.ir.annotations import Arguments, Attributes
from genesis.ir.dtypes import DType
from genesis.ir.shapes import Shape, reach
from genesis.ops.layout import Layout, contiguous_layout
from genesis.runtime.devices import CPU
from genesis.runtime.memory import Buffer
from genesis.runtime.shared_file import SharedFile
from genesis.tensor.from_python import over_buffer
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.users_attributes import users_attributes
from genesis.tensor.views import memory_of
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.tensor_state import EXPOSED
from genesis.tracing.trace import LOCK, Array


def move_to_file(tensor: Tensor) -> None:
    """Move the storage of a tensor to a file that processes share. Raises RuntimeError for a result that carries a gradient."""
    if not hasattr(reduction, "DupFd"):  # on Windows, where processes cannot be handed files
        return
    refuse("the memory of a tensor is shared with other processes")
    root = root_of(tensor)
    if tensor._element_map is not None or root._array.node.differentiable or tensor._array.node.differentiable:
        raise RuntimeError("share_memory_: this tensor carries a gradient, or has no memory of its own; want detach().clone()")
    with LOCK:
        if is_interrupted(root._array):
            raise RuntimeError("share_memory_: called by a signal handler or finalizer, while this tensor is being computed")
        memory = memory_of(root)
        file = SharedFile(root.nbytes)
        buffer = Buffer.outside(file.address, file.nbytes, CPU, file)
        buffer.numpy(root.dtype.numpy, root.shape)[...] = memory.numpy(root.dtype)
        root._array = Array.realized(buffer, contiguous_layout(root.shape), root.dtype)
        root._changes += EXPOSED  # the values are the same, but views must look up the new memory
    _send_files()


def _send_files(kind: type[Tensor] = Tensor) -> None:
    """Make `multiprocessing` send tensors of a class and its subclasses by `_sent`, except those with their own pickling."""
    if kind.__reduce_ex__ is Tensor.__reduce_ex__:
        reduction.ForkingPickler.register(kind, _sent)
        for below in kind.__subclasses__():
            _send_files(below)


def _sent(tensor: Tensor) -> Arguments:
    """The function and arguments that recreate the tensor in another process, as in pickles."""
    memory = None if tensor._element_map is not None else memory_of(tensor)
    if memory is None or not isinstance(file := memory.buffer._owner, SharedFile):
        return tensor.__reduce_ex__(2)  # type: ignore[return-value]
    start = memory.buffer.ptr - file.address + memory.layout.offset * tensor.dtype.itemsize
    layout = memory.layout.shape, memory.layout.strides
    return _arrived, (type(tensor), file, start, *layout, tensor.dtype, tensor.requires_grad, users_attributes(tensor))


def _arrived(
    kind: type[Tensor], file: SharedFile, start: int, shape: Shape, strides: Shape, dtype: DType, requires_grad: bool,
    own: Attributes,
) -> Tensor:
    (low, high), size = reach(shape, strides), dtype.itemsize
    buffer = Buffer.outside(file.address + start + low * size, (high - low) * size, CPU, file)
    result = over_buffer(buffer, Layout(shape, strides, -low), dtype, requires_grad)
    result.__class__ = kind
    result.__dict__.update(own)
    _send_files()
    return result


def _sent_file(file: SharedFile) -> Arguments:
    return _opened, (file.nbytes, reduction.DupFd(file.fd))


def _opened(nbytes: int, sent: Any) -> SharedFile:
    return SharedFile(nbytes, sent.detach())


reduction.ForkingPickler.register(SharedFile, _sent_file)
