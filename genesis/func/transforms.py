"""Derivatives as composable function transforms.

Arguments and results may be nested tuples, lists and dicts of tensors. The function sees tensors that require grad; the
caller's tensors keep their flags, `.grad` and, but in `jvp`, values. Results require grad only if they depend on an outer
transform's argument or on a tensor of the caller's with `requires_grad`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from genesis.autograd.pullback import (
    columns_of, constant, depends_on_others, enter, full, handle, jacobian_of, or_zeros, pull, pull_linear,
)
from genesis.functions.from_data import tensor
from genesis.functions.random_draws import mapped
from genesis.ir.annotations import AnyFunction, Arguments, Attributes, Tree
from genesis.ir.errors import ArgumentError, ArgumentTypeError, OutOfRangeError
from genesis.pytree import leaves_of, map_tree, with_leaves
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tensor.modes import is_grad_enabled
from genesis.tracing.state import grad_mode

Function = AnyFunction
Argnums = int | tuple[int, ...]


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The gradient of a function with a 0-d result, as a function of the same arguments.

    Args:
        func: returns a 0-d floating tensor; with `has_aux`, a pair of that and anything else, which is returned as well.
        argnums: the positions of the arguments to differentiate by; for several, the result is a tuple.

    The call raises TypeError for an argument with leaves other than floating tensors (or floats), IndexError for a
    position out of range and ValueError for another result.

    >>> genesis.func.grad(lambda p, x: (p["w"] * x).sum() + p["b"])(
    ...     {"w": genesis.ones(2), "b": genesis.tensor(0.0)}, genesis.tensor([3.0, 4.0]))
    {'w': tensor([3., 4.]), 'b': tensor(1.)}
    """
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def gradient(*args: Tree, **kwargs: Tree) -> Tree:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As `grad`, with the value: a function that returns (value, gradient), or ((value, aux), gradient) with `has_aux`.

    >>> genesis.func.value_and_grad(lambda x: x * x)(3.0)
    (tensor(9.), tensor(6.))
    """

    @functools.wraps(func, updated=())
    def both(*args: Tree, **kwargs: Tree) -> Tree:
        call = _Call("grad", func, args, kwargs, argnums, has_aux)
        (y,) = call.outputs if isinstance(call.result, Tensor) else (None,)
        if y is None or y.shape or not y.dtype.is_floating_point:
            got = type(call.result).__name__ if y is None else f"one of shape {y.shape} and dtype {y.dtype.name}"
            raise ArgumentError(f"grad: the function must return a 0-d floating tensor, got {got}")
        found = or_zeros(pull([y], [full(1, (), y)], call.points, call.records), call.points)
        value = call.leave(y)
        return ((value, call.leave(call.aux)) if has_aux else value), call.like_arguments(found)

    return both


def vjp(func: Function, *primals: Tree, has_aux: bool = False) -> Tree:
    """(the result of `func(*primals)`, v -> v J): a function from cotangents of the result to those of the primals.

    That function takes a tree like the result and returns a tuple, one cotangent (tree) per primal. With `has_aux`, `func`
    returns a pair, whose second part is returned third.

    >>> y, pullback = genesis.func.vjp(lambda x: x * x, genesis.tensor([1.0, 3.0]))
    >>> pullback(genesis.tensor([1.0, 10.0]))
    (tensor([ 2., 60.]),)
    """
    call = _Call("vjp", func, primals, {}, tuple(range(len(primals))), has_aux)

    def pullback(cotangents: Tree) -> Arguments:
        seeds = _fitting("vjp", "cotangents", cotangents, call.result, call.outputs)
        records = is_grad_enabled() and (call.records or any([v.requires_grad for v in seeds]))
        return call.like_arguments(or_zeros(pull(call.outputs, seeds, call.points, records), call.points))

    value = call.leave(call.result)
    return (value, pullback, call.leave(call.aux)) if has_aux else (value, pullback)


def linearize(func: Function, *primals: Tree) -> Tree:
    """(the result of `func(*primals)`, t -> J t): the function runs once, however often its derivative is used.

    That function takes a tangent (tree) per primal and returns the result's tangent.

    >>> y, along = genesis.func.linearize(lambda x: x * x, genesis.tensor([1.0, 3.0]))
    >>> y, along(genesis.tensor([1.0, 10.0]))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    call = _Call("linearize", func, primals, {}, tuple(range(len(primals))), False)
    push = _pushing("linearize", call)
    return call.leave(call.result), lambda *tangents: push(tangents)


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """As `value_and_grad`, in PyTorch's order: a function that returns (gradient, value), or (gradient, (value, aux)).

    >>> genesis.func.grad_and_value(lambda x: x * x)(3.0)
    (tensor(6.), tensor(9.))
    """
    both = value_and_grad(func, argnums, has_aux)
    return functools.wraps(func, updated=())(lambda *args, **kwargs: both(*args, **kwargs)[::-1])


