"""What is in the function of a random script: statements that compute, view, write, differentiate and branch."""

from __future__ import annotations

from tests.fuzz.scripts import Writer


def write_function(w: Writer) -> None:
    """The body of the function, and what it returns."""
    steps = [pointwise] * 5 + [view] * 3 + [in_place] * 6 + [gradient] * 4 + [python] * 3
    for _ in range(w.one_of([1, 2, 2, 3, 3, 4, 5, 7])):
        w.one_of(steps)(w)
    w.script.body.append(f"return {result(w)}")


def pointwise(w: Writer) -> None:
    x = w.operand()
    y, scale = w.operand(x.shape).text, w.one_of(["n", "S.k", "2", "S.table['k']", "S.items[0]"])
    last = w.bind(w.one_of([
        f"{x.text} + {y}", f"{x.text} + {y}", f"{x.text} - {y}", f"{x.text} * {scale}", f"{x.text} + {scale}", f"-{x.text}",
        f"{x.text}.clamp(-9, 9)", f"{x.text}.clone()", f"{x.text} * {y}.clamp(-1, 2)", f"{x.text}.relu()",
        f"lib.where({x.text} > 0, {x.text}, {y})",
    ]), x.shape)
    t, count = last.text, max(last.length, 1)
    if w.chance(0.15):
        last = w.bind(w.statement([
            f"lib.cat([{t}, {t}])[:{count}]", f"{t}.flip(0)", f"{t}.cumsum(0)", f"{t}.sort(0)[0]", f"lib.stack([{t}, {t}])[0]",
            f"{t}.index_select(0, lib.arange({t}.shape[0]))", f"(lambda v: v.add_(1))({t})", f"{t} * ({t} > 0)", f"net({t})",
            f"net({t})", f"helper({t}, S)", f"helper({t}, S)", f"inner({t})", f"inner({t})",
            f"{t} + lib.randint(0, 3, {last.shape})", f"twice({t})", f"lib.func.vmap(lambda v: v + 1)({t})",
            f"lib.func.grad(lambda v: (v * v + v).sum())({t})", f"recomputed(twice, {t}, use_reentrant=False)",
        ]), last.shape)
    if w.chance(0.15):
        last = w.bind(f"{last.text}.sum()", ())
    if w.chance(0.1):
        w.bind(f"{last.text}.to(lib.{w.one_of(['float64', 'float32', 'int32', 'bool'])})", last.shape)


def view(w: Writer) -> None:
    seen = w.viewed(w.operand())
    w.bind(seen.text, seen.shape)


def in_place(w: Writer) -> None:
    x = w.operand()
    into = w.viewed(x) if w.chance(0.35) else x
    y, target = w.operand(into.shape).text, into.text
    statement = w.one_of([
        f"{target}.add_({y})", f"{target}.add_(1)", f"{target}.add_(n)", f"{target}.mul_(-1)", f"{target}.copy_({y})",
        f"{target}.zero_()", f"{target}.sub_({y}).clamp_(-50, 50)", f"{target}.neg_()", f"{target}.fill_(S.k)",
        f"{x.text}[...] = {y}", f"{x.text}[0] = 1", f"{x.text}[1:] += 1", f"{x.text}.data.add_(1)", f"{target}.mul_(S.k)",
        f"{x.text} += {y}", f"{x.text}[{x.text} > 1] = 0",
    ])
    recorded = not x.is_leaf and w.chance(0.67)
    w.script.body.append(statement if recorded else f"with lib.no_grad(): {statement}")


# ---- gradients ----


def gradient(w: Writer) -> None:
    leaf = w.leaf()
    if leaf is None:
        return pointwise(w)
    w.one_of([_backward, _backward, _backward, _backward, _asked, _changed_leaf, _own_leaf, _gradients, _hooked, _carried])(
        w, leaf.text, w.operand(w.shape).text)


def _backward(w: Writer, leaf: str, x: str) -> None:
    body = w.script.body
    if w.chance(0.5):
        body.append(w.statement([f"{leaf}.grad = None", "optimizer.zero_grad()"]))
    loss = w.one_of([f"({leaf} * {x}).sum()", f"({leaf} * {leaf}.detach() + {x}).sum()", f"{x}.sum()"])
    if w.chance(0.3):
        loss = w.bind(loss, ()).text
    body.append(f"{loss}.backward({w.one_of(['', '', 'retain_graph=True'])})")
    if "optimizer" in w.known and w.chance(0.5):
        body.append("optimizer.step()")
    elif w.chance(0.3):
        body.append(f"with lib.no_grad(): {leaf} -= {leaf}.grad")


