"""Write the stubs: what type checkers and editors see of names that genesis makes from its operation table.

    python tools/stubs.py

`genesis/tensor/methods.pyi` holds the methods of Tensor, which `genesis/tensor/handle.py` inherits under TYPE_CHECKING. The
others stand beside a module of the same name and repeat what it imports, together with its generated functions: those of rows
once, in `genesis.ops`.
"""

from __future__ import annotations

import ast
import collections.abc
import functools
import importlib
import inspect
import operator
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import numpy as np
import numpy.typing

from genesis import ops
from genesis.functions.public_names import function_names
from genesis.ir.graph import Value
from genesis.ops import OPERATIONS, Operation, layout
from genesis.ops import signatures as of_rows
from genesis.tensor.handle import Tensor

ROOT = Path(__file__).resolve().parent.parent
MODULES = (
    "genesis", "genesis.autograd", "genesis.fft", "genesis.linalg", "genesis.nn.functional", "genesis.ops", "genesis.special",
)
METHODS = "genesis.tensor.methods"
PUBLIC_NAMES = "genesis.functions.public_names"  # which imports what stubs describe: mypy would go in a circle
WIDTH = 128
SHADOWED = {"bool": "Bool", "float": "Float", "int": "Int", "type": "Type"}  # dtypes and methods have these names
OPERAND = "Operand"  # a Tensor, or a number in its place

# Rows whose results depend on a setting: its name, the result without it, the result with it.
CHOICES: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(("max", "min"), ("dim", "Value", "Extremum")),
    **dict.fromkeys(("median", "nanmedian"), ("dim", "Value", "Sorted")),
    **{f"{kind}max_pool{n}d": ("return_indices", "Value", "tuple[Value, Value]")
       for kind in ("", "adaptive_") for n in (1, 2, 3)},
    "lu": ("get_infos", "Factored", "FactoredInfo"),
}
# Functions that are written out, likewise.
WRITTEN = {
    "nonzero": ("as_tuple", "Tensor", "tuple[Tensor, ...]"),
    "stride": ("dim", "Shape", "int"),
    "type": ("dtype", "str", "Tensor"),
}
# Results that a definition leaves open.
RESULTS = {
    **dict.fromkeys(("sort", "topk", "cummax", "cummin", "kthvalue"), "Sorted"),
    **dict.fromkeys(("std_mean", "var_mean"), "tuple[Value, Value]"),
    "aminmax": "Extrema", "slogdet": "SignAndLog", "linalg_slogdet": "SignAndLog",
    "triangular_solve": "Triangular", "linalg_qr": "QR", "qr": "QR",
    "eig": "Eigen", "eigh": "Eigen", "linalg_svd": "SVD", "svd": "Transposed", "cholesky_ex": "Cholesky",
    "lu_factor_ex": "FactoredInfo",
    "lu_factor": "Factored", "lu_unpack": "PLU", "linalg_lu": "PLU", "solve_ex": "Solved", "inv_ex": "Inverse",
    "frexp": "Parts", "geqrf": "Reflected", "ldl_factor": "Indefinite", "ldl_factor_ex": "IndefiniteInfo",
}
ALIASES = [(module, name, getattr(importlib.import_module(module), name)) for module, name in (
    ("genesis.ir.annotations", "Extents"), ("genesis.runtime.devices", "DeviceLike"), ("genesis.tensor.handle", "Operand"),
    ("genesis.functions.indexing", "Index"), ("numpy.typing", "ArrayLike"), ("numpy.typing", "DTypeLike"),
)]
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = ("abs", "invert", "neg", "pos")


