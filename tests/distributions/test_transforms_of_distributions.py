"""Transforms and constraints beside PyTorch's."""

import numpy as np
import pytest
import torch
import torch.distributions as theirs

import genesis
import genesis.distributions as ours
from tests.distributions.cases import definite, lower, positive, real, same
from tests.tolerances import to_numpy

TRANSFORMS = [
    ("ExpTransform", (), real(4)), ("PowerTransform", (2.5,), positive(4)), ("SigmoidTransform", (), real(4)),
    ("SoftplusTransform", (), real(4)), ("TanhTransform", (), real(4)), ("AbsTransform", (), real(4)),
    ("AffineTransform", (1.0, -2.0), real(4)), ("AffineTransform", (1.0, 2.0, 1), real(3, 4)),
    ("SoftmaxTransform", (), real(3, 4)), ("StickBreakingTransform", (), real(3, 4)),
    ("LowerCholeskyTransform", (), real(2, 3, 3)), ("PositiveDefiniteTransform", (), real(2, 3, 3)),
    ("CorrCholeskyTransform", (), real(2, 6)), ("ReshapeTransform", ((2, 3), (6,)), real(4, 2, 3)),
]
CONSTRAINTS = {
    "real": lambda c: c.real, "positive": lambda c: c.positive, "greater_than": lambda c: c.greater_than(2.0),
    "less_than": lambda c: c.less_than(-1.0), "unit_interval": lambda c: c.unit_interval,
    "interval": lambda c: c.interval(-1.0, 3.0), "half_open_interval": lambda c: c.half_open_interval(-1.0, 3.0),
    "simplex": lambda c: c.simplex, "corr_cholesky": lambda c: c.corr_cholesky, "lower_cholesky": lambda c: c.lower_cholesky,
    "positive_definite": lambda c: c.positive_definite, "real_vector": lambda c: c.real_vector,
    "independent": lambda c: c.independent(c.positive, 1), "stack": lambda c: c.stack([c.real, c.positive, c.real], 0),
    "cat": lambda c: c.cat([c.real, c.positive], 0, [1, 2]), "nonnegative": lambda c: c.nonnegative,
    "greater_than_eq": lambda c: c.greater_than_eq(1.0),
}


@pytest.mark.parametrize(("name", "settings", "values"), TRANSFORMS)
def test_transforms_are_torchs(name, settings, values):
    a, b = getattr(theirs, name)(*settings), getattr(ours, name)(*settings)
    x, mine = torch.tensor(values), genesis.tensor(values)
    y = a(x)
    image = genesis.tensor(y.numpy())
    same("forward", y, b(mine))
    same("inverse", a.inv(y), b.inv(image))
    assert (b.inv.inv == b, b.inv == b.inv) == (True, True)
    assert (a.bijective, a.domain.event_dim, a.codomain.event_dim) == (b.bijective, b.domain.event_dim, b.codomain.event_dim)
    assert tuple(a.forward_shape(x.shape)) == tuple(b.forward_shape(values.shape))
    assert tuple(a.inverse_shape(y.shape)) == tuple(b.inverse_shape(tuple(y.shape)))
    if a.bijective:
        same("log_abs_det_jacobian", a.log_abs_det_jacobian(x, y), b.log_abs_det_jacobian(mine, image))
        whole = theirs.ComposeTransform([a, theirs.IndependentTransform(theirs.ExpTransform(), a.codomain.event_dim)])
        parts = ours.ComposeTransform([b, ours.IndependentTransform(ours.ExpTransform(), b.codomain.event_dim)])
        same("chain", whole.log_abs_det_jacobian(x, whole(x)), parts.log_abs_det_jacobian(mine, parts(mine)))
        assert parts.inv.inv == parts


