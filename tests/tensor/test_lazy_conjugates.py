"""conj() is a view: its elements are computed where they are read, and written through it conjugated."""

import copy
import io

import numpy as np
import pytest
import torch

import genesis


def test_conjugates_share_storage():
    z = genesis.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]])
    c = z.conj()
    assert c.is_conj() and not z.is_conj() and c.data_ptr() == z.data_ptr()
    c[0] = 1j
    z[1, 1] = 5j
    assert z.tolist() == [[-1j, -1j], [0.5j, 5j]] and c.tolist() == [[1j, 1j], [-0.5j, -5j]]
    back = c.conj()
    back.zero_()
    assert not back.is_conj() and not z.any() and not c.any()


def test_which_views_and_copies_are_lazily_conjugated():
    z = genesis.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]])
    c = z.conj()
    for view in (c.T, c[0], c.detach(), c.flatten(), c[0].expand(2, 2), c.diagonal(), *c.unbind(), *c.split(1), z.H, z.mH,
                 z.adjoint()):
        assert view.is_conj()
    for other in (c.clone(), c * 1, -c, c.T.flatten(), c[[0]], c.resolve_conj(), c.conj_physical(), genesis.empty_like(c),
                  c.real, genesis.stack([c, c]), copy.deepcopy(c), genesis.ones(2).conj()):
        assert not other.is_conj()
    assert z.resolve_conj() is z and c.contiguous() is c and c.to(z.dtype) is c


def test_imaginary_parts_of_conjugates_are_negatives_in_place():
    z = genesis.tensor([1 + 2j, 3 - 1j])
    parts = z.conj().imag
    assert parts.is_neg() and parts.tolist() == [-2, 1]
    parts[0] = 7
    z.conj().real.mul_(2)
    assert z.tolist() == [2 - 7j, 6 - 1j] and parts.tolist() == [7, 1]
    assert parts.resolve_neg().numpy().tolist() == [7, 1] and z.imag.resolve_neg().tolist() == [-7, -1]


def test_gradients_flow_through_writes_to_conjugates():
    def gradient(library):
        z = library.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        y = z * 2
        y.conj().mul_(1j)
        y.conj().imag[0] = 3.0
        (found,) = library.autograd.grad(y.real.sum() + 2 * (y.imag ** 2).sum(), [z])
        return found.tolist()

    assert gradient(genesis) == gradient(torch)


def test_memory_that_numpy_writes_to():
    values = np.array([1 + 2j, 3 - 1j])
    c = genesis.from_numpy(values).conj()
    values[0] = 5j
    assert c.tolist() == [-5j, 3 + 1j]
    values[1] = 1j
    assert (c * 2).tolist() == [-10j, -2j]
    c.mul_(1j)
    assert values.tolist() == [5, 1]


def test_what_wants_memory_of_its_own_is_refused():
    c = genesis.tensor([1 + 2j]).conj()
    for refused in (lambda: c.numpy(), lambda: np.asarray(c), lambda: c.imag.numpy(), lambda: genesis.view_as_real(c),
                    lambda: c.view(genesis.float32)):
        with pytest.raises(RuntimeError, match="a lazily"):
            refused()
    with pytest.raises(BufferError, match="a lazily conjugated tensor has no memory of its own"):
        c.__dlpack__()
    assert c.numpy(force=True).tolist() == [1 - 2j]


def test_saved_conjugates_are_values():
    z, file = genesis.tensor([1 + 2j, 3 - 1j]), io.BytesIO()
    genesis.save({"c": z.conj(), "i": z.conj().imag}, file)
    file.seek(0)
    read = torch.load(file)
    assert read["c"].tolist() == [1 - 2j, 3 + 1j] and read["i"].tolist() == [-2, 1]


def test_data_set_to_conjugates():
    x, z = genesis.tensor([0j]), genesis.tensor([1 + 2j])
    x.data = z.conj()
    z.mul_(2)
    assert x.is_conj() and x.tolist() == [2 - 4j]


def test_strided_views_of_conjugates():
    z = genesis.tensor([1 + 2j, 3 - 1j, 4j])
    part = z[:2].conj().as_strided((2,), (1,), 1)
    assert part.is_conj() and part.tolist() == [3 + 1j, -4j]
    part.mul_(1j)
    assert z.tolist() == [1 + 2j, -1 - 3j, 4]


def test_compiled_functions_take_write_and_return_conjugates():
    @genesis.compile
    def step(x, y):
        x.mul_(2)
        y = y + 1
        return y.conj(), x.conj() * y

    z, other = genesis.tensor([1 + 2j, 3 - 1j]), genesis.tensor([1j, 2])
    for k in range(1, 5):
        shown, product = step(z.conj(), other)
        assert z.tolist() == [2**k * (1 + 2j), 2**k * (3 - 1j)]
        assert shown.is_conj() and shown.tolist() == [1 - 1j, 3]
        np.testing.assert_allclose(product.numpy(), z.numpy() * (other.numpy() + 1), rtol=1e-6)
    plain = z.clone()
    step(z, other)  # a view or not, conjugated or not: guards tell them apart
    assert z.tolist() == (plain * 2).tolist()
    for view in (z[:], z[:].conj()):
        before = view.tolist()
        step(view, other)
        assert view.tolist() == [2 * b for b in before]
