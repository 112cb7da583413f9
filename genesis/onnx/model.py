"""From an exported program to an ONNX model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from onnx import helper, numpy_helper

from genesis.ir.annotations import AnyFunction, Options
from genesis.ir.dtypes import DType, int64
from genesis.ir.graph import Node
from genesis.onnx.dynamic_sizes import DynamicAxes, DynamicSizes, dynamic_of
from genesis.onnx.layouts import offsets_of, steps_of
from genesis.onnx.operators import BITWISE, ELEMENTWISE, LOGICAL, REDUCTIONS, SAME, Operator, operator_of
from genesis.onnx.unrolled_loops import without_loops
from genesis.ops.layout import layout_in
from genesis.shipping import ExportedProgram, ExportError, export as exported
from genesis.shipping.dynamic import Formula
from genesis.shipping.export import Dynamic
from genesis.shipping.graph_of_call import short

OPSET = 18
_WITHOUT_EFFECT = (
    "verbose", "dynamo", "report", "optimize", "verify", "profile", "dump_exported_program", "artifacts_dir", "fallback",
    "do_constant_folding", "autograd_inlining")
_ONLY: dict[str, tuple[Any, ...]] = {  # settings that would change the model: what they may be
    "custom_translation_table": (None, {}), "export_params": (True,), "training": (0, 1, None), "custom_opsets": (None, {}),
    "operator_export_type": (0, None), "export_modules_as_functions": (False,),
}
_LARGE = 1 << 30  # bytes of state from which on it lies beside the file, for a file has at most 2 GB


def export(
    model: AnyFunction | ExportedProgram, args: Sequence[Any] | Any = (), f: str | os.PathLike[str] | None = None, *,
    kwargs: Mapping[str, Any] | None = None, input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None, opset_version: int | None = None, external_data: bool = True,
    keep_initializers_as_inputs: bool = False, dynamic_axes: DynamicAxes | None = None,
    dynamic_shapes: Dynamic | None = None, **others: Any,
) -> Any:
    """An ONNX model (a `ModelProto`) of a module, a function or an exported program; also written to the file `f`, if given.

    Args:
        model: a module or function, exported by `genesis.export` with example arguments `args` and `kwargs`; or a program.
        input_names, output_names: names that replace the arguments' names, and output_0, ..
        opset_version: converts the operators to this opset; with a warning, as in PyTorch, they keep 18 if there is no way.
        external_data: whether state of a GiB or more is written beside the file.
        keep_initializers_as_inputs: whether the state's tensors are optional inputs too.
        dynamic_axes: the axes of variable size, by input name: `{"x": {0: "batch"}}`, or `{"x": [0]}`.
        dynamic_shapes: `dynamic` of `genesis.export`: by argument, with `Dim`s or names.
        others: PyTorch's settings of its exporter (`verbose`, `dynamo`, `report`, `optimize`, `verify`, `profile`, ..), which
            have no effect on a model. Those that would change it are refused: ValueError.

    Other sizes are fixed to those of the examples; an exported program keeps its own. Convolutions and max pooling become
    ONNX's operators; all other operations are decomposed into genesis' primitives, as operators of opset 18.

    Raises ExportError, with the user's line, for an operation without a form in ONNX and, as `genesis.export`, for numbers
    that are no polynomials of dynamic sizes.

    >>> import genesis
    >>> model = export(lambda x: (x @ x.T).relu(), genesis.ones(2, 3))
    >>> [node.op_type for node in model.graph.node]
    ['Transpose', 'Reshape', 'MatMul', 'Relu', 'Identity']
    """
    _check_settings(others)
    if dynamic_axes and dynamic_shapes:
        raise ValueError("onnx.export: dynamic_axes and dynamic_shapes say the same; want one of them")
    if isinstance(model, ExportedProgram):
        if dynamic_axes or dynamic_shapes:
            raise ValueError("onnx.export: the program has its own dynamic sizes; say them where it is exported")
        program = model
    else:
        arguments, options = args if isinstance(args, tuple | list) else (args,), kwargs or {}
        if dynamic_axes:
            dynamic_shapes = dynamic_of(dynamic_axes, model, arguments, options, input_names, output_names)
        program = exported(model, *arguments, dynamic=dynamic_shapes, **options)
    _check_program(program)
    names = _named("input", [path for path, _ in program.named_arguments()], input_names)
    results = _named("output", [f"output_{k}" for k in range(len(program.graph.outputs))], output_names)
    proto = _Model(program, names).model(results)
    if keep_initializers_as_inputs:
        proto.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in proto.graph.initializer)
    onnx.checker.check_model(proto)
    if opset_version not in (None, OPSET):
        try:
            proto = onnx.version_converter.convert_version(proto, opset_version)
        except RuntimeError as problem:
            warnings.warn(f"onnx.export: the model keeps opset {OPSET}, not {opset_version}: {problem}", stacklevel=2)
    if f is not None:
        size = sum(len(one.raw_data) for one in proto.graph.initializer)
        onnx.save_model(proto, os.fspath(f), save_as_external_data=external_data and size > _LARGE)
    return proto


def _check_program(program: ExportedProgram) -> None:
    """Raise ValueError or ExportError for a program without a form in ONNX."""
    empty = [dim.__name__ for dim in program.sizes.dims if dim.min < 1]
    if empty:
        raise ValueError(f"onnx.export: {empty[0]} may be 0, which a shape in ONNX takes for another thing; want a min of 1")
    if program.graph.written:
        raise ExportError(f"onnx.export: {', '.join(program.graph.written)} would be written over; call eval() first")


def _named(kind: str, own: list[str], names: Sequence[str] | None) -> list[str]:
    """The names that replace those of inputs or outputs, if there are some. Raises ValueError for another number of them."""
    if names and len(names) != len(own):
        raise ValueError(f"onnx.export: {len(names)} {kind}_names for {len(own)} {kind}s, {', '.join(own)}")
    return [*names] if names else own


def _check_settings(settings: Options) -> None:
    for name, value in settings.items():
        if name not in (*_WITHOUT_EFFECT, *_ONLY):
            raise TypeError(f"onnx.export() got an unexpected keyword argument {name!r}")
        if name in _ONLY and value not in _ONLY[name]:
            raise ValueError(f"onnx.export: {name}={value!r} changes the model; want {_ONLY[name][0]!r}")


class _Model:
    """Collects the operators of a program."""

    def __init__(self, program: ExportedProgram, names: Sequence[str]) -> None:
        graph, self._sizes = without_loops(program.graph, program.sizes)
        self._graph = graph
        self._nodes = graph.nodes
        self._names: dict[int, str] = {}
        self._operators: list[Any] = []
        self._constants: list[Any] = []
        self._dynamic = DynamicSizes(graph, self._sizes, names, self._add, self._constant)
        self._inputs = [
            helper.make_tensor_value_info(name, self._type(dtype, None), self._dynamic.shape(number))
            for number, (name, (_, dtype)) in enumerate(zip(names, graph.leaves, strict=True))]
        self._calls = self._whole_calls()
        live = self._live()
        for one in graph.inputs:
            if one.kind == "argument":
                self._names[one.node] = names[int(one.name)]
            elif one.node in live:
                values = np.ascontiguousarray(program.state_dict[one.name].detach().numpy())
                self._constants.append(numpy_helper.from_array(values, one.name))
                self._names[one.node] = one.name
        for index in sorted(live):
            if index not in self._names:
                whole = self._calls.get(index)
                node = self._sizes.varying(index, self._nodes[index])
                self._names[index] = self._call(*whole) if whole else self._node(index, node)

    def model(self, results: Sequence[str]) -> Any:
        """The model."""
        outputs = []
        for name, index in zip(results, self._graph.outputs, strict=True):
            self._operators.append(helper.make_node("Identity", [self._names[index]], [name]))
            kind, shape = self._type(self._nodes[index].dtype, index), self._dynamic.result_shape(index)
            outputs.append(helper.make_tensor_value_info(name, kind, shape))
        graph = helper.make_graph(self._operators, "genesis", self._inputs, outputs, self._constants)
        return helper.make_model(graph, producer_name="genesis", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)

    def _whole_calls(self) -> dict[int, Operator]:
        """The calls that become one operator, by their only value with readers outside the call."""
        found, read = {}, [set(node.inputs) for node in self._nodes]
        for call in self._graph.calls:
            operator = operator_of(call)
            if operator is None:
                continue
            outside = set().union(*(inputs for k, inputs in enumerate(read) if k not in call.nodes), self._graph.outputs)
            seen = outside.intersection(call.nodes)
            if len(seen) == 1:
                found[seen.pop()] = operator
        return found

    def _live(self) -> set[int]:
        """The values that outputs depend on."""
        live = {*self._graph.outputs}
        for index in range(len(self._nodes) - 1, -1, -1):
            if index in live:
                live.update(self._calls[index][1] if index in self._calls else self._nodes[index].inputs)
        return live

    # ---- operators ----
    def _add(self, op: str, operands: Sequence[str], **attributes: Any) -> str:
        name = f"value_{len(self._operators)}"
        self._operators.append(helper.make_node(op, [*operands], [name], **attributes))
        return name

    def _constant(self, values: np.ndarray) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))
        return name

    def _call(self, op: str, operands: Sequence[int], attributes: Mapping[str, Any]) -> str:
        return self._add(op, [self._names[index] for index in operands], **attributes)

    def _node(self, index: int, node: Node) -> str:
        """The name of a node's value; numbers that depend on sizes are Formulas."""
        x = [self._names[i] for i in node.inputs]
        op, attrs = node.op, node.attrs
        if op in ELEMENTWISE:
            return self._add(ELEMENTWISE[op], x)
        if op in SAME:
            return x[SAME[op]]
        if op in REDUCTIONS:
            return self._add(REDUCTIONS[op], [x[0], self._constant(np.array(attrs["axes"], np.int64))], keepdims=0)
        truths = bool(node.inputs) and self._nodes[node.inputs[0]].dtype.name == "bool"
        if op in (LOGICAL if truths else BITWISE):
            return self._add((LOGICAL if truths else BITWISE)[op], x)
        if op == "constant":
            return self._constant_value(attrs["value"], node, index)
        rule = _RULES.get(op)
        if rule is None:
            raise ExportError(f"onnx.export: {op}{self._at(index)} has no form in ONNX that genesis knows")
        if op not in _OF_SIZES and _varies(attrs):
            raise ExportError(f"onnx.export: {op}{self._at(index)} has no form in ONNX where a dynamic size decides on it")
        return rule(self, index, node, x)

    def _view(self, index: int, node: Node, x: list[str]) -> str:
        base = self._sizes.varying(node.inputs[0], self._nodes[node.inputs[0]]).shape
        varies = _varies((base, node.shape, node.attrs))
        steps = self._dynamic.steps(index) if varies else steps_of(base, layout_in(node))
        if steps is None:  # elements one by one
            flat = self._add("Reshape", [x[0], self._constant(np.array([-1], np.int64))])
            return self._add("Gather", [flat, self._dynamic.offsets(node.attrs)], axis=0)
        for step in steps:
            operands = [self._dynamic.vector(one) if varies else self._constant(one) for one in step.operands]
            x = [self._add(step.op, [*x, *operands], **dict(step.attributes))]
        return x[0]

    def _put(self, index: int, node: Node, x: list[str]) -> str:
        flat = self._constant(np.array([-1], np.int64))
        whole, part = (self._add("Reshape", [one, flat]) for one in x)
        if _varies(node.attrs):
            offsets = self._add("Reshape", [self._dynamic.offsets(node.attrs), flat])
        else:
            offsets = self._constant(offsets_of(layout_in(node)).reshape(-1))
        summed = {"reduction": "add"} if node.op == "put_sum" else {}
        written = self._add("ScatterElements", [whole, offsets, part], axis=0, **summed)
        return self._add("Reshape", [written, self._dynamic.vector(node.shape)])

    def _check_index(self, index: int, node: Node, x: list[str]) -> str:
        if not node.attrs["wrap"]:
            return x[0]
        zero, extent = (self._constant_value(n, node, index) for n in (0, node.attrs["extent"]))
        return self._add("Where", [self._add("Less", [x[0], zero]), self._add("Add", [x[0], extent]), x[0]])

    def _argmax(self, index: int, node: Node, x: list[str]) -> str:
        axes = node.attrs["axes"]
        if len(axes) != 1:
            raise ExportError(f"onnx.export: {node.op} over several axes{self._at(index)} has no form in ONNX")
        at = self._add("ArgMax" if node.op == "argmax" else "ArgMin", x, axis=axes[0], keepdims=0)
        return self._add("Cast", [at], to=self._type(node.dtype, index)) if node.dtype is not int64 else at

    def _constant_value(self, value: Any, node: Node, index: int) -> str:
        kind = self._type(node.dtype, index)
        if isinstance(value, Formula):
            return self._dynamic.scalar(value, kind)
        return self._constant(np.array(value, node.dtype.numpy))

    def _iota(self, index: int, node: Node, x: list[str]) -> str:
        if _varies(node.shape):
            return self._add("Cast", [self._dynamic.range(node.shape[0])], to=self._type(node.dtype, index))
        return self._constant_value(range(node.shape[0]), node, index)

    def _scalar(self, index: int, node: Node, x: list[str]) -> str:
        slot = node.attrs["slot"]
        return self._constant_value(self._sizes.formulas.get((-1, slot), self._graph.numbers[slot]), node, index)

    # ---- messages ----
    def _type(self, dtype: DType, index: int | None) -> int:
        try:
            return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype.numpy)))
        except (KeyError, ValueError) as problem:
            raise ExportError(f"onnx.export: {dtype.name}{self._at(index)} has no form in ONNX") from problem

    def _at(self, index: int | None) -> str:
        line = short(self._graph.lines[index]) if index is not None else ""
        return f" at {line}" if line else ""


def _varies(value: Any) -> bool:
    """Whether a number in a shape or among attributes depends on sizes."""
    if isinstance(value, Formula):
        return True
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ()
    return any(map(_varies, items))


_OF_SIZES = {"view", "put", "put_sum", "check_index", "scalar"}  # rules of nodes whose attributes may follow from sizes
_RULES: dict[str, Callable[[_Model, int, Node, list[str]], str]] = {
    "view": _Model._view, "put": _Model._put, "put_sum": _Model._put,
    "matmul": lambda model, index, node, x: model._add("MatMul", x),
    "cat": lambda model, index, node, x: model._add("Concat", x, axis=node.attrs["dim"]),
    "gather": lambda model, index, node, x: model._add("GatherElements", x, axis=node.attrs["dim"]),
    "check_index": _Model._check_index, "argmax": _Model._argmax, "argmin": _Model._argmax, "iota": _Model._iota,
    "scalar": _Model._scalar,
    "cast": lambda model, index, node, x: model._add("Cast", x, to=model._type(node.dtype, index)),
    "rsqrt": lambda model, index, node, x: model._add("Reciprocal", [model._add("Sqrt", x)]),
    "ne": lambda model, index, node, x: model._add("Not", [model._add("Equal", x)]),
}
