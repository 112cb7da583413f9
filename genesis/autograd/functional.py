"""Jacobians, Hessians and products with them: the API of `torch.autograd.functional`.

`inputs` is a tensor or a tuple of tensors, and results have the structure of inputs and outputs. `create_graph` makes results
differentiable; `strict` raises RuntimeError if an output does not depend on an input, instead of returning zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.autograd.hooks import Gradients
from genesis.autograd.pullback import columns_of, constant, enter, full, handle, jacobian_of, or_zeros, pull, pull_linear
from genesis.ir.annotations import AnyFunction, Tree
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.shapes import Shape
from genesis.tensor.call_modes import overriding_kinds
from genesis.tensor.handle import INTERNAL, Tensor, attributes_of, result_class
from genesis.tracing.state import grad_mode, thread_state

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__dir__ = __all__.copy

Tensors = Tensor | tuple[Tensor, ...]


def jacobian(
    func: AnyFunction, inputs: Tensors, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tree:
    """The derivatives of each output by each input, of shape (*output.shape, *input.shape).

    One program computes all rows. With `vectorize` it is batched, so its size does not depend on their number;
    `strategy="forward-mode"` computes columns, which is less work if outputs have more elements than inputs.

    >>> genesis.autograd.functional.jacobian(lambda x: x * x, genesis.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', got {strategy!r}")
    points, outputs, result = _called("jacobian", func, inputs, create_graph)
    with grad_mode(create_graph or thread_state.grad_enabled):
        found = [jacobian_of(y, points, create_graph, vectorize) for y in outputs] if strategy == "reverse-mode" else (
            columns_of(outputs, points, create_graph, vectorize)
        )
    table = [_defined("jacobian", row, points, strict, create_graph, outputs, y.shape)
             for row, y in zip(found, outputs, strict=True)]
    return _like([_like(row, inputs) for row in table], result)


def hessian(
    func: AnyFunction, inputs: Tensors, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tree:
    """The second derivatives of a function with one element: for inputs i and j, of shape (*i.shape, *j.shape).

    >>> genesis.autograd.functional.hessian(lambda x: (x**3).sum(), genesis.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    def gradients(*given: Tensor) -> Tree:
        return jacobian(lambda *xs: _single("hessian", func(*xs)).reshape(()), given, create_graph=True, strict=strict)

    listed = (inputs,) if isinstance(inputs, Tensor) else inputs
    table = jacobian(gradients, listed, create_graph, strict, vectorize, outer_jacobian_strategy)
    return _like([_like(row, inputs) for row in table], inputs)


def vjp(func: AnyFunction, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False) -> Tree:
    """(outputs, v J): the gradients of the outputs, started with `v`, which is optional for a single-element output.

    >>> genesis.autograd.functional.vjp(lambda x: x * x, genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 10.0]))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    points, outputs, result = _called("vjp", func, inputs, create_graph)
    found = pull(outputs, _vectors("vjp", v, outputs, "output"), points, create_graph)
    return _values(outputs, result, create_graph), _like(_defined("vjp", found, points, strict, create_graph, outputs), inputs)


def jvp(func: AnyFunction, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False) -> Tree:
    """(outputs, J v): the directional derivative of the outputs along `v`.

    It uses reverse mode twice: u -> u J is linear in u, and its own vjp with `v` is J v.

    >>> genesis.autograd.functional.jvp(lambda x: x * x, genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 10.0]))
    (tensor([1., 9.]), tensor([ 2., 60.]))
    """
    points, outputs, result = _called("jvp", func, inputs, create_graph)
    tangents = _vectors("jvp", v, points, "input")
    seeds, slopes = pull_linear(outputs, points)
    found = pull(or_zeros(slopes, points), tangents, seeds, create_graph)
    return _values(outputs, result, create_graph), _like(_defined("jvp", found, outputs, strict, create_graph, outputs), result)


