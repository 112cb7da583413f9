"""TensorBoard files, written by its own package (the extra `tensorboard`), under PyTorch's names."""

from __future__ import annotations

import os
import socket
import struct
import time
import zlib
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from genesis.execution.flush import flush_all
from genesis.ir.annotations import AnyFunction, Arguments, Scalar
from genesis.ir.errors import ArgumentError
from genesis.lower.rewriting import live_nodes
from genesis.pytree import leaves_of
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tracing.scopes import ScopeNames
from genesis.tracing.state import recording

try:
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.histogram_pb2 import HistogramProto
    from tensorboard.compat.proto.node_def_pb2 import NodeDef
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.versions_pb2 import VersionDef
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ImportError as missing:
    said = 'genesis.utils.tensorboard: TensorBoard is not installed; python -m pip install "tensorboard>=2.15"'
    raise ImportError(said) from missing

__all__ = ["SummaryWriter"]

Values = Tensor | np.ndarray | Scalar | list[Any]


class SummaryWriter:
    """Writes files for TensorBoard: `tensorboard --logdir runs`. Arguments are those of PyTorch's class.

    `log_dir` defaults to `runs/TIME_HOST` followed by `comment`. Events of steps from `purge_step` on are dropped.
    Values are tensors, arrays or numbers of any dtype and device. A tensor is computed when it is added.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     writer.add_scalar("loss", genesis.tensor(0.5), 1)
    ...     writer.add_histogram("weights", genesis.arange(10), 1)
    """

    def __init__(
        self, log_dir: str | os.PathLike[str] | None = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:
        default = os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir) if log_dir is not None else default
        self._options = max_queue, flush_secs, filename_suffix
        self._writer: Any = EventFileWriter(self.log_dir, *self._options)
        self._beside: dict[str, SummaryWriter] = {}  # writers of add_scalars, one per curve
        if purge_step is not None:
            self._write(Event(file_version="brain.Event:2"), purge_step, None)
            self._write(Event(session_log=SessionLog(status=SessionLog.START)), purge_step, None)

    def get_logdir(self) -> str:
        """The folder of the files."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Values, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:
        """A point of a curve. Raises ValueError unless `scalar_value` has one element."""
        value = _array(scalar_value)
        if value.size != 1:
            raise ArgumentError(f"add_scalar: {tag!r} wants one number, got shape {value.shape}")
        number = float(value.item())
        if not new_style:
            self._add(Summary.Value(tag=tag, simple_value=number), global_step, walltime)
            return
        tensor = TensorProto(double_val=[number], dtype="DT_DOUBLE") if double_precision else TensorProto(
            float_val=[number], dtype="DT_FLOAT")
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
        self._add(Summary.Value(tag=tag, tensor=tensor, metadata=metadata), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Values], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Points of several curves in one chart; each curve has its own folder."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self._beside:
                self._beside[folder] = SummaryWriter(folder, "", None, *self._options)
            self._beside[folder].add_scalar(main_tag, value, global_step, walltime)

    def add_histogram(
        self, tag: str, values: Values, global_step: int | None = None, bins: str | list[float] = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:
        """The distribution of values over `bins`: TensorFlow's, whose widths grow by a tenth, or those of numpy.histogram."""
        value = _array(values).astype(np.float64, copy=False).reshape(-1)
        if value.size == 0:
            raise ArgumentError(f"add_histogram: {tag!r} has no elements")
        self._add(Summary.Value(tag=tag, histo=_histogram(value, bins, max_bins)), global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Values, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image: integers of 0 to 255 or floating-point numbers of 0 to 1, with 1, 3 or 4 channels, or none for `"HW"`."""
        image = _array(img_tensor)
        if sorted(dataformats.upper()) not in (["C", "H", "W"], ["H", "W"]) or image.ndim != len(dataformats):
            raise ArgumentError(f"add_image: {tag!r} of shape {image.shape} is not laid out as {dataformats!r}: CHW, HWC or HW")
        image = image[None] if image.ndim == 2 else image
        letters = dataformats.upper() if "C" in dataformats.upper() else f"C{dataformats.upper()}"
        image = image.transpose([letters.index(letter) for letter in "HWC"])
        if image.shape[2] not in (1, 3, 4):
            raise ArgumentError(f"add_image: {tag!r} has {image.shape[2]} channels; want 1, 3 or 4")
        if image.dtype.kind == "f":
            image = np.clip(image * 255.0 + 0.5, 0, 255)
        height, width, channels = image.shape
        made = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=_png(image.astype(np.uint8)))
        self._add(Summary.Value(tag=tag, image=made), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """A text, in Markdown."""
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        text = TensorProto(dtype="DT_STRING", string_val=[text_string.encode()],
                           tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]))
        self._add(Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=text), global_step, walltime)

    def add_graph(
        self, model: AnyFunction, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """The operations of `model(*input_to_model)`, folded by module. Nothing is computed."""
        arguments: Arguments = tuple(input_to_model) if isinstance(input_to_model, tuple | list) else (input_to_model,)
        flush_all()
        with recording(False) as again, again:
            found = model(*arguments)
        graph = _graph([leaf for leaf in leaves_of(found) if isinstance(leaf, Tensor)])
        if verbose:
            print(graph)
        self._write(Event(graph_def=graph.SerializeToString()), None, None)

    def flush(self) -> None:
        """Write pending events."""
        for writer in (self._writer, *self._beside.values()):
            writer.flush()

    def close(self) -> None:
        """Write pending events and close the file. Later events go into a new one."""
        for writer in (self._writer, *self._beside.values()):
            if writer is not None:
                writer.close()
        self._writer, self._beside = None, {}

    def __enter__(self) -> Self: return self
    def __exit__(self, *problem: object) -> None: self.close()

    def _add(self, value: Any, step: int | None, walltime: float | None) -> None:
        self._write(Event(summary=Summary(value=[value])), step, walltime)

    def _write(self, event: Any, step: int | None, walltime: float | None) -> None:
        if self._writer is None:
            self._writer = EventFileWriter(self.log_dir, *self._options)
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self._writer.add_event(event)


def _array(values: Values) -> np.ndarray:
    if not isinstance(values, Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    found: np.ndarray = (values.float() if values.dtype.itemsize < 4 and values.dtype.is_floating_point else values).numpy()
    return found


def _tensorflow_bins() -> list[float]:
    """The limits of TensorFlow's histograms (histogram.cc): from 1e-12 to 1e20, each a tenth above the last."""
    positive, limit = [], 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    return [*(-p for p in reversed(positive)), 0.0, *positive]


def _histogram(values: np.ndarray, bins: str | list[float], most: int | None) -> Any:
    counts, limits = np.histogram(values, bins=_tensorflow_bins() if bins == "tensorflow" else bins)
    if most is not None and len(counts) > most:
        starts = np.arange(0, len(counts), -(-len(counts) // most))
        counts, limits = np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])
    used = np.flatnonzero(counts)
    if not used.size:
        raise ArgumentError(f"add_histogram: no value lies within the bins, from {limits[0]} to {limits[-1]}")
    first, last = used[0], used[-1] + 1
    return HistogramProto(  # buckets have only upper limits, so an empty one comes first
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values @ values,
        bucket=[0, *counts[first:last].tolist()], bucket_limit=limits[first : last + 1].tolist())


def _png(image: np.ndarray) -> bytes:
    """PNG (ISO/IEC 15948) of uint8 (height, width, channels)."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)  # each row unfiltered
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")


def _graph(tensors: list[Tensor]) -> Any:
    arrays = [a for a in map(array_of, tensors) if a.memory is None]
    nodes: list[Any] = []
    paths = ScopeNames()
    for trace in dict.fromkeys(a.trace for a in arrays if a.trace is not None):
        live = live_nodes(trace.nodes, [a.index for a in arrays if a.trace is trace])
        names: dict[int, str] = {}
        for index, node in enumerate(trace.nodes):
            if not live[index]:
                continue
            path = paths.path(trace.scope_of(index)).replace(".", "/")
            names[index] = "/".join(filter(None, (path, f"{node.op}_{index}")))
            shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=extent) for extent in node.shape])
            nodes.append(NodeDef(name=names[index], op=node.op, input=[names[i] for i in node.inputs], attr={
                "_output_shapes": AttrValue(list=AttrValue.ListValue(shape=[shape])),
                "dtype": AttrValue(s=node.dtype.name.encode()),
            }))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))