class Stub:
    """The text of one stub: its definitions, and what these need from elsewhere."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.imports: dict[str, set[str]] = {}
        self.exports: dict[str, set[str]] = {}
        self.results: dict[str, type] = {}  # named tuples of Tensors
        self.lines: list[str] = []

    def need(self, module: str, name: str) -> str:
        if module != self.module:
            self.imports.setdefault(module, set()).add(name)
        return name

    def written(self, kind: Any, operand: bool = False) -> str:
        """A type as a stub spells it; a Value is a Tensor, or with `operand` a number as well."""
        if kind in (None, type(None)):
            return "None"
        if kind is ...:
            return "..."
        if kind is inspect.Parameter.empty or kind is Any:
            return self.need("typing", "Any")
        if isinstance(kind, str):
            return kind
        if isinstance(kind, typing.TypeVar | typing.ParamSpec):
            return self.need(self.home_of(kind.__name__, kind), kind.__name__)
        for module, name, alias in ALIASES:
            if kind == alias:
                return self.need(module, name)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (types.UnionType, typing.Union):
            members = dict.fromkeys(self.written(a, operand) for a in arguments)
            return " | ".join(m for m in members if OPERAND not in members or m not in ("Bool", "Float", "Int"))
        if origin is Literal:
            return f"{self.need('typing', 'Literal')}[{', '.join(map(repr, arguments))}]"
        if origin is collections.abc.Callable:
            parameters, result = arguments
            inner = "..." if parameters is ... else f"[{', '.join(map(self.written, parameters))}]"
            return f"{self.need('collections.abc', 'Callable')}[{inner}, {self.written(result)}]"
        if origin is not None:
            return f"{self.written(origin)}[{', '.join(self.written(a) for a in arguments)}]"
        if kind is Value or kind is Tensor:
            tensor = self.need("genesis.tensor.handle", "Tensor")
            return self.need("genesis.tensor.handle", OPERAND) if operand and kind is Value else tensor
        if kind is types.ModuleType:  # which calls itself builtins.module
            return self.need("types", "ModuleType")
        if kind.__module__ == "builtins":
            return self.need("builtins", f"{kind.__name__} as {SHADOWED[kind.__name__]}").split()[-1] if (
                kind.__name__ in SHADOWED) else kind.__name__
        if kind.__module__ == "numpy":
            self.imports.setdefault("numpy", set())
            return f"np.ndarray[{self.need('typing', 'Any')}, Any]" if kind is np.ndarray else f"np.{kind.__name__}"
        if issubclass(kind, tuple) and (kind.__module__.startswith("genesis.ops.") or kind.__module__ == self.module):
            self.results[kind.__name__] = kind
            return self.need(self.module if kind.__module__ == self.module else METHODS, kind.__name__)
        return self.need(self.home_of(kind.__name__, kind), kind.__name__)

    def export(self, name: str, module: str, original: str) -> None:
        """Show `original` of a module as `name`."""
        if name == original:
            self.exports.setdefault(module, set()).add(name)
        else:
            self.lines.append(f"{name} = {self.need(module, original)}")

    @staticmethod
    def home_of(name: str, value: Any) -> str:
        assert getattr(sys.modules[value.__module__], name, None) is value, f"{name} is not in {value.__module__}"
        return value.__module__

    def signature(self, function: Signature, *, method: bool = False, result: str | None = None) -> tuple[list[str], str]:
        """(["x: Tensor", "dim: int = 0"], ") -> Tensor:")."""
        parts: list[str] = []
        star = False
        for place, parameter in enumerate(function.parameters):
            if parameter.kind is parameter.KEYWORD_ONLY and not star:
                parts.append("*")
            star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
            if method and not place:
                parts.append("self")
                continue
            mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            text = f"{mark}{parameter.name}: {self.written(parameter.annotation, parameter.name in function.operands)}"
            parts.append(text if parameter.default is parameter.empty else f"{text} = {_default(parameter.default)}")
        return parts, f") -> {result or self.written(function.result)}:"

    def define(
        self, name: str, variants: list[Signature], doc: str, *, method: bool = False, result: str | None = None
    ) -> None:
        """Add a function, of one signature or overloaded."""
        indent = "    " if method else ""
        for variant in variants:
            if len(variants) > 1:
                self.lines.append(f"{indent}@{self.need('typing', 'overload')}")
            last = variant is variants[-1]
            head = _wrapped(f"{indent}def {name}(", *self.signature(variant, method=method, result=result))
            if doc and last:
                self.lines += [head, f"{indent}    {_docstring(doc, indent)}"]
            else:
                self.lines.append(f"{head} ...")

    def tuples(self, kinds: Iterable[type]) -> list[str]:
        """Named tuples of Tensors."""
        lines = []
        for kind in sorted(kinds, key=lambda kind: kind.__name__):
            lines.append(f"class {kind.__name__}({self.need('typing', 'NamedTuple')}):")
            lines += [f"    {_docstring(kind.__doc__ or '', '')}", ""]
            lines += [f"    {field}: {self.need('genesis.tensor.handle', 'Tensor')}" for field in kind.__annotations__] + [""]
        return lines

    def head(self) -> list[str]:
        lines = ["# Written by tools/stubs.py from the operation table: do not edit.", ""]
        plain = {"numpy": "import numpy as np"}
        lines += [text for module, text in plain.items() if module in self.imports]
        names = {module: {f"{n} as {n}" for n in shown} for module, shown in self.exports.items()}
        for module, needed in self.imports.items():
            names[module] = names.get(module, set()) | (needed - self.exports.get(module, set()))
        return lines + imported({module: found for module, found in names.items() if module not in plain})


class Signature(NamedTuple):
    """A function's parameters with their types evaluated, those that numbers may take the place of, and its result."""

    parameters: list[inspect.Parameter]
    result: Any
    operands: frozenset[str] = frozenset()


