"""Distributed tensors against the same computation on whole tensors. Run by `test_collectives.py`."""

import itertools

import numpy as np
from checks import raises, run
from tensor_parallel_script import close, common, line, rank, size

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    implicit_replication,
)
from genesis.nn import functional as F
from genesis.utils.checkpoint import checkpoint

EVEN = 2 * 3  # an extent that 2 and 3 ranks divide
CASES = {  # functions, and the shapes of their tensors
    "elementwise, broadcast": (lambda x, y: (x * y + 0.5).tanh(), [(EVEN, 4), (4,)]),
    "sum": (lambda x, y: (x * y).sum(), [(EVEN, EVEN)] * 2),
    "mean, norm": (lambda x: x.mean(0) / x.norm(), [(EVEN, EVEN)]),
    "var": (lambda x: x.var(1), [(EVEN, EVEN)]),
    "product": (lambda x, y: x @ y, [(EVEN, EVEN), (EVEN, EVEN)]),
    "batched product": (lambda x, y: x @ y, [(EVEN, 2, EVEN), (EVEN, EVEN, 2)]),
    "linear": (F.linear, [(2, EVEN, EVEN), (EVEN, EVEN), (EVEN,)]),
    "layer norm": (lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), [(2, 2, 8 * EVEN), (8 * EVEN,), (8 * EVEN,)]),
    "root mean square": (lambda x: F.rms_norm(x, x.shape[-1:]), [(2, 2, 8 * EVEN)]),
    "checkpoint": (lambda x, y: checkpoint(lambda x: (x @ y).sin(), x), [(EVEN, EVEN), (EVEN, EVEN)]),
    "softmax": (lambda x: x.softmax(-1), [(EVEN, EVEN)]),
    "views": (lambda x: x.view(2, EVEN, EVEN, 2).transpose(1, 2).flatten(1, 2).unsqueeze(0).sin(), [(2, EVEN, 2 * EVEN)]),
    "flattened": (lambda x: x.flatten(0, 1).relu() @ x.flatten(0, 1).T, [(2, EVEN, 3)]),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), [(1, EVEN, EVEN, 2)] * 2),
    "embedding": (lambda w: w[genesis.tensor([[0, 3], [5, 1]])] if w.__class__ is genesis.Tensor else F.embedding(
        held(genesis.tensor([[0, 3], [5, 1]])), w), [(EVEN, EVEN)]),
    "cat": (lambda x, y: genesis.cat([x, y], 1).exp(), [(EVEN, 2), (EVEN, EVEN)]),
    "stack of many": (lambda x: genesis.stack(list(x.unbind(1)) * 8, 1), [(EVEN, 2)]),
    "index": (lambda x: x[1:4, ::2] * 3 + x[0, 1], [(EVEN, EVEN)]),
    "maximum": (lambda x: x.max(1).values + x.amax(1), [(EVEN, EVEN)]),
    "cumsum": (lambda x: x.cumsum(1), [(EVEN, EVEN)]),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), [(EVEN, 2, 3, 3), (EVEN, 2, 3, 3)]),
}


