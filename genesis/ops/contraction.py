"""Matrix products: one primitive, `matmul`, of operands (batch.., m, k) and (batch.., k, n) with equal batch extents.

Its attribute `only`, for example "n<=m", is a promise about the products a[m, k] * b[k, n]: those that violate it are zeros, or
belong to elements [m, n] of the result that nobody reads. Kernels may skip them.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import broadcast_shapes, numel
from genesis.ops.complex_primitives import conjugate
from genesis.ops.reduction import sum
from genesis.ops.registry import Shared, alike, cast, composite, expand, primitive, promoted
from genesis.ops.views import diagonal_value, permute_value, reshape_value


def swapped(x: Value) -> Value:
    """The last two axes exchanged."""
    return permute_value(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Value) -> Value:
    """The conjugate transpose of the last two axes."""
    return conjugate(swapped(x))


def product(a: Value, b: Value, only: str = "", wide: bool = False) -> Value:
    """The matmul node of two matching operands. With `wide`, 16-bit operands give a float32 result."""
    dtype = a.dtype.compute if wide else a.dtype
    return a.graph.add("matmul", (a, b), (*a.shape[:-1], b.shape[-1]), dtype, {"only": only} if only else {})


def exchanged(only: str, axes: str) -> str:
    """The promise `only` after two of its axes exchange their names."""
    return only.translate(str.maketrans(axes, axes[::-1]))


def _gradients(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    """The operands' cotangents. Elements that the promise makes zero need no gradient; unread ones send none."""
    only, g = y.node.attrs.get("only", ""), cast(g, a.dtype)
    return product(g, swapped(b), exchanged(only, "nk")), product(swapped(a), g, exchanged(only, "mk"))


def _reference(node: Node, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wide = node.dtype.compute.numpy
    return np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False)).astype(node.dtype.numpy, copy=False)


primitive("matmul", "contract", grad=_gradients, reference=_reference)


@composite("matmul", 2, operator="matmul", ref=np.matmul, autocast="low", namespace="linalg", takes_complex=True)
def matmul(input: Value, other: Value) -> Value:
    """The matrix product: vectors and matrices as NumPy's `@`, leading axes broadcast.

    Args:
        input: (.., m, k), or (k,).
        other: (.., k, n), or (k,), of the same dtype.

    Returns:
        (.., m, n), without the axis that a vector lacks. Raises ValueError where the inner extents differ, TypeError where
        the dtypes do.

    >>> a = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> genesis.matmul(a, genesis.tensor([1.0, -1.0]))
    tensor([-1., -1.])
    """
    return multiplied(input, other)


def multiplied(input: Value, other: Value, only: str = "", wide: bool = False) -> Value:
    """`matmul` with the promise `only`; `wide` as in `product`."""
    a, b = alike("matmul", input, other)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul: operands must have an axis at least, got shapes {a.shape} and {b.shape}")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        want = f"(.., {a.shape[-1]}, n)" if b.ndim > 1 else f"({a.shape[-1]},)"
        raise ValueError(f"matmul: inner extents differ: {a.shape} @ {b.shape}; want {want} on the right")
    left, right = a, b
    if left.ndim == 1:
        left = reshape_value(left, (1, *left.shape))
    if right.ndim == 1:
        right = reshape_value(right, (*right.shape, 1))
    rows, columns = left.shape[-2], right.shape[-1]
    if right.ndim == 2 and left.ndim > 2 and not only:
        y = product(reshape_value(left, (numel(left.shape[:-1]), inner)), right, wide=wide)
        y = reshape_value(y, (*left.shape[:-1], columns))
    else:
        batch = broadcast_shapes("matmul", left.shape[:-2], right.shape[:-2])
        y = product(expand(left, (*batch, rows, inner)), expand(right, (*batch, inner, columns)), only, wide)
    shape = y.shape
    if b.ndim == 1:
        shape = shape[:-1]
    if a.ndim == 1:
        shape = shape[:-2] + shape[-1:] if b.ndim > 1 else ()
    return reshape_value(y, shape)


@composite("linear", 3, method=False, autocast="low", namespace="nn.functional", takes_complex=True)
def linear(input: Value, weight: Value, bias: Value | None = None) -> Value:
    """`input @ weight.T + bias` for `input` (.., in), `weight` (out, in) and `bias` (out,).

    Raises ValueError where the last extents of `input` and `weight` differ.

    >>> genesis.nn.functional.linear(genesis.ones(2, 3), genesis.ones(1, 3), genesis.ones(1))
    tensor([[4.],
            [4.]])
    """
    if weight.ndim != 2 or input.shape[-1:] != weight.shape[1:]:
        raise ValueError(f"linear: input {input.shape} does not fit weight {weight.shape}; want input (.., {weight.shape[-1]})")
    if bias is None:
        return matmul(input, swapped(weight))
    y = multiplied(input, swapped(weight), wide=input.dtype.category == 2)  # rounded once, after the bias
    return cast(y + cast(bias, y.dtype), promoted(input, bias)[0].dtype)