@pytest.mark.parametrize("name", ["CatTransform", "StackTransform"])
def test_parts_are_transformed_as_in_torch(name):
    values = real(4, 3)

    def made(library, x):
        parts = [library.ExpTransform(), library.AffineTransform(0.0, 3.0), library.identity_transform]
        transform = getattr(library, name)(parts, dim=1)
        y = transform(x)
        return y, transform.inv(y), transform.log_abs_det_jacobian(x, y)

    for what, a, b in zip(("result", "inverse", "jacobian"), made(theirs, torch.tensor(values)),
                          made(ours, genesis.tensor(values)), strict=True):
        same(what, a, b)


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_to_constraints_are_torchs(registry, name):
    a, b = CONSTRAINTS[name](theirs.constraints), CONSTRAINTS[name](ours.constraints)
    assert repr(a) == repr(b)
    values = real(2, 3) if name == "corr_cholesky" else real(3, 3)
    try:
        wanted = getattr(theirs, registry)(a)(torch.tensor(values))
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            getattr(ours, registry)(b)
        return
    found = getattr(ours, registry)(b)(genesis.tensor(values))
    same(name, wanted, found)
    assert bool(b.check(found).all())


def test_constraints_check_what_torchs_do():
    samples = [real(3, 3) * 3, np.round(real(3, 3)), np.full((3, 3), np.nan), np.eye(3), definite(3), lower(3),
               np.abs(np.round(real(4, 3))), np.full((3, 4), 0.25)]
    named = [name for name in theirs.constraints.__all__
             if isinstance(getattr(theirs.constraints, name), theirs.constraints.Constraint) and name != "dependent"]
    compared = 0
    for make in [*CONSTRAINTS.values(), *[lambda c, name=name: getattr(c, name) for name in named]]:
        a, b = make(theirs.constraints), make(ours.constraints)
        assert (a.event_dim, a.is_discrete) == (b.event_dim, b.is_discrete)
        for values in samples:
            try:
                wanted = a.check(torch.tensor(values))
            except (RuntimeError, IndexError):  # a matrix that is none
                continue
            np.testing.assert_array_equal(to_numpy(wanted), to_numpy(b.check(genesis.tensor(values))), err_msg=repr(a))
            compared += 1
    assert compared > 250


def test_a_cache_returns_the_argument_itself():
    transform = ours.TanhTransform(cache_size=1)
    x = genesis.tensor([30.0])
    assert transform.inv(transform(x)) is x
    assert ours.TanhTransform().inv(transform(x)).item() == float("inf")


@pytest.mark.parametrize(("name", "settings"), [
    ("ExpTransform", ()), ("PowerTransform", (2.0,)), ("AbsTransform", ()), ("AffineTransform", (1.0, 2.0)),
    ("SoftmaxTransform", ()),
])
def test_transforms_of_users_classes_are_equal_as_torchs(name, settings):
    found = []
    for library in (theirs, ours):
        kind = getattr(library, name)
        one, other, *rest = [type("Mine", (kind,), {})(*settings) for _ in range(2)] + [library.SigmoidTransform()]
        found.append([[a == b for a in (kind(*settings), one, *rest)] for b in (kind(*settings), other, *rest)])
    assert found[0] == found[1]


def test_a_transform_with_slots_of_its_own_is_given_a_cache():
    class Scaled(ours.Transform):
        __slots__ = ("factor",)

        def _call(self, x):
            return x * self.factor

    scaled = Scaled()
    scaled.factor = 3.0
    again, x = scaled.with_cache(), genesis.tensor(2.0)
    assert again(x) is again(x)
    assert (again(x).item(), scaled(x) is scaled(x)) == (6.0, False)


def test_cdfs_make_uniform_numbers():
    normal = ours.Normal(genesis.tensor(0.5), 2.0)
    transform = ours.CumulativeDistributionTransform(normal)
    x = genesis.tensor([0.0, 1.0])
    assert np.allclose(to_numpy(transform.inv(transform(x))), to_numpy(x), atol=1e-5)
    assert np.allclose(to_numpy(transform.log_abs_det_jacobian(x, transform(x))), to_numpy(normal.log_prob(x)))


def test_a_transformed_distribution_falls_where_its_transforms_do():
    base = ours.Normal(0.0, 1.0)
    falling = ours.TransformedDistribution(base, [ours.AffineTransform(1.0, -2.0), ours.ExpTransform()])
    x = falling.icdf(genesis.tensor([0.1, 0.5, 0.9]))
    assert np.allclose(to_numpy(falling.cdf(x)), [0.1, 0.5, 0.9], atol=1e-6)
    assert (np.diff(to_numpy(x)) > 0).all()
