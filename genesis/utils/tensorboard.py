"""TensorBoard files, written by its own package (the extra `tensorboard`), under PyTorch's names."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
import zlib
from collections.abc import Mapping
from io import BytesIO
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
from genesis.tracing.state import grad_mode

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
    from tensorboard.plugins.hparams import api_pb2 as hparams, plugin_data_pb2 as hparams_data
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
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
        self._add(Summary.Value(tag=tag, tensor=tensor, metadata=_metadata("scalars")), global_step, walltime)

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
        height, width, channels = image.shape
        made = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=_png(image))
        self._add(Summary.Value(tag=tag, image=made), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Values, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Images of one size as one, eight in a row."""
        images = _array(img_tensor)
        if sorted(dataformats.upper()) != ["C", "H", "N", "W"] or images.ndim != 4:
            raise ArgumentError(f"add_images: {tag!r} of shape {images.shape} is not laid out as {dataformats!r}: NCHW or NHWC")
        rows = _in_rows(images.transpose([dataformats.upper().index(letter) for letter in "NHWC"]), 8)
        self.add_image(tag, rows, global_step, walltime, "HWC")

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of Matplotlib as an image, or a list of them; each is closed afterwards, unless `close` is False."""
        images = []
        for each in figure if isinstance(figure, list) else [figure]:
            each.savefig(data := BytesIO(), format="rgba", dpi=each.dpi, bbox_inches=each.bbox_inches)
            size = [int(extent) for extent in each.bbox.size]
            images.append(np.frombuffer(data.getvalue(), np.uint8).reshape(size[1], size[0], 4)[..., :3])
            if close and (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
                pyplot.close(each)
        self.add_images(tag, np.stack(images), global_step, walltime, "NHWC")

    def add_pr_curve(
        self, tag: str, labels: Values, predictions: Values, global_step: int | None = None, num_thresholds: int = 127,
        weights: Values | None = None, walltime: float | None = None,
    ) -> None:
        """Precision and recall of the predictions, from 0 to 1, of binary labels: at 127 thresholds at most."""
        count, found = min(num_thresholds, 127), []
        at = np.floor(_array(predictions).reshape(-1) * (count - 1)).astype(np.int64).clip(0, count - 1)
        positive = _array(labels).reshape(-1).astype(np.float64)
        for share in positive, 1 - positive:
            share = share * (1.0 if weights is None else _array(weights).reshape(-1))
            found.append(np.bincount(at, share, count)[::-1].cumsum()[::-1])  # of predictions from each threshold on
        true, false = found
        rows = [true, false, false[0] - false, true[0] - true, true / np.maximum(1e-7, true + false), true / max(1e-7, true[0])]
        metadata = _metadata("pr_curves", PrCurvePluginData(version=0, num_thresholds=count))
        tensor = TensorProto(dtype="DT_FLOAT", float_val=np.concatenate(rows).tolist(), tensor_shape=_shape(6, count))
        self._add(Summary.Value(tag=tag, metadata=metadata, tensor=tensor), global_step, walltime)

    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Values],
        hparam_domain_discrete: Mapping[str, list[Any]] | None = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """A run's settings and its results, as a row of a table; in a folder of its own."""
        start, infos = hparams_data.SessionStartInfo(), []
        for name, value in hparam_dict.items():
            value = value.item() if isinstance(value, Tensor) else value
            kind, field = ("STRING", "string_value") if isinstance(value, str) else ("FLOAT64", "number_value")
            info = hparams.HParamInfo(name=name, type=f"DATA_TYPE_{kind}")
            for choice in (hparam_domain_discrete or {}).get(name, ()):
                setattr(info.domain_discrete.values.add(), field, choice)
            if value is not None:
                setattr(start.hparams[name], field, value)
                infos.append(info)
        metrics = [hparams.MetricInfo(name=hparams.MetricName(tag=tag)) for tag in metric_dict]
        parts = {
            "experiment": hparams.Experiment(hparam_infos=infos, metric_infos=metrics), "session_start_info": start,
            "session_end_info": hparams_data.SessionEndInfo(status="STATUS_SUCCESS"),
        }
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for name, part in parts.items():
                metadata = _metadata("hparams", hparams_data.HParamsPluginData(**{name: part}))
                writer._add(Summary.Value(tag=f"_hparams_/{name}", metadata=metadata), global_step, None)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """A text, in Markdown."""
        text = TensorProto(dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=_shape(1))
        self._add(Summary.Value(tag=f"{tag}/text_summary", metadata=_metadata("text"), tensor=text), global_step, walltime)

    def add_graph(
        self, model: AnyFunction, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """The operations of `model(*input_to_model)`, folded by module. Nothing is computed."""
        arguments: Arguments = tuple(input_to_model) if isinstance(input_to_model, tuple | list) else (input_to_model,)
        flush_all()
        with grad_mode(False):
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


def _metadata(plugin: str, content: Any = None) -> Any:
    data = b"" if content is None else content.SerializeToString()
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=data))


def _shape(*extents: int) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=extent) for extent in extents])


def _in_rows(images: np.ndarray, columns: int) -> np.ndarray:
    """Images (n, height, width, channels) as one, with so many in a row."""
    count, height, width, channels = images.shape
    columns = min(count, columns)
    rows = -(-count // columns)
    whole = np.pad(images, ((0, rows * columns - count), (0, 0), (0, 0), (0, 0))).reshape(rows, columns, *images.shape[1:])
    return whole.swapaxes(1, 2).reshape(rows * height, columns * width, channels)


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
    """PNG (ISO/IEC 15948) of (height, width, channels): integers of 0 to 255 or floating-point numbers of 0 to 1."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = image.shape
    image = (np.clip(image * 255.0 + 0.5, 0, 255) if image.dtype.kind == "f" else image).astype(np.uint8)
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
            shape = _shape(*node.shape)
            nodes.append(NodeDef(name=names[index], op=node.op, input=[names[i] for i in node.inputs], attr={
                "_output_shapes": AttrValue(list=AttrValue.ListValue(shape=[shape])),
                "dtype": AttrValue(s=node.dtype.name.encode()),
            }))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))
