"""Checks of an optimizer with settings of PyTorch's optimizer database."""

import copy
import io
import pickle
import warnings
from typing import NamedTuple

import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, OptimizerInfo, OptimizerInput, optim_db

import genesis
from tests.conformance.converting import UnconvertibleError, assert_close, assert_same, converted, numpy_of

SHAPES = ((3, 4), (5, 2), (4, 4))
STEPS = 6


class Entry(NamedTuple):
    """An optimizer and its settings."""

    info: OptimizerInfo
    given: OptimizerInput


def entries():
    """Every optimizer with every of its settings."""
    return [Entry(info, given) for info in optim_db for given in info.optim_inputs_func("cpu")]


def title(entry):
    """The optimizer's name and its settings."""
    return f"{entry.info.name} {entry.given.kwargs or ''}".strip()


class Pair:
    """torch's optimizer and this library's, of parameters with the same values, which are given the same gradients."""

    def __init__(self, entry, dtype=torch.float32, groups=False, **others):
        generator = torch.Generator().manual_seed(0)
        self.info, self.generator = entry.info, generator
        settings = {**entry.given.kwargs, **others}
        self.theirs = [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in SHAPES]
        self.ours = [converted(p.detach()).requires_grad_() for p in self.theirs]
        kind = getattr(genesis.optim, entry.info.name)
        self.their_optimizer = entry.info.optim_cls(_grouped(self.theirs, groups), **settings)
        self.our_optimizer = kind(_grouped(self.ours, groups), **converted(settings))

    def closures(self):
        """A closure of each, over a sum of squares."""

        def closure(library, parameters, optimizer):
            optimizer.zero_grad()
            loss = sum((p * p * 0.5 + p * 0.1).sum() for p in parameters)
            loss.backward()
            return loss

        return (lambda: closure(torch, self.theirs, self.their_optimizer),
                lambda: closure(genesis, self.ours, self.our_optimizer))

    def step(self, count=1):
        """`count` steps by the same gradients."""
        theirs, ours = self.closures()
        for _ in range(count):
            if self.info.step_requires_closure:
                self.their_optimizer.step(theirs)
                self.our_optimizer.step(ours)
                continue
            for p, q in zip(self.theirs, self.ours, strict=True):
                p.grad = torch.randn(p.shape, generator=self.generator, dtype=p.dtype)
                q.grad = converted(p.grad)
                if self.info.only_supports_sparse_grads:
                    p.grad, q.grad = p.grad.to_sparse(1), q.grad.to_sparse(1)
            self.their_optimizer.step()
            self.our_optimizer.step()

    def compare(self, what=""):
        """The parameters agree."""
        for place, (p, q) in enumerate(zip(self.theirs, self.ours, strict=True)):
            rounded = self.info.name == "Muon"  # its iteration is one of bfloat16
            scale = 1 if p.dtype is torch.float32 and rounded else 0.05 if p.dtype is torch.float32 else 1e3 if rounded else 1
            assert_close(q.detach().numpy(), numpy_of(p), f"{what} parameter {place}", scale)


def _grouped(parameters, groups):
    if not groups:
        return parameters
    return [{"params": parameters[:1], "lr": 0.02}, {"params": parameters[1:]}]


def check_steps(entry):
    """Parameters after several steps, in two dtypes."""
    for dtype in (torch.float32, torch.float64):
        pair = Pair(entry, dtype)
        pair.step(STEPS)
        pair.compare(str(dtype))


def check_state(entry):
    """The state dict: its keys, their order, and values; before a step, and after some."""
    pair = Pair(entry)
    _same_state(pair.our_optimizer.state_dict(), pair.their_optimizer.state_dict())
    pair.step(2)
    _same_state(pair.our_optimizer.state_dict(), pair.their_optimizer.state_dict())


def _same_state(ours, theirs):
    assert [*ours] == [*theirs]
    assert [*ours["state"]] == [*theirs["state"]], f"state of {[*ours['state']]} for {[*theirs['state']]}"
    for position, want in theirs["state"].items():
        got = ours["state"][position]
        assert {*got} == {*want}, f"state {sorted(got)} for {sorted(want)}"
        for name, value in want.items():
            if isinstance(value, torch.Tensor):
                assert_same(got[name], value, name)
    for got, want in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        assert {*got} == {*want}, f"group {sorted(got)} for {sorted(want)}"
        for name, value in converted(want).items():
            assert got[name] == value, f"{name}: {got[name]} for {value}"