def jvp(
    func: Function, primals: Sequence[Tree], tangents: Sequence[Tree], *, strict: bool = False, has_aux: bool = False
) -> Tree:
    """(the result of `func(*primals)`, its directional derivative along the tangents); then aux, with `has_aux`.

    It uses reverse mode twice: v -> v J is linear in v, and its own vjp with the tangents gives J times the tangents.
    Writes to the primals are the caller's, too. With `strict`, a result that depends on no primal raises RuntimeError.

    >>> genesis.func.jvp(lambda x: x * x, (genesis.tensor([1.0, 3.0]),), (genesis.tensor([1.0, 10.0]),))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    if isinstance(primals, Tensor) or isinstance(tangents, Tensor):
        raise ArgumentTypeError("jvp: primals and tangents are tensors; want tuples with one for each argument")
    call = _Call("jvp", func, tuple(primals), {}, tuple(range(len(primals))), has_aux)
    if strict and not all([y.requires_grad for y in call.outputs]):
        raise RuntimeError("jvp: a result does not depend on the primals; strict=True wants all to")
    value, change = call.leave(call.result), _pushing("jvp", call)(tuple(tangents))
    for x, new in call.written:
        x.copy_(call.leave(new))
    return (value, change, call.leave(call.aux)) if has_aux else (value, change)


def jacrev(func: Function, argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """The Jacobian of a function, row by row: derivatives of shape (*result.shape, *argument.shape).

    For trees: the result's tree, with the argument's tree in each leaf (a tuple, for several `argnums`). One program computes
    all rows, or `chunk_size` rows at a time, which needs less memory. With `has_aux`, the transformed function returns
    (Jacobian, aux). Raises ValueError for a `chunk_size` below 1.

    >>> genesis.func.jacrev(lambda x: x * x)(genesis.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"jacrev: chunk_size is {chunk_size}; want 1 or more, or None")
    return _jacobian("jacrev", func, argnums, has_aux, lambda ys, xs, records: [
        jacobian_of(y, xs, records, vectorize=True, chunk_size=chunk_size) for y in ys])


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """As `jacrev`, column by column: less work if the result has more elements than the arguments.

    As in `jvp`, columns are rows of the transposed linear function v -> v J. Raises RuntimeError if `func` draws random
    numbers while `randomness` is "error"; with "same" or "different", all columns are those of one draw.

    >>> genesis.func.jacfwd(lambda x: x * x)(genesis.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """

    @functools.wraps(func, updated=())
    def of_one_draw(*args: Tree, **kwargs: Tree) -> Tree:
        with mapped(randomness, 1):
            return func(*args, **kwargs)

    return _jacobian("jacfwd", of_one_draw, argnums, has_aux, functools.partial(columns_of, vectorize=True))


