"""Results of several names, as PyTorch's `torch.return_types`: tuples whose class is named for the operation."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, ClassVar, Self, TypeVar

from genesis.ir.library import Library

_Named = TypeVar("_Named")

_OPERATIONS = {
    "values indices": "cummax cummin kthvalue max median min mode nanmedian sort topk",
    "min max": "aminmax",
    "mantissa exponent": "frexp",
    "a tau": "geqrf",
    "hist bin_edges": "histogram histogramdd",
    "Q R": "qr linalg_qr",
    "U S V": "svd",
    "U S Vh": "linalg_svd",
    "P L U": "linalg_lu lu_unpack",
    "LU pivots": "linalg_lu_factor",
    "LU pivots info": "linalg_lu_factor_ex",
    "LD pivots": "linalg_ldl_factor",
    "LD pivots info": "linalg_ldl_factor_ex",
    "L info": "linalg_cholesky_ex",
    "inverse info": "linalg_inv_ex",
    "result info": "linalg_solve_ex",
    "sign logabsdet": "slogdet linalg_slogdet",
    "eigenvalues eigenvectors": "linalg_eig linalg_eigh",
    "solution residuals rank singular_values": "linalg_lstsq",
    "solution cloned_coefficient": "triangular_solve",
}
_WITHOUT_OUT = ("histogramdd",)


class ReturnType(tuple[Any, ...]):
    """A tuple with named members, constructed from them or from one sequence of them."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *members: Any) -> Self:
        if members and isinstance(members[0], tuple | list):
            members = tuple(members[0])
        if len(members) != len(cls._fields):
            want, met = len(cls._fields), len(members)
            raise TypeError(f"{cls._shown()}() takes a {want}-sequence ({met}-sequence given)")
        return tuple.__new__(cls, members)

    @classmethod
    def _shown(cls) -> str:
        return f"{Library.name}.return_types.{cls.__name__}"

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        members = ",\n".join([f"{name}={member!r}" for name, member in self._asdict().items()])
        return f"{self._shown()}(\n{members})"


def _class(name: str, fields: tuple[str, ...]) -> type[ReturnType]:
    getters = {field: property(itemgetter(k), doc=f"Member {k}.") for k, field in enumerate(fields)}
    counts = {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
    text = f"The result of `{name}`: {', '.join(fields)}."
    members = {"__slots__": (), "__module__": __name__, "__doc__": text, "_fields": fields, "__match_args__": fields}
    return type(name, (ReturnType,), {**members, **counts, **getters})


_FIELDS = {
    name + suffix: tuple(fields.split()) for fields, names in _OPERATIONS.items() for name in names.split()
    for suffix in (("",) if name in _WITHOUT_OUT else ("", "_out"))
}
_made: dict[str, type[ReturnType]] = {}


def return_type(name: str) -> type[ReturnType] | None:
    """The class of an operation's result, made when it is first asked for; None if there is none."""
    if name in _FIELDS and name not in _made:
        _made.setdefault(name, _class(name, _FIELDS[name]))  # another thread may have been quicker
    return _made.get(name)


def __getattr__(name: str) -> Any:
    """The class of a result, where pickle looks for it; or `all_return_types`, the list of them."""
    found = [*map(return_type, sorted(_FIELDS))] if name == "all_return_types" else return_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def named(operation: str, result: _Named) -> _Named:
    """A named tuple as the class of `operation` or `linalg_operation`, if there is one; anything else unchanged."""
    if not hasattr(result, "_fields"):
        return result
    kind = return_type(operation) or return_type(f"linalg_{operation}")
    members: tuple[Any, ...] = tuple(result)  # type: ignore[arg-type]
    if kind is None or kind._fields != result._fields:  # as `lu`, beside `linalg.lu`
        return members  # type: ignore[return-value]
    return kind(*members)  # type: ignore[return-value]


def written_to(result: tuple[Any, ...], targets: Iterable[Any]) -> tuple[Any, ...]:
    """The `targets` of `out=`, as a tuple of the class of `result`."""
    kind = return_type(f"{type(result).__name__}_out") if isinstance(result, ReturnType) else None
    return tuple(targets) if kind is None else kind(*targets)