def held(tensor, *placements):
    return distribute_tensor(tensor, line(), placements or [Replicate()])


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def placements_of(shapes, most=8):
    """Combinations of placements, evenly chosen among all."""
    listed = [*itertools.product(*[[Replicate(), *map(Shard, range(len(shape)))] for shape in shapes])]
    return listed[:: -(-len(listed) // most)]


def check_operations_and_gradients_are_those_of_whole_tensors():
    for name, (function, shapes) in CASES.items():
        given = [common(shape, seed) for seed, shape in enumerate(shapes)]
        leaves = [x.clone().requires_grad_() for x in given]
        wanted = function(*leaves)
        seed = common(tuple(wanted.shape), 9)
        wanted.backward(seed)
        for placements in placements_of(shapes):
            parts = [held(x, each).requires_grad_() for x, each in zip(given, placements, strict=True)]
            found = function(*parts)
            assert isinstance(found, DTensor) and found.shape == wanted.shape
            close(whole(found), wanted, (name, placements, found.placements))
            found.backward(held(seed))
            for part, leaf, each in zip(parts, leaves, placements, strict=True):
                assert part.grad.placements == (each,)
                close(whole(part.grad), leaf.grad, (name, placements, each))


def check_results_have_the_placements_of_pytorchs_documentation():
    x, w = held(common((EVEN, EVEN)), Shard(0)), common((EVEN, EVEN), 1)
    assert (x + 1).relu().placements == (Shard(0),) and x.sum().placements == (Partial(),)
    assert (x @ held(w)).placements == (Shard(0),) and (x.t() @ held(w, Shard(0))).placements == (Partial(),)
    assert (held(w) @ held(w, Shard(1))).placements == (Shard(1),)
    assert x.redistribute(placements=[Replicate()]).placements == (Replicate(),)
    assert F.linear(held(w, Shard(1)), held(w, Shard(1)), held(w[0])).placements == (Partial(),)
    dist.barrier()
    before = genesis.debug.stats()["collective_bytes"]
    for y in (x.softmax(1), x.view(2, EVEN // 2, EVEN).sum(1) if size() == 2 else x.sum(1), F.layer_norm(x, (EVEN,))):
        assert y.placements == (Shard(0),)
        y.to_local().sum().item()
    assert genesis.debug.stats()["collective_bytes"] == before, "parts that fit are not sent"


def check_uneven_parts_and_writes():
    rows = common((2 * size() + 1, 3))
    x = held(rows, Shard(0)).requires_grad_()
    assert x.shape == rows.shape and sum(x.start) == -(-len(rows) // size()) * rank()
    close(whole(x), rows)
    y = (x * 2).sum(1)
    close(whole(y), (rows * 2).sum(1))
    y.backward(held(common((len(rows),), 1)))
    close(whole(x.grad), common((len(rows),), 1)[:, None].expand(rows.shape) * 2)
    with genesis.no_grad():
        x.mul_(3).add_(x, alpha=0.5)
        close(whole(x), rows * 4.5)
        x.copy_(rows)
        x[0] = 7.0
        for view in (x[1], x[1].detach(), x.view(-1).data) if size() > 1 else ():
            raises(RuntimeError, "a view of another", view.zero_)
        x[x == 7.0] = held(common((3,)))
        assert genesis.equal(x.full_tensor()[0], common((3,)))
        x[0] = 7.0
        assert x.placements == (Shard(0),) and x.full_tensor()[0].tolist() == [7.0] * 3
        assert x.max().item() == x.full_tensor().max().item()
    assert genesis.zeros_like(x).placements == (Shard(0),)
    genesis.manual_seed(1)
    drawn = [genesis.rand_like(x), F.dropout(held(rows, Shard(0)), 0.5)]
    genesis.manual_seed(1)
    for found, wanted in zip(drawn, (genesis.rand_like(rows), F.dropout(rows, 0.5)), strict=True):
        close(whole(found), wanted)
    layer = distribute_module(nn.Linear(EVEN, EVEN), line()).half()
    assert layer.weight.dtype is layer.weight.to_local().dtype is genesis.float16
    assert genesis.autograd.grad((x * x).sum(), x)[0].placements == (Shard(0),)


def check_views_of_parts_share_their_memory():
    w, wanted = held(common((EVEN, 4)), Shard(0)).requires_grad_(), common((EVEN, 4)).requires_grad_()
    x, y = w * 1, wanted * 1
    for z in (x, y):
        z[:, 1].zero_()
        z.t().mul_(2)
        z.view(EVEN, 2, 2)[:, 1].exp_() if z is y else z.view(EVEN, 2, 2)[:, 1, :].exp_()
        z.sin().sum().backward()
    close(whole(x), y)
    close(whole(w.grad), wanted.grad)
    held_part = x.detach()
    held_part.view(-1).to_local().zero_()
    assert not whole(x).any()


def check_elements_are_set_with_gradients():
    w, v = held(common((EVEN, 2)), Shard(0)).requires_grad_(), held(common((2,), 1)).requires_grad_()
    x = w * 2
    x[1] = v * 3
    (x * x).sum().backward()
    wanted = 8 * common((EVEN, 2))
    wanted[1] = 0.0
    close(whole(w.grad), wanted)
    close(whole(v.grad), 18 * common((2,), 1))


def check_leaves_stay_those_that_optimizers_and_hooks_know():
    layer, called = distribute_module(nn.Linear(EVEN, 2), line(), lambda name, module, mesh: module.register_parameter(
        "weight", nn.Parameter(distribute_tensor(common((2, EVEN)), mesh, [Shard(1)])))), []
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.5)
    layer.requires_grad_(False).requires_grad_(True)
    layer.weight.register_post_accumulate_grad_hook(lambda p: called.append(p.grad.placements))
    loose = held(common((EVEN, 2)), Shard(0)).requires_grad_()
    ((layer(held(common((1, EVEN)))) ** 2).sum() + (loose**2).sum()).backward()
    leaves = [*layer.parameters(), loose]
    norm = genesis.stack([whole(p.grad).norm() for p in leaves]).norm()
    close(nn.utils.clip_grad_norm_(leaves, 1.0), norm)
    wanted = common((2, EVEN)) - 0.5 * whole(layer.weight.grad)
    optimizer.step()
    close(whole(layer.weight), wanted)
    assert called == [(Shard(1),)]
    layer.weight.data = held(common((2, EVEN), 3))
    close(whole(layer.weight), common((2, EVEN), 3))


def check_local_parts_and_their_gradients():
    local = genesis.full((2, 2), rank() + 1.0, requires_grad=True)
    total = DTensor.from_local(local, line(), [Partial()])
    (total.redistribute(placements=[Replicate()]) * 2).to_local().sum().backward()
    close(local.grad, genesis.full((2, 2), 2.0))
    assert total.sum().item() == 4 * sum(range(1, size() + 1))
    for reduce in ("sum", "prod", "avg", "max"):
        close(whole(held(common((2, 2))).redistribute(placements=[Partial(reduce)])), common((2, 2)))
    for reduce, wanted in (("avg", (size() + 1) / 2), ("max", size()), ("min", 1)):
        assert DTensor.from_local(local.detach(), line(), [Partial(reduce)]).full_tensor()[0, 0].item() == wanted
    part = held(common((EVEN, 2)), Shard(0)).requires_grad_()
    (part.to_local() * (rank() + 1)).sum().backward()
    close(part.grad.to_local(), genesis.full(part.to_local().shape, rank() + 1.0))
    copy = held(common((2, 2))).requires_grad_()
    (copy.to_local(grad_placements=[Partial()]) * (rank() + 1)).sum().backward()
    close(copy.grad.to_local(), genesis.full((2, 2), float(sum(range(1, size() + 1)))))
    raises(RuntimeError, "got mixed torch.Tensor and DTensor", lambda: part + genesis.ones(EVEN, 2))
    with implicit_replication():
        close(whole(part + genesis.ones(EVEN, 2)), common((EVEN, 2)) + 1)


def check_modules_compile_and_train_as_whole_ones():
    genesis.manual_seed(3)
    alone = nn.Sequential(nn.Linear(4, EVEN), nn.Tanh(), nn.Linear(EVEN, 2))

    def columns(name, module, mesh):
        if name == "0":
            for own, parameter in [*module.named_parameters(recurse=False)]:
                module.register_parameter(own, nn.Parameter(distribute_tensor(parameter, mesh, [Shard(0)])))

    def losses(model, move, compiled):
        optimizer = genesis.optim.Adam(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(move(x)) - move(y)) ** 2).mean()
            loss.backward()
            optimizer.step()
            return whole(loss)

        run_step = genesis.compile(step) if compiled else step
        return [run_step(common((EVEN, 4), k), common((EVEN, 2), 50 + k)).item() for k in range(6)]

    state = {name: value.clone() for name, value in alone.state_dict().items()}
    wanted = losses(alone, lambda x: x, False)
    for compiled in (False, True):
        model = nn.Sequential(nn.Linear(4, EVEN), nn.Tanh(), nn.Linear(EVEN, 2))
        model.load_state_dict(state)
        model = distribute_module(model, line(), columns, output_fn=lambda module, output, mesh: output.redistribute(
            placements=[Replicate()]))
        assert [p.placements[0] for p in model.parameters()] == [Shard(0), Shard(0), Replicate(), Replicate()]
        found = losses(model, lambda x: DTensor.from_local(x, line(), [Replicate()]), compiled)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def check_two_axes_of_a_mesh():
    if size() % 2:
        return
    mesh = dist.init_device_mesh("cpu", (2, size() // 2), mesh_dim_names=("data", "tensor"))
    given, weight = common((8, 4)), common((8, 4), 1)
    kinds = [Replicate(), Shard(0), Shard(1)]
    for source, target in itertools.product(itertools.product(kinds, kinds), repeat=2):  # also by way of nested parts
        moved = distribute_tensor(given, mesh, source).redistribute(placements=target)
        close(moved.to_local(), distribute_tensor(given, mesh, target).to_local(), (source, target))
    for x_placements, w_placements in (
        ([Shard(0), Replicate()], [Replicate(), Shard(0)]), ([Shard(0), Shard(1)], [Replicate(), Shard(1)]),
        ([Shard(0), Shard(0)], [Shard(0), Shard(0)]), ([Replicate(), Shard(1)], [Shard(1), Replicate()]),
    ):
        x, w = (distribute_tensor(each, mesh, placed).requires_grad_() for each, placed in (
            (given, x_placements), (weight, w_placements)))
        leaf, other = given.clone().requires_grad_(), weight.clone().requires_grad_()
        F.linear(leaf, other).exp().mean().backward()
        found = F.linear(x, w).exp().mean()
        close(found.full_tensor(), F.linear(given, weight).exp().mean())
        found.backward()
        close(x.grad.full_tensor(), leaf.grad)
        close(w.grad.full_tensor(), other.grad)


if __name__ == "__main__":
    run(globals())