def _jacobian(name: str, func: Function, argnums: Argnums, has_aux: bool, blocks: AnyFunction) -> Function:
    """The function whose result is the Jacobian with `blocks(outputs, points, records)`, [output][point]."""

    @functools.wraps(func, updated=())
    def jacobian(*args: Tree, **kwargs: Tree) -> Tree:
        call = _Call(name, func, args, kwargs, argnums, has_aux)
        found = call.table(blocks(call.outputs, call.points, call.records))
        return (found, call.leave(call.aux)) if has_aux else found

    return jacobian


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """The second derivatives of a function: `jacrev` of `jacrev`.

    >>> genesis.func.hessian(lambda x: (x**3).sum())(genesis.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)


# ---- the parts ----
class _Call:
    """A call of a function with new leaves, the points, for the arguments to differentiate by.

    `records`: whether derivatives must be recorded, because something outside may differentiate them.
    `written`: (argument, what the function has made of it) for those that it has written to.
    """

    __slots__ = ("arguments", "aux", "outputs", "points", "records", "result", "written")

    aux: Tree

    def __init__(self, name: str, func: Function, args: Arguments, kwargs: Attributes, argnums: Argnums, has_aux: bool) -> None:
        follow = is_grad_enabled()
        positions = _positions(name, argnums, len(args))
        self.arguments = args[argnums] if isinstance(argnums, int) else tuple([args[position] for position in positions])
        leaves = [_floating(name, leaf) for leaf in leaves_of(self.arguments)]
        self.points = [enter(leaf, follow) for leaf in leaves]
        handles = [*map(handle, self.points, leaves)]
        given = with_leaves([args[position] for position in positions], iter(handles))
        replaced = [*args]
        for position, argument in zip(positions, given, strict=True):
            replaced[position] = argument
        with grad_mode(True):
            result = func(*replaced, **kwargs)
        if has_aux and not (isinstance(result, tuple) and len(result) == 2):
            got = type(result).__name__
            raise ArgumentTypeError(f"{name}: with has_aux the function must return a pair (result, aux), got {got}")
        self.result, self.aux = result if has_aux else (result, ())
        self.written = [(x, new) for x, new, point in zip(leaves, handles, self.points, strict=True)
                        if array_of(new) is not array_of(point)]
        self.outputs: list[Tensor] = leaves_of(self.result)
        for y in self.outputs or (None,):
            if not isinstance(y, Tensor):
                raise ArgumentTypeError(f"{name}: the function must return tensors, got a {type(y).__name__}")
        tensors = [x for x in (*self.outputs, *leaves_of(self.aux)) if isinstance(x, Tensor)]
        self.records = follow and (any([leaf.requires_grad for leaf in leaves]) or depends_on_others(tensors, self.points))

    def leave(self, tree: Tree) -> Tree:
        """The function's result, as the caller gets it."""
        return map_tree(lambda x: constant(x) if isinstance(x, Tensor) and not self.records else x, tree)

    def like_arguments(self, leaves: Sequence[Tree]) -> Tree:
        return with_leaves(self.arguments, iter(leaves))

    def table(self, blocks: Sequence[Sequence[Tensor | None]]) -> Tree:
        """A Jacobian from its blocks [output][point]."""
        rows = [or_zeros(row, self.points, y.shape) for row, y in zip(blocks, self.outputs, strict=True)]
        return with_leaves(self.result, iter([self.like_arguments(row) for row in rows]))


def _pushing(name: str, call: _Call) -> AnyFunction:
    """The function from a call's tangents, a tuple, to those of its result; integer results have zeros."""
    moving = [y for y in call.outputs if y.dtype.category >= 2]
    seeds, pulled = pull_linear(moving, call.points)
    slopes = or_zeros(pulled, call.points)

    def push(tangents: Arguments) -> Tree:
        given = _fitting(name, "tangents", tangents, call.arguments, call.points)
        records = is_grad_enabled() and (call.records or any([t.requires_grad for t in given]))
        changes = iter(or_zeros(pull(slopes, given, seeds, records), moving))
        found = [next(changes) if y.dtype.category >= 2 else y.new_zeros(y.shape) for y in call.outputs]
        return with_leaves(call.result, iter(found))

    return push


def _positions(name: str, argnums: Argnums, count: int) -> list[int]:
    """The positions among `count` arguments."""
    positions = list(argnums) if isinstance(argnums, tuple) else [argnums]
    if (count and not positions) or not all([isinstance(position, int) for position in positions]):
        raise ArgumentTypeError(f"{name}: argnums is {argnums!r}; want an int or a tuple of them")
    for position in positions:
        if not -count <= position < count:
            raise OutOfRangeError(f"{name}: argnums has {position}, but the function is called with {count} arguments")
    if len({position % count for position in positions}) < len(positions):
        raise ArgumentError(f"{name}: argnums {argnums!r} has a position twice; want each once")
    return positions


def _floating(name: str, leaf: Tree) -> Tensor:
    x = tensor(leaf) if isinstance(leaf, float | complex) else leaf
    if not isinstance(x, Tensor) or x.dtype.category < 2:
        got = f"a tensor of {x.dtype.name}" if isinstance(x, Tensor) else f"a {type(leaf).__name__}"
        raise ArgumentTypeError(f"{name}: derivatives are taken by floating tensors, got {got}; choose others with argnums")
    return x


def _fitting(name: str, what: str, tree: Tree, whole: Tree, like: Sequence[Tensor]) -> list[Tensor]:
    """The leaves of `tree`, which must have the structure of `whole` and the shapes of its tensors `like`."""
    leaves = [tensor(leaf) if isinstance(leaf, float) else leaf for leaf in leaves_of(tree)]
    have = [x.shape if isinstance(x, Tensor) else type(x).__name__ for x in leaves]
    want = [x.shape for x in like]
    if have != want:
        raise ArgumentError(f"{name}: {what} have the shapes {have}; want {want}")
    if repr(map_tree(lambda _: 0, tree)) != repr(map_tree(lambda _: 0, whole)):
        raise ArgumentTypeError(f"{name}: {what} are not nested in tuples, lists and dicts as what they are for")
    return leaves