def _default(value: Any) -> str:
    if value is None or (isinstance(value, bool | int | float | str) and value == value and abs_finite(value)):
        return repr(value)
    return f"({', '.join(map(_default, value))}{',' * (len(value) == 1)})" if type(value) is tuple else "..."


def abs_finite(value: Any) -> bool:
    return not isinstance(value, float) or abs(value) != float("inf")


def _wrapped(start: str, parts: Iterable[str], end: str) -> str:
    """Parts between commas, on one line or several of at most WIDTH."""
    text = f"{start}{', '.join(parts)}{end}"
    if len(text) + 4 <= WIDTH:
        return text
    indent = " " * (len(start) - len(start.lstrip()))
    kept = ", ".join(part.replace(" ", "\0") for part in parts)  # no line breaks inside a part
    inner = textwrap.fill(kept, WIDTH - 1, initial_indent=f"{indent}    ", subsequent_indent=f"{indent}    ",
                          break_long_words=False, break_on_hyphens=False)
    return f"{start}\n{inner},\n{indent}{end}".replace("\0", " ")


def imported(names: Mapping[str, Iterable[str]]) -> list[str]:
    """Import statements, those of other libraries first."""
    lines = []
    for module in sorted(filter(names.get, names), key=lambda module: (module.partition(".")[0] == "genesis", module)):
        line = f"from {module} import {', '.join(sorted(names[module]))}"
        lines.append(line if len(line) <= WIDTH else _wrapped(f"from {module} import (", sorted(names[module]), ")"))
    return lines


def _docstring(doc: str, indent: str) -> str:
    """The first sentence of a function's documentation."""
    text = " ".join(inspect.cleandoc(doc).split("\n\n")[0].split())
    return f'"""{textwrap.shorten(text, WIDTH - 12 - len(indent), placeholder=" ..")}"""'.replace("\\", "\\\\")


def evaluated(annotation: Any, scope: Mapping[str, Any]) -> Any:
    """The type that an annotation in a file of that scope names, which may import NumPy's for annotations alone, and defer
    classes."""
    if not isinstance(annotation, str):
        return annotation
    classes = {name: getattr(importlib.import_module(value.__module__), name) for name, value in scope.items()
               if isinstance(value, types.FunctionType) and name in annotation and name == value.__name__ and name[0].isupper()}
    return eval(annotation, {**vars(numpy.typing), **scope, **classes})


def signature_of(function: Callable[..., Any]) -> Signature:
    """The signature of a function that is written out."""
    scope = inspect.unwrap(function).__globals__
    signature = inspect.signature(function)
    return Signature([p.replace(annotation=evaluated(p.annotation, scope)) for p in signature.parameters.values()],
                     evaluated(signature.return_annotation, scope))


def signatures(function: Callable[..., Any]) -> list[Signature]:
    """Its overloads, or its one signature."""
    plain = inspect.unwrap(function)
    if function.__name__ in WRITTEN:
        return chosen(signature_of(function), WRITTEN[function.__name__], plain.__globals__)
    return [signature_of(f) for f in typing.get_overloads(plain) or [function]]


def row_signatures(row: Operation) -> list[Signature]:
    """The signatures of the function that a row of the operation table makes."""
    define = inspect.unwrap(row.define)
    scope = vars(layout) | define.__globals__  # rows of views have the parameters of their rules
    parameters = []
    for p in of_rows.signature_of(row).parameters.values():
        kind = Value if p.annotation is p.empty and p.default is p.empty else evaluated(p.annotation, scope)
        parameters.append(p.replace(annotation=kind, kind=p.KEYWORD_ONLY if p.name in row.numbers_between else p.kind))
    operands = frozenset() if len(row.operands) == 1 else of_rows.operand_names(row)
    result = evaluated(of_rows.signature_of(row).return_annotation, scope)
    result = Value if result is inspect.Signature.empty else result
    if row.name in CHOICES:
        return chosen(Signature(parameters, result, operands), CHOICES[row.name], scope)
    if result is Any:
        result = evaluated(RESULTS[row.name], scope)
    return [Signature(parameters, result, operands)]