@composite("bilinear", 4, method=False, autocast="widest", namespace="nn.functional")
def bilinear(input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """input1 @ weight[k] @ input2 + bias[k]: (.., a), (.., b) and `weight` (out, a, b) -> (.., out).

    Raises ValueError where the extents differ.
    """
    fits = (*input1.shape[-1:], *input2.shape[-1:]) == weight.shape[1:] and input1.shape[:-1] == input2.shape[:-1]
    if weight.ndim != 3 or not fits:
        raise ValueError(f"bilinear: inputs {input1.shape} and {input2.shape} do not fit weight {weight.shape}")
    lead = input1.shape[:-1]
    out, a, b = weight.shape
    rows = reshape_value(input1, (numel(lead), a))
    mixed = product(rows, reshape_value(permute_value(weight, (1, 0, 2)), (a, out * b)))
    pairs = product(reshape_value(mixed, (numel(lead), out, b)), reshape_value(input2, (numel(lead), b, 1)))
    y = reshape_value(pairs, (*lead, out))
    return y if bias is None else y + bias


Names = tuple[str, ...]  # axis names: letters; the axes of "..." are .., ".1", ".0"
_LETTERS: dict[Any, str] = {...: "...", **dict(enumerate(ascii_uppercase + ascii_lowercase))}


# ---- einsum (Einstein, 1916): diagonals, then sums, then matrix products of pairs ----
def _given(equation: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The equation and the operands of a call in either form."""
    if isinstance(equation, str):
        return equation, list(operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands)
    given = [equation, *operands]
    result = [[given.pop()]] if len(given) % 2 else []
    sides = [given[1::2], *result]
    unknown = [name for terms in sides for term in terms
               for name in (term if isinstance(term, Sequence) else [term]) if name not in _LETTERS]
    if unknown:
        raise ValueError(f"einsum: axes are named {unknown}; want numbers from 0 to 51, or ...")
    return "->".join([",".join(["".join([_LETTERS[name] for name in term]) for term in terms]) for terms in sides]), given[::2]


def _rearranged(equation: Any, *operands: Any) -> Shared:
    """The only operand and its diagonals, permuted, if nothing is summed."""
    equation, values = _given(equation, operands)
    if len(values) != 1:
        return None
    (names,), result = _parsed(equation, values)
    if {*names} != {*result} or len({*zip(names, values[0].shape, strict=True)}) > len(result):
        return None
    pairs, names = _repeated(names)
    return values[0], [*[("diagonal", 0, i, j) for i, j in pairs], ("permute", tuple([names.index(name) for name in result]))]


@composite("einsum", (), method=False, autocast="low", takes_complex=True, shares=_rearranged)
def einsum(equation: Any, *operands: Any) -> Value:
    """The products of the operands' elements, an axis for each letter, summed over the letters that are not in the result.

    Args:
        equation: "ij,jk->ik": the letters of each operand's axes, then those of the result. Without "->" the result has
            the letters that occur once, in alphabetical order. A letter twice in an operand takes its diagonal; "..."
            stands for any leading axes, which broadcast.
            In place of it, each operand may be followed by a list of numbers and `...`, and the last such list by the result's.
        operands: tensors, or a list of them; products are taken from left to right. Where operands share a letter that is
            summed, of an extent other than 1, they have one dtype; elsewhere they promote.

    Raises ValueError for an equation that does not read so or does not fit the shapes, TypeError where dtypes differ.

    >>> a = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> genesis.einsum("ij,j->i", a, genesis.tensor([1.0, -1.0])), genesis.einsum("ii", a)
    (tensor([-1., -1.]), tensor(5.))
    """
    equation, values = _given(equation, operands)
    terms, result = _parsed(equation, values)
    extents = _extents(equation, terms, values)
    for name in result:
        if name not in extents:
            raise ValueError(f"einsum: {equation!r} has {name!r} on the right and nowhere on the left")
    if len({v.dtype for v in values}) > 1:
        summed = [name for name, extent in extents.items() if extent != 1 and name not in result]
        if any(len([term for term in terms if name in term]) > 1 for name in summed):
            alike("einsum", *values)
        values = [*promoted(*values)]  # elementwise products: nothing is contracted
    total, names = values[0], terms[0]
    for position, (value, term) in enumerate(zip(values, terms, strict=True)):
        wanted = {*result, *(name for later in terms[position + 1 :] for name in later)}
        value, term = _diagonal(value, term)
        value = expand(value, tuple([extents[name] for name in term]))
        if not position:
            total, names = _summed(value, term, wanted)
        else:
            value, term = _summed(value, term, {*names, *wanted})
            total, names = _product(total, names, value, term, wanted)
    return permute_value(total, [names.index(name) for name in result])


def contracted(name: str, a: Value, b: Value, left: Sequence[int], right: Sequence[int]) -> Value:
    """The sums of products over the axes `left` of `a` and `right` of `b`: the other axes of `a`, then those of `b`."""
    met = [(a.shape[i], b.shape[j]) for i, j in zip(left, right, strict=False)]
    if len(left) != len(right) or any(m != n for m, n in met):
        raise ValueError(f"{name}: axes {tuple(left)} of {a.shape} do not fit axes {tuple(right)} of {b.shape}")
    alike(name, a, b)
    first = [f"a{i}" if i not in left else f"s{tuple(left).index(i)}" for i in range(a.ndim)]
    second = [f"b{i}" if i not in right else f"s{tuple(right).index(i)}" for i in range(b.ndim)]
    result = [*(n for n in first if n[0] == "a"), *(n for n in second if n[0] == "b")]
    total, names = _product(a, tuple(first), b, tuple(second), {*result})
    return permute_value(total, [names.index(n) for n in result])


# ---- reading ----
def _parsed(equation: str, values: Sequence[Value]) -> tuple[list[Names], Names]:
    """The names of each operand's axes, and of the result's."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(values):
        raise ValueError(f"einsum: {equation!r} has {len(texts)} terms for {len(values)} operands; want one each")
    spare = [v.ndim - len(text.replace("...", "")) for text, v in zip(texts, values, strict=True)]
    for text, v, more in zip(texts, values, spare, strict=True):
        if more < 0 or (more and "..." not in text):
            raise ValueError(f"einsum: {text!r} in {equation!r} does not name the {v.ndim} axes of shape {v.shape}")
    terms = [_names(equation, text, more) for text, more in zip(texts, spare, strict=True)]
    dots = max([more for text, more in zip(texts, spare, strict=True) if "..." in text], default=0)
    if arrow:
        result = _names(equation, right, dots)
        if len({*result}) != len(result):
            raise ValueError(f"einsum: {equation!r} has a letter twice on the right")
        return terms, result
    once = sorted(letter for letter in {*left} - {*",."} if left.count(letter) == 1)
    return terms, (*_names(equation, "...", dots), *once)


def _names(equation: str, text: str, dots: int) -> Names:
    before, ellipsis, after = text.partition("...")
    if not (before + after).isalpha() and before + after:
        raise ValueError(f"einsum: {equation!r} cannot be read; want letters, ',', '->' and one '...' for each operand")
    return (*before, *(f".{k}" for k in range(dots - 1, -1, -1) if ellipsis), *after)


def _extents(equation: str, terms: Sequence[Names], values: Sequence[Value]) -> dict[str, int]:
    """The extent of every name; an axis of extent 1 fits any other."""
    extents: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        for name, extent in zip(term, value.shape, strict=True):
            known = extents.setdefault(name, extent)
            if extent != known and 1 not in (extent, known):
                raise ValueError(f"einsum: {name!r} in {equation!r} has extents {known} and {extent}; want them equal")
            extents[name] = known if extent == 1 else extent
    return extents


# ---- computing ----
def _repeated(names: Names) -> tuple[list[tuple[int, int]], Names]:
    """The pairs of axes whose diagonals leave each name once, one after another, and these names."""
    pairs = []
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            pairs.append((i, j))
            names = (*(n for k, n in enumerate(names) if k not in (i, j)), name)
    return pairs, names


def _diagonal(x: Value, names: Names) -> tuple[Value, Names]:
    """Each name once."""
    if len({*zip(names, x.shape, strict=True)}) > len({*names}):
        raise ValueError(f"einsum: axes of one operand have one name and other extents: {', '.join(names)} of shape {x.shape}")
    pairs, names = _repeated(names)
    for i, j in pairs:
        x = diagonal_value(x, 0, i, j)
    return x, names


def _summed(x: Value, names: Names, wanted: set[str]) -> tuple[Value, Names]:
    """Without the axes that nothing else has."""
    axes = tuple([axis for axis, name in enumerate(names) if name not in wanted])
    return (sum(x, axes), tuple([n for n in names if n in wanted])) if axes else (x, names)


def _product(a: Value, first: Names, b: Value, second: Names, wanted: set[str]) -> tuple[Value, Names]:
    """The product over what both name and nobody else wants; elementwise where there is no such name."""
    shared = [name for name in first if name in second and name in wanted]
    inner = [name for name in first if name in second and name not in wanted]
    rows, columns = [n for n in first if n not in second], [n for n in second if n not in first]
    a, b = promoted(a, b)
    left = permute_value(a, [first.index(n) for n in (*shared, *rows, *inner)])
    right = permute_value(b, [second.index(n) for n in (*shared, *inner, *columns)])
    batch, m = left.shape[: len(shared)], left.shape[len(shared) : len(shared) + len(rows)]
    n = right.shape[right.ndim - len(columns) :]
    names = (*shared, *rows, *columns)
    if not inner:
        spread = reshape_value(left, (*left.shape, *(1,) * len(columns)))
        return spread * reshape_value(right, (*batch, *(1,) * len(rows), *n)), names
    k = left.shape[left.ndim - len(inner) :]
    y = product(reshape_value(left, (*batch, numel(m), numel(k))), reshape_value(right, (*batch, numel(k), numel(n))))
    return reshape_value(y, (*batch, *m, *n)), names