def check_groups(entry):
    """Groups with settings of their own, and one that is added."""
    if not getattr(entry.info, "supports_param_groups", True):
        raise NotImplementedError
    pair = Pair(entry, groups=True)
    pair.step(3)
    pair.compare("groups")
    extra = torch.ones(2, 3).requires_grad_()
    own = converted(extra.detach()).requires_grad_()
    pair.their_optimizer.add_param_group({"params": [extra]})
    pair.our_optimizer.add_param_group({"params": [own]})
    pair.theirs, pair.ours = [*pair.theirs, extra], [*pair.ours, own]
    pair.step(2)
    pair.compare("an added group")


def check_load(entry):
    """A state dict of torch's is loaded, and steps continue as torch's do."""
    pair = Pair(entry)
    pair.step(3)
    fresh = Pair(entry)
    fresh.our_optimizer.load_state_dict(converted(pair.their_optimizer.state_dict()))
    fresh.ours = _values_of(fresh.ours, [numpy_of(p) for p in pair.theirs])
    fresh.theirs, fresh.their_optimizer = pair.theirs, pair.their_optimizer
    fresh.step(2)
    fresh.compare("loaded")


def _values_of(parameters, values):
    with genesis.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(genesis.tensor(value.copy()))
    return parameters


def check_export(entry):
    """torch loads the state dict, and its steps continue as these do."""
    pair = Pair(entry)
    pair.step(3)
    fresh = Pair(entry)
    fresh.their_optimizer.load_state_dict(_exported(pair.our_optimizer.state_dict()))
    with torch.no_grad():
        for p, q in zip(fresh.theirs, pair.ours, strict=True):
            p.copy_(torch.tensor(q.detach().numpy()))
    fresh.ours, fresh.our_optimizer = pair.ours, pair.our_optimizer
    fresh.step(2)
    fresh.compare("exported")