def chosen(signature: Signature, choice: tuple[str, str, str], scope: Mapping[str, Any]) -> list[Signature]:
    """A signature where the deciding setting is left out, and where it is given."""
    decider, *results = choice
    return [Signature(_settled(signature.parameters, decider, bool(given)), evaluated(result, scope), signature.operands)
            for given, result in enumerate(results)]


def _settled(parameters: list[inspect.Parameter], name: str, given: bool) -> list[inspect.Parameter]:
    """The parameters where that of the name is given (an axis, a flag that is set), or is not."""
    at = [p.name for p in parameters].index(name)
    setting = parameters[at]
    if setting.default is None:
        named = [a for a in get_args(setting.annotation) if a is not type(None)]
        kind: Any = functools.reduce(operator.or_, named) if given else None
    else:
        kind = Literal[True] if given else Literal[False]
    setting = setting.replace(annotation=kind, default=setting.empty if given else setting.default)
    rest = parameters[at + 1 :]
    if given and any(p.default is not p.empty for p in parameters[:at]):  # what has no default may stand behind others by name
        return [*parameters[:at], *rest, setting.replace(kind=setting.KEYWORD_ONLY)]
    return [*parameters[:at], setting, *rest]


def row_of(name: str, function: Any) -> Operation | None:
    """The row that a function was made of."""
    row = OPERATIONS.get(getattr(function, "__name__", name))
    made = row is not None and callable(function) and inspect.unwrap(function) is inspect.unwrap(row.define)
    return row if made else None


def variants_of(row: Operation, function: Callable[..., Any]) -> list[Signature]:
    """The signatures of a function that is made of a row, with what it takes beside the row's parameters."""
    more = [p.replace(annotation=bool) for p in inspect.signature(function).parameters.values()]
    more = [p for p in more if p.name not in of_rows.signature_of(row).parameters]
    return [v._replace(parameters=[*v.parameters, *more]) for v in row_signatures(row)]


# ---- the methods of Tensor ----


def methods_stub() -> str:
    """`genesis/tensor/methods.pyi`."""
    stub = Stub(METHODS)
    own = vars(importlib.import_module("genesis.tensor.handle"))["Tensor"]
    written = _names_in_class(ROOT / "genesis/tensor/handle.py", "Tensor")
    for name, value in sorted(vars(own).items()):
        if name not in written and (not name.startswith("_") or name.startswith("__")):
            _add_method(stub, name, value)
    body, every = stub.lines, Stub("")  # functions that are no methods return named tuples as well
    for variant in (variant for name in (*CHOICES, *RESULTS) for variant in row_signatures(OPERATIONS[name])):
        every.written(variant.result)
    tuples = stub.tuples(every.results.values())
    stub.need("typing", "Self")
    lines = [*stub.head(), "", *tuples, "class Methods:", '    """The methods of Tensor."""', "", *body]
    return "\n".join(lines) + "\n"


def _names_in_class(path: Path, name: str) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next(s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == name).body
    return {s.name for s in body if isinstance(s, ast.FunctionDef)}


SKIPPED = {"__annotations__", "__array_priority__", "__dict__", "__doc__", "__module__", "__weakref__", "__firstlineno__",
           "__static_attributes__", "__hash__"}


def _add_method(stub: Stub, name: str, value: Any) -> None:
    if name in SKIPPED:
        if name == "__hash__":
            stub.lines.append(f"    def __hash__(self) -> {stub.written(int)}: ...")
        return
    if isinstance(value, property):
        assert value.fget is not None
        kind = stub.written(signature_of(value.fget).result)
        stub.lines.append("    @property")
        stub.define(name, [signature_of(value.fget)], value.__doc__ or "", method=True)
        if value.fset is not None:
            stub.lines += [f"    @{name}.setter", f"    def {name}(self, value: {kind}) -> None: ..."]
        return
    if not callable(value):
        raise TypeError(f"Tensor.{name} is a {type(value).__name__}")
    sign = name[2:-2] if name.startswith("__") and name.endswith("__") else ""
    if sign in UNARY:
        stub.lines.append(f"    def {name}(self) -> Tensor: ...")
    elif sign in ("eq", "ne"):
        stub.lines.append(f"    def {name}(self, other: object, /) -> Tensor: ...  # type: ignore[override]")
    elif sign and getattr(value, "__globals__", {}).get("__name__") == "genesis.functions.methods.table":
        kind = "Self" if sign[0] == "i" and sign != "invert" else "Tensor"
        stub.lines.append(f"    def {name}(self, other: Operand, /) -> {kind}: ...")
    elif (row := row_of(name, value)) is not None:
        stub.define(name, row_signatures(row), value.__doc__ or "", method=True)
    elif name.endswith("_") and not sign and _open(value):
        base = getattr(Tensor, name[:-1], None) or OPERATIONS[name[:-1]]
        row = base if isinstance(base, Operation) else row_of(name[:-1], base)
        variants = (row_signatures(row) if row else signatures(base))[:1]
        stub.define(name, variants, value.__doc__ or "", method=True, result="Self")
    else:
        stub.define(name, signatures(value), value.__doc__ or "", method=True)


