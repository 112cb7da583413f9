"""Functions of tensors that programs are made of, and their operands: the same lines serve genesis and torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CASES", "Case", "operand"]


class Case(NamedTuple):
    """A function of tensors: `call(library, functional, *tensors)`; its operands, a letter each, see `operand`."""

    title: str
    operands: str
    call: Callable[..., Any]


def _gru(lib: Any, inputs: Any, states: Any, h: Any) -> Any:
    (r, z, n), (s, y, m) = inputs.chunk(3, 1), states.chunk(3, 1)
    gate = (z + y).sigmoid()
    return (1 - gate) * (n + (r + s).sigmoid() * m).tanh() + gate * h


def _lstm(lib: Any, gates: Any, c: Any) -> Any:
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


CASES = [
    Case("a * b + c", "mmm", lambda lib, F, a, b, c: a * b + c),
    Case("abs() ** 1.7", "m", lambda lib, F, a: a.abs() ** 1.7),
    Case("sin * exp", "m", lambda lib, F, a: a.sin() * a.exp()),
    Case("sigmoid", "m", lambda lib, F, a: a.sigmoid()),
    Case("where", "mm", lambda lib, F, a, b: lib.where(a > b, a, b)),
    Case("sum of all", "m", lambda lib, F, a: a.sum()),
    Case("sum of columns", "m", lambda lib, F, a: a.sum(0)),
    Case("variance of rows", "m", lambda lib, F, a: a.var(1)),
    Case("argmax of rows", "m", lambda lib, F, a: a.argmax(1)),
    Case("cumsum", "m", lambda lib, F, a: a.cumsum(1)),
    Case("softmax", "m", lambda lib, F, a: F.softmax(a, -1)),
    Case("layer_norm", "mr", lambda lib, F, a, w: F.layer_norm(a, w.shape, w)),
    Case("cross_entropy", "ml", lambda lib, F, a, labels: F.cross_entropy(a, labels)),
    Case("a @ b", "mm", lambda lib, F, a, b: a @ b),
    Case("a.t() @ b", "mm", lambda lib, F, a, b: a.t() @ b),
    Case("a @ row", "mr", lambda lib, F, a, row: a @ row),
    Case("batched a @ b.mT", "bb", lambda lib, F, a, b: a @ b.mT),
    Case("linear, 20 rows", "tm", lambda lib, F, x, w: F.linear(x, w)),
    Case("attention, causal", "bbb", lambda lib, F, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    Case("attention of one query", "qbb", lambda lib, F, q, k, v: F.scaled_dot_product_attention(q, k, v)),
    Case("conv2d 3x3", "iw", lambda lib, F, x, w: F.conv2d(x, w, padding=1)),
    Case("conv2d 3x3, stride 2", "iw", lambda lib, F, x, w: F.conv2d(x, w, stride=2, padding=1)),
    Case("max_pool2d", "i", lambda lib, F, x: F.max_pool2d(x, 3, 2, 1)),
    Case("interpolate", "i", lambda lib, F, x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    Case("embedding", "lm", lambda lib, F, labels, w: F.embedding(labels, w)),
    Case("a[indices]", "ml", lambda lib, F, a, labels: a[labels]),
    Case("gather", "mL", lambda lib, F, a, indices: a.gather(1, indices)),
    Case("index_add", "mml", lambda lib, F, a, b, labels: a.index_add(0, labels, b)),
    Case("scatter_add", "mLm", lambda lib, F, a, indices, b: a.scatter_add(1, indices, b)),
    Case("one_hot", "l", lambda lib, F, labels: F.one_hot(labels)),
    Case("a.t().contiguous()", "m", lambda lib, F, a: a.t().contiguous()),
    Case("cat", "mm", lambda lib, F, a, b: lib.cat((a, b), 1)),
    Case("sort", "m", lambda lib, F, a: a.sort(1)),
    Case("topk", "m", lambda lib, F, a: a.topk(8, 1)),
    Case("median", "m", lambda lib, F, a: a.median(1)),
    Case("nonzero", "m", lambda lib, F, a: (a > 1).nonzero()),
    Case("cdist", "mm", lambda lib, F, a, b: lib.cdist(a, b)),
    Case("rfft", "m", lambda lib, F, a: lib.fft.rfft(a)),
    Case("solve", "pm", lambda lib, F, a, b: lib.linalg.solve(a, b)),
    Case("cholesky", "p", lambda lib, F, a: lib.linalg.cholesky(a)),
    Case("eigvalsh", "s", lambda lib, F, a: lib.linalg.eigvalsh(a)),
    Case("gelu", "m", lambda lib, F, a: F.gelu(a)),
    Case("silu", "m", lambda lib, F, a: F.silu(a)),
    Case("mish", "m", lambda lib, F, a: F.mish(a)),
    Case("softplus", "m", lambda lib, F, a: F.softplus(a)),
    Case("erf", "m", lambda lib, F, a: lib.erf(a)),
    Case("clamp", "m", lambda lib, F, a: a.clamp(-1, 1)),
    Case("lerp", "mm", lambda lib, F, a, b: lib.lerp(a, b, 0.3)),
    Case("addcmul", "mmm", lambda lib, F, a, b, c: lib.addcmul(a, b, c, value=0.5)),
    Case("a // b", "mm", lambda lib, F, a, b: a // b),
    Case("masked_fill", "m", lambda lib, F, a: a.masked_fill(a > 0, 1.0)),
    Case("norm of all", "m", lambda lib, F, a: a.norm()),
    Case("std of columns", "m", lambda lib, F, a: a.std(0)),
    Case("logsumexp", "m", lambda lib, F, a: a.logsumexp(1)),
    Case("prod of rows", "m", lambda lib, F, a: a.prod(1)),
    Case("any of rows", "m", lambda lib, F, a: (a > 3).any(1)),
    Case("max of columns, with places", "m", lambda lib, F, a: a.max(0)),
    Case("aminmax", "m", lambda lib, F, a: lib.aminmax(a)),
    Case("cumprod", "m", lambda lib, F, a: a.cumprod(0)),
    Case("log_softmax", "m", lambda lib, F, a: F.log_softmax(a, 0)),
    Case("rms_norm", "mr", lambda lib, F, a, w: F.rms_norm(a, w.shape, w)),
    Case("group_norm", "i", lambda lib, F, x: F.group_norm(x, 4)),
    Case("batch_norm, training", "i", lambda lib, F, x: F.batch_norm(x, None, None, training=True)),
    Case("mse_loss", "mm", lambda lib, F, a, b: F.mse_loss(a, b)),
    Case("smooth_l1_loss", "mm", lambda lib, F, a, b: F.smooth_l1_loss(a, b)),
    Case("bce_with_logits", "mm", lambda lib, F, a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid())),
    Case("kl_div", "mm", lambda lib, F, a, b: F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean")),
    Case("nll_loss", "ml", lambda lib, F, a, labels: F.nll_loss(a, labels)),
    Case("cosine_similarity", "mm", lambda lib, F, a, b: F.cosine_similarity(a, b)),
    Case("outer", "rr", lambda lib, F, a, b: lib.outer(a, b)),
    Case("dot", "rr", lambda lib, F, a, b: lib.dot(a, b)),
    Case("einsum xbij,xbjk->bik", "bB", lambda lib, F, a, b: lib.einsum("xbij,xbjk->bik", a, b)),
    Case("baddbmm", "cbB", lambda lib, F, c, a, b: lib.baddbmm(c[0], a[0], b[0], alpha=0.5)),
    Case("addmm", "mmm", lambda lib, F, c, a, b: lib.addmm(c, a, b)),
    Case("matrix_power", "p", lambda lib, F, a: lib.linalg.matrix_power(a, 3)),
    Case("linear and gelu", "tm", lambda lib, F, x, w: F.gelu(F.linear(x, w))),
    Case("conv1d", "zv", lambda lib, F, x, w: F.conv1d(x, w, padding=2)),
    Case("conv3d", "jx", lambda lib, F, x, w: F.conv3d(x, w, padding=1)),
    Case("conv_transpose2d", "iw", lambda lib, F, x, w: F.conv_transpose2d(x, w, stride=2, padding=1)),
    Case("depthwise conv2d", "id", lambda lib, F, x, w: F.conv2d(x, w, padding=1, groups=w.shape[0])),
    Case("conv2d 1x1", "iw", lambda lib, F, x, w: F.conv2d(x, w[:, :, :1, :1])),
    Case("avg_pool2d", "i", lambda lib, F, x: F.avg_pool2d(x, 2)),
    Case("adaptive_avg_pool2d", "i", lambda lib, F, x: F.adaptive_avg_pool2d(x, 4)),
    Case("grid_sample", "ig", lambda lib, F, x, grid: F.grid_sample(x, grid, align_corners=False)),
    Case("pixel_shuffle", "i", lambda lib, F, x: F.pixel_shuffle(x, 2)),
    Case("unfold", "i", lambda lib, F, x: F.unfold(x, 3, padding=1)),
    Case("pad, reflected", "i", lambda lib, F, x: F.pad(x, (2, 2, 2, 2), mode="reflect")),
    Case("pad", "m", lambda lib, F, a: F.pad(a, (1, 1, 1, 1))),
    Case("embedding_bag", "Om", lambda lib, F, bags, w: F.embedding_bag(bags, w)),
    Case("index_select of columns", "ml", lambda lib, F, a, labels: a.index_select(1, labels)),
    Case("a[rows, columns]", "mll", lambda lib, F, a, rows, columns: a[rows, columns]),
    Case("index_put, accumulated", "mlm", lambda lib, F, a, labels, b: a.index_put((labels,), b, accumulate=True)),
    Case("scatter", "mLm", lambda lib, F, a, indices, b: a.scatter(1, indices, b)),
    Case("scatter_reduce, amax", "mLm", lambda lib, F, a, indices, b: a.scatter_reduce(1, indices, b, "amax")),
    Case("take_along_dim", "mL", lambda lib, F, a, indices: a.take_along_dim(indices, 1)),
    Case("masked_select", "m", lambda lib, F, a: a[a > 0]),
    Case("unique", "l", lambda lib, F, labels: labels.unique()),
    Case("bincount", "l", lambda lib, F, labels: labels.bincount()),
    Case("histc", "m", lambda lib, F, a: a.histc(64, -3, 3)),
    Case("searchsorted", "rm", lambda lib, F, edges, a: lib.searchsorted(edges.sort()[0], a)),
    Case("argsort", "m", lambda lib, F, a: a.argsort(1, descending=True)),
    Case("kthvalue", "m", lambda lib, F, a: a.kthvalue(3, 1)),
    Case("mode", "L", lambda lib, F, indices: indices.mode(1)),
    Case("quantile", "m", lambda lib, F, a: a.quantile(0.3, 1)),
    Case("multinomial", "m", lambda lib, F, a: lib.multinomial(a.abs(), 4)),
    Case("stack", "mmm", lambda lib, F, a, b, c: lib.stack((a, b, c), 1)),
    Case("split and add", "m", lambda lib, F, a: sum(part for part in a.chunk(2, 1))),
    Case("roll", "m", lambda lib, F, a: a.roll((3, 5), (0, 1))),
    Case("flip", "m", lambda lib, F, a: a.flip(1)),
    Case("tril", "m", lambda lib, F, a: a.tril()),
    Case("diff", "m", lambda lib, F, a: a.diff(dim=1)),
    Case("repeat_interleave", "m", lambda lib, F, a: a.repeat_interleave(2, 1)),
    Case("permute, contiguous", "i", lambda lib, F, x: x.permute(0, 2, 3, 1).contiguous()),
    Case("meshgrid", "rr", lambda lib, F, a, b: sum(lib.meshgrid(a, b, indexing="ij"))),
    Case("kron", "RR", lambda lib, F, a, b: lib.kron(a, b)),
    Case("fft2", "m", lambda lib, F, a: lib.fft.fft2(a)),
    Case("irfft", "m", lambda lib, F, a: lib.fft.irfft(lib.fft.rfft(a))),
    Case("inv", "p", lambda lib, F, a: lib.linalg.inv(a)),
    Case("qr", "m", lambda lib, F, a: lib.linalg.qr(a)),
    Case("svdvals", "m", lambda lib, F, a: lib.linalg.svdvals(a)),
    Case("lstsq", "pt", lambda lib, F, a, b: lib.linalg.lstsq(a, b.mT).solution),
    Case("solve_triangular", "pm", lambda lib, F, a, b: lib.linalg.solve_triangular(a.tril(), b, upper=False)),
    Case("det", "p", lambda lib, F, a: lib.linalg.det(a)),
    Case("64 small inverses", "k", lambda lib, F, a: lib.linalg.inv(a)),
    Case("gru cell", "ttWW", lambda lib, F, x, h, w, v: _gru(lib, F.linear(x, w), F.linear(h, v), h)),
    Case("lstm cell", "ttVV", lambda lib, F, x, h, w, v: _lstm(lib, F.linear(x, w) + F.linear(h, v), h)),
    Case("float16 and back", "m", lambda lib, F, a: a.half().float() + 1),
]


def operand(kind: str, number: int, extent: int) -> np.ndarray:
    """The operand of a letter; numbers are normal unless said otherwise.

    Matrices: m is square, r a row of it, R a small one, t twenty rows, p positive definite, s symmetric, W and V three and four
    of m behind one another, k 64 small ones. Integers: l a label for each row, L an index for each element, O eight for each
    row. Heads: b has 8 of `extent` rows of 64, B its transpose, c 8 of squares, q a row for each. Images: i, with weights w,
    d (a channel each) and a grid g of places; signals z with v, volumes j with x.
    """
    random, channels, small = np.random.default_rng(number), max(extent // 16, 4), max(extent // 32, 2)
    if kind in "lLO":
        return random.integers(0, extent, {"l": (extent,), "L": (extent, extent), "O": (extent, 8)}[kind])
    shapes = {
        "m": (extent, extent), "r": (extent,), "R": (small, small), "t": (20, extent), "W": (3 * extent, extent),
        "V": (4 * extent, extent), "k": (64, small, small), "b": (1, 8, extent, 64), "B": (1, 8, 64, extent),
        "c": (1, 8, extent, extent), "q": (1, 8, 1, 64), "i": (4, channels, 32, 32), "w": (channels, channels, 3, 3),
        "d": (channels, 1, 3, 3), "g": (4, 32, 32, 2), "z": (4, channels, 4 * extent), "v": (channels, channels, 5),
        "j": (2, channels, 8, 16, 16), "x": (channels, channels, 3, 3, 3),
    }
    array = random.normal(size=shapes.get(kind, (extent, extent))).astype(np.float32)
    if kind == "g":
        return np.tanh(array)
    if kind == "s":
        return array + array.T
    if kind in "pk":
        return array @ array.swapaxes(-1, -2) / np.float32(array.shape[-1]) + np.eye(array.shape[-1], dtype=np.float32)
    return array
