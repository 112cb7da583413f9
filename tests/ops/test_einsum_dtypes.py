"""`einsum` of several dtypes beside torch's: they promote where no letter is contracted."""

import pytest

import genesis

torch = pytest.importorskip("torch")


def operands(library, names):
    made = {"i": library.arange(3), "f": library.ones(3) * 1.5, "d": library.ones(3, dtype=library.float64),
            "m": library.ones(3, 3) * 2, "u": library.ones(1, dtype=library.float64), "r": library.ones(1, 3) * 2}
    return [made[name] for name in names]


@pytest.mark.parametrize(("equation", "names"), [
    ("i,j->ij", "if"), ("i,i->i", "fi"), ("i,ij->ij", "im"), ("i,j,k->ijk", "ifd"), ("i,j->i", "if"), ("...,j->...j", "di"),
    ("i,ij->j", "ur"),
])
def test_dtypes_promote_where_no_letter_is_contracted(equation, names):
    ours, theirs = (library.einsum(equation, *operands(library, names)) for library in (genesis, torch))
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2] and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(("equation", "names"), [("i,i->", "if"), ("ij,i->j", "mi"), ("i,j,jk->ik", "ffd")])
def test_contracted_operands_have_one_dtype(equation, names):
    for library in (genesis, torch):
        given = operands(library, names)
        given[-1] = library.ones(3, 3, dtype=given[-1].dtype) if "k" in equation else given[-1]
        with pytest.raises((TypeError, RuntimeError), match=r"dtype|scalar type"):
            library.einsum(equation, *given)