def _open(function: Callable[..., Any]) -> bool:
    """Whether a function takes what another of the same name takes."""
    return any(p.name in ("args", "arguments") for p in inspect.signature(function).parameters.values())


# ---- modules ----


def module_stub(module: types.ModuleType, names: Iterable[str]) -> str:
    """The stub of a module: its imports of public names, its own definitions, and functions made of rows."""
    path = Path(module.__file__ or "")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    stub = Stub(module.__name__)
    imports, written = _imports_of(tree), {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    for name in sorted(names):
        value = getattr(module, name)
        if name in WRITTEN:
            stub.define(name, signatures(value), value.__doc__ or "")
        elif name in imports:
            stub.export(name, *imports[name])
        elif module is not ops and is_made_of_row(value):
            stub.export(name, "genesis.ops", value.__name__)
        elif (row := row_of(name, value)) is not None:
            stub.define(name, variants_of(row, value), value.__doc__ or "")
        elif isinstance(value, types.ModuleType):
            stub.export(name, value.__name__.rpartition(".")[0], name)
        elif isinstance(value, types.FunctionType) and name not in written and (
            (found := _origin(name, value)) and found[1] == name and found[0] != PUBLIC_NAMES
        ):
            stub.export(name, *found)
        elif isinstance(value, types.FunctionType):
            base = getattr(module, name[:-1], None) if name.endswith("_") and _open(value) else None
            row = row_of(name, base)
            variants = row_signatures(row)[:1] if row else signatures(base or value)
            if name.endswith("_"):
                variants = [v._replace(operands=v.operands - {v.parameters[0].name}) for v in variants]
            stub.define(name, variants, value.__doc__ or "")
        elif isinstance(value, type):
            found = _origin(value.__name__, value)
            assert found is not None, name
            stub.export(name, *found)
        else:
            stub.lines.append(f"{name}: {'None' if value is None else stub.written(type(value))}")
    tuples = stub.tuples(kind for kind in stub.results.values() if kind.__module__ == stub.module)
    return "\n".join([*stub.head(), "", *tuples, *stub.lines]) + "\n"


def is_made_of_row(value: object) -> bool:
    """Whether it is a function without a file of its own that `genesis.ops` shows."""
    return isinstance(value, types.FunctionType) and _origin(value.__name__, value) is None and (
        value.__name__ in public_names(ops) and getattr(ops, value.__name__) is value)


def public_names(module: types.ModuleType) -> set[str]:
    """What a stub describes. `genesis` and `genesis.ops` find functions of rows, and those that write into an argument."""
    found = {*module.__all__}
    if module.__name__ in ("genesis", "genesis.ops"):
        found |= {"__version__"} & {*vars(module)} | function_names() | {n for n in vars(Tensor) if n[0] != "_" == n[-1]}
    return found


def _imports_of(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Where the names come from that a file imports."""
    return {alias.asname or alias.name: (s.module or "", alias.name)
            for s in tree.body if isinstance(s, ast.ImportFrom) for alias in s.names}


def _origin(name: str, value: Any) -> tuple[str, str] | None:
    """The module in whose file a function or class is written, and its name there."""
    module = sys.modules.get(getattr(value, "__module__", ""))
    own = getattr(value, "__name__", name)
    code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
    is_made = module is None or (code is not None and code.co_filename != getattr(module, "__file__", None))
    return None if is_made or getattr(module, own, None) is not value else (module.__name__, own)


def stubs() -> dict[Path, str]:
    """The text of every stub, by its file."""
    texts = {ROOT / "genesis/tensor/methods.pyi": methods_stub()}
    for name in MODULES:
        module = importlib.import_module(name)
        path = Path(module.__file__ or "").with_suffix(".pyi")
        texts[path] = module_stub(module, public_names(module))
    return texts


def main() -> int:
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