def _exported(value):
    if isinstance(value, genesis.Tensor):
        return torch.tensor(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {key: _exported(item) for key, item in value.items()}
    return [_exported(item) for item in value] if isinstance(value, list) else value


def check_resume(entry):
    """Saved and loaded, copied and pickled: steps continue."""
    pair = Pair(entry)
    pair.step(3)
    file = io.BytesIO()
    genesis.save(pair.our_optimizer.state_dict(), file)
    file.seek(0)
    fresh = Pair(entry)
    fresh.our_optimizer.load_state_dict(genesis.load(file))
    fresh.ours = _values_of(fresh.ours, [q.detach().numpy() for q in pair.ours])
    fresh.theirs, fresh.their_optimizer = pair.theirs, pair.their_optimizer
    fresh.step(2)
    fresh.compare("resumed")
    fresh.our_optimizer = pickle.loads(pickle.dumps(copy.deepcopy(fresh.our_optimizer)))
    fresh.ours = [p for group in fresh.our_optimizer.param_groups for p in group["params"]]
    fresh.step(1)
    fresh.compare("copied")


def check_closures(entry):
    """`step(closure)` returns the loss."""
    if entry.info.only_supports_sparse_grads:
        raise NotImplementedError
    pair = Pair(entry)
    theirs, ours = pair.closures()
    for _ in range(2):
        want, got = pair.their_optimizer.step(theirs), pair.our_optimizer.step(ours)
        assert_close(got.detach().numpy(), numpy_of(want), "loss")
    pair.compare("by closures")


def check_schedules(entry):
    """The learning rates and parameters under the database's schedules."""
    if not entry.info.scheduler_inputs:
        raise NotImplementedError
    for makers in entry.info.scheduler_inputs:
        pair = Pair(entry)
        theirs = [maker(pair.their_optimizer) for maker in makers]
        ours = []
        for scheduler in theirs:
            made = getattr(genesis.optim.lr_scheduler, type(scheduler).__name__)
            names = ("step_size", "gamma", "total_iters", "start_factor", "factor", "power", "end_factor")
            settings = {name: getattr(scheduler, name) for name in names if hasattr(scheduler, name)}
            ours.append(made(pair.our_optimizer, **settings))
        for _ in range(4):
            pair.step()
            for ours_one, theirs_one in zip(ours, theirs, strict=True):
                plateau = isinstance(theirs_one, torch.optim.lr_scheduler.ReduceLROnPlateau)
                ours_one.step(*[1.0] * plateau)
                theirs_one.step(*[1.0] * plateau)
            for a, b in zip(pair.our_optimizer.param_groups, pair.their_optimizer.param_groups, strict=True):
                assert abs(float(a["lr"]) - float(b["lr"])) <= 1e-7 * abs(float(b["lr"])), f"{a['lr']} for {b['lr']}"
        pair.compare("scheduled")


def check_hints(entry):
    """What tells torch how to run a step is taken, and steps are the same."""
    for hint in entry.info.supported_impls:
        if hint == "differentiable":  # steps are not derived here, and say so: see docs/differences.md
            continue
        pair = Pair(entry)
        pair.our_optimizer = getattr(genesis.optim, entry.info.name)(pair.ours, **converted(entry.given.kwargs), **{hint: True})
        pair.step(2)
        pair.compare(hint)
    if entry.info.has_capturable_arg:
        getattr(genesis.optim, entry.info.name)(Pair(entry).ours, capturable=False)


def check_hooks(entry):
    """Hooks before and after steps and around state dicts are called with what torch gives them."""
    pair = Pair(entry)
    for optimizer in (pair.our_optimizer, pair.their_optimizer):
        optimizer.seen = []
        optimizer.register_step_pre_hook(lambda o, args, kwargs: o.seen.append(("before", len(args), sorted(kwargs))))
        optimizer.register_step_post_hook(lambda o, args, kwargs: o.seen.append(("after", len(args), sorted(kwargs))))
        optimizer.register_state_dict_pre_hook(lambda o: o.seen.append("state"))
        optimizer.register_state_dict_post_hook(lambda o, state: o.seen.append(sorted(state)))
        optimizer.register_load_state_dict_pre_hook(lambda o, state: o.seen.append("load"))
        optimizer.register_load_state_dict_post_hook(lambda o: o.seen.append("loaded"))
    pair.step(1)
    for optimizer in (pair.our_optimizer, pair.their_optimizer):
        optimizer.load_state_dict(optimizer.state_dict())
    assert pair.our_optimizer.seen == pair.their_optimizer.seen, f"{pair.our_optimizer.seen} for {pair.their_optimizer.seen}"


def check_printed(entry):
    """What is printed."""
    pair = Pair(entry)
    assert repr(pair.our_optimizer) == repr(pair.their_optimizer), f"{pair.our_optimizer!r} for {pair.their_optimizer!r}"


def check_errors(entry):
    """What torch refuses, or warns of, is refused or warned of."""
    if entry.given.kwargs:
        raise NotImplementedError
    kind = getattr(genesis.optim, entry.info.name)
    for error in entry.info.optim_error_inputs_func("cpu", torch.float32):
        given = error.optimizer_error_input
        if given.kwargs.get("foreach"):  # which is of no effect here, so that nothing contradicts it
            continue
        try:
            if isinstance(given.params, torch.Tensor):
                params = converted(given.params.detach()).requires_grad_()
            else:
                params = _own(given.params) if given.params is not None else [genesis.ones(2, 3).requires_grad_()]
            settings = converted(given.kwargs)
        except UnconvertibleError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            try:
                optimizer = kind(params, **settings)
                if error.error_on is OptimizerErrorEnum.STEP_ERROR:
                    optimizer.step()
            except error.error_type:
                continue
            except ValueError:
                if error.error_type is UserWarning:  # a parameter twice in a group is refused here: see docs/differences.md
                    continue
                raise
        raise AssertionError(f"nothing raised, want {error.error_type} {error.error_regex!r}")


def _own(value, seen=None):
    """The parameters in a nesting; the same tensor twice stays the same."""
    seen = {} if seen is None else seen
    if isinstance(value, torch.Tensor):
        if value not in seen:
            seen[value] = converted(value.detach()).requires_grad_()
        return seen[value]
    if isinstance(value, dict):
        return {key: _own(item, seen) for key, item in value.items()}
    return type(value)([_own(item, seen) for item in value]) if isinstance(value, list | tuple) else value


CHECKS = {
    "steps": check_steps, "state": check_state, "groups": check_groups, "load": check_load, "export": check_export,
    "resume": check_resume, "closures": check_closures, "schedules": check_schedules, "hints": check_hints,
    "hooks": check_hooks, "printed": check_printed, "errors": check_errors,
}