def _asked(w: Writer, leaf: str, x: str) -> None:
    more = w.one_of(["", "", ", retain_graph=True", ", create_graph=True"])
    w.bind(f"lib.autograd.grad(({leaf} * {leaf} * {x}).sum(), [{leaf}]{more})[0]", w.shape)


def _changed_leaf(w: Writer, leaf: str, x: str) -> None:
    change = w.one_of(["add_(1)", "mul_(-1)", f"copy_({x})", "clamp_(-20, 20)"])
    w.script.body.append(f"with lib.no_grad(): {leaf}.{change}")


def _own_leaf(w: Writer, leaf: str, x: str) -> None:
    own = w.bind(f"{x}.detach().requires_grad_()", w.shape).text
    w.script.body.append(f"({own} * {w.one_of([own, leaf])}).sum().backward()")
    w.bind(f"{own}.grad", w.shape)


def _gradients(w: Writer, leaf: str, x: str) -> None:
    if w.chance(0.4):
        w.bind(f"{leaf}.grad", w.shape)
    else:
        w.script.body.append(f"{leaf}.grad" + w.one_of([" = None", f" = {x}", f" = {x}.clone()", ".zero_()", ".add_(1)"]))


def _hooked(w: Writer, leaf: str, x: str) -> None:
    last = w.bind(f"{leaf} * {x}", w.shape).text
    w.script.body += [
        w.one_of([f"{last}.retain_grad()", f"{last}.register_hook(lambda g: g * 2)", f"{leaf}.register_hook(lambda g: g + 1)"]),
        f"{last}.sum().backward(retain_graph=True)",
    ]
    w.bind(f"{last}.grad", w.shape)


def _carried(w: Writer, leaf: str, x: str) -> None:
    w.bind(w.one_of([f"{leaf} * {x}", f"{leaf} + {x}", f"{leaf}.detach()", f"{leaf} * 2"]), w.shape)


# ---- Python ----


def python(w: Writer) -> None:
    """What is no tensor: branches, exceptions, objects that change, values that are looked at."""
    x, y, body = w.operand().text, w.operand(w.shape).text, w.script.body
    if w.chance(0.08):
        name = w.one_of([value.text for value in w.outside if value.text.isidentifier()])
        w.script.rebound.append(name)
        body.append(f"{name} = {y}")
        return
    step = w.one_of([f"{x}.add_(1)", f"{x}.add_({x})"])
    replayed = [
        f"if n == {w.number(1, 3)}: raise ValueError('midway')", f"if n > {w.number(1, 2)}: {step}", f"if S.flag: {step}",
        f"if 'k' in S.table: {step}", f"if len(S.items) > 2: {step}", f"for item in S.items: {step}",
        f"if hasattr(S, 'more'): {step}", f"for _ in range(n): {step}", f"{x}.add_(getattr(S, 'more', 1))",
    ]
    called = [  # as it is, each time
        f"if n > 2: return {x}", f"S.held = {y}", "S.k += 1", f"kept.append({x})", f"S.late = {x}", f"if {x}.sum() > 3: {step}",
        f"seen.append({x}.sum().item())", f"{x}.tolist()", f"str({x})",
    ]
    body.append(w.one_of(called if w.chance(0.2) else replayed))


def result(w: Writer) -> str:
    """What the function returns."""
    some = [w.value(w.pool if w.chance(0.75) else w.outside).text for _ in range(w.number(1, 3))]
    leaf = w.leaf()
    if leaf is not None and w.chance(0.25):
        some.append(f"{leaf.text}.grad")
    if w.chance(0.15):
        t = some[0]
        some.append(w.one_of([f"{t}[1:]", "n", "None", f"{t}.sum()", f"{{'k': {t}, 'n': n}}", f"[{t}, S.k]", f"{t}.detach()"]))
    return some[0] if len(some) == 1 and w.chance(0.6) else f"({', '.join(some)},)"