def vhp(func: AnyFunction, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False) -> Tree:
    """(output, v H) for a single-element function and its Hessian H, without computing H.

    >>> genesis.autograd.functional.vhp(lambda x: (x**3).sum(), genesis.tensor([1.0, 2.0]), genesis.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(func: AnyFunction, inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False) -> Tree:
    """(output, H v): equals `vhp`, because H is symmetric.

    >>> genesis.autograd.functional.hvp(lambda x: (x**3).sum(), genesis.tensor([1.0, 2.0]), genesis.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: AnyFunction, inputs: Tensors, v: Tensors | None, create_graph: bool, strict: bool
) -> Tree:
    points, outputs, result = _called(name, lambda *xs: _single(name, func(*xs)), inputs, create_graph)
    vectors = _vectors(name, v, points, "input")
    slopes = pull(outputs, [full(1, y.shape, y) for y in outputs], points, True)
    found = pull(_defined(name, slopes, points, strict), vectors, points, create_graph)
    return _values(outputs, result, create_graph), _like(_defined(name, found, points, strict, create_graph, outputs), inputs)


# ---- the parts ----
def _called(name: str, func: AnyFunction, inputs: Tensors, create_graph: bool) -> tuple[list[Tensor], tuple[Tensor, ...], Tree]:
    """(the points, the outputs there, the function's result)."""
    listed = _listed(name, "inputs", inputs)
    for i, x in enumerate(listed):
        if x.dtype.category < 2:
            raise TypeError(f"{name}: input {i} is {x.dtype.name}; derivatives are taken by floating tensors alone")
    points = [enter(x, create_graph) for x in listed]
    with grad_mode(True):
        result = func(*map(_like_detached, map(handle, points, listed), listed))
    return points, _listed(name, "outputs", result), result


def _like_detached(point: Tensor, given: Tensor) -> Tensor:
    """`point` with the class and attributes of `given.detach()`."""
    if result_class(given) is not Tensor:
        detached = given.detach()
        point.__class__ = detached.__class__
        attributes_of(point).update({k: v for k, v in attributes_of(detached).items() if k not in INTERNAL})
    return point


def _listed(name: str, what: str, tensors: object) -> tuple[Tensor, ...]:
    listed = tensors if isinstance(tensors, tuple) else (tensors,)
    for x in listed:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: {what} must be a tensor or a tuple of tensors, got a {type(x).__name__}")
    return listed


def _like(tensors: Sequence[Tree], structure: object) -> Tree:
    return tuple(tensors) if isinstance(structure, tuple) else tensors[0]


def _values(outputs: Sequence[Tensor], result: Tree, create_graph: bool) -> Tree:
    return _like([y if create_graph else constant(y) for y in outputs], result)


def _vectors(name: str, v: Tensors | None, like: Sequence[Tensor], what: str) -> Sequence[Tensor]:
    """`v` as a tuple that matches the tensors `like`; a one if omitted."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{name}: v can be left out only for a single {what} with one element")
        return [full(1, like[0].shape, like[0])]
    vectors = _listed(name, "v", v)
    have, want = [x.shape for x in vectors], [x.shape for x in like]
    if have != want:
        raise ArgumentError(f"{name}: v has the shapes {have}; want those of the {what}s, {want}")
    return vectors


def _single(name: str, y: object) -> Tensor:
    if not isinstance(y, Tensor) or y.numel() != 1:
        got = f"shape {y.shape}" if isinstance(y, Tensor) else type(y).__name__
        raise ArgumentTypeError(f"{name}: the function must return one tensor with one element, got {got}")
    return y


def _defined(
    name: str, found: Gradients, like: Sequence[Tensor], strict: bool, create_graph: bool = False,
    outputs: Sequence[Tensor] = (), lead: Shape = (),
) -> list[Tensor]:
    """Derivatives of shape (*lead, *x.shape) for the x in `like`, zeros where there are none unless `strict`, in the class of
    the outputs, if that is a Tensor subclass without overrides.
    """
    constant = [x is None or (create_graph and not x.requires_grad) for x in found]
    if strict and any(constant):
        raise RuntimeError(f"{name}: what is differentiated does not depend on number {constant.index(True)} of what it is "
                           "differentiated by; strict=False gives zeros")
    kind, values = result_class(outputs), or_zeros(found, like, lead)
    return values if kind is Tensor or overriding_kinds(outputs) else [x.as_subclass(kind) for x in values]
