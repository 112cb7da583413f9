"""The results of rows that return several Values: named tuples."""

# ruff: noqa: UP014  (a line each, as all their fields are Values)

from __future__ import annotations

from typing import NamedTuple

from genesis.ir.graph import Value

Cholesky = NamedTuple("Cholesky", [("L", Value), ("info", Value)])
Eigen = NamedTuple("Eigen", [("eigenvalues", Value), ("eigenvectors", Value)])
Extrema = NamedTuple("Extrema", [("min", Value), ("max", Value)])
Extremum = NamedTuple("Extremum", [("values", Value), ("indices", Value)])
Factored = NamedTuple("Factored", [("LU", Value), ("pivots", Value)])
FactoredInfo = NamedTuple("FactoredInfo", [("LU", Value), ("pivots", Value), ("info", Value)])
Indefinite = NamedTuple("Indefinite", [("LD", Value), ("pivots", Value)])
IndefiniteInfo = NamedTuple("IndefiniteInfo", [("LD", Value), ("pivots", Value), ("info", Value)])
Inverse = NamedTuple("Inverse", [("inverse", Value), ("info", Value)])
PLU = NamedTuple("PLU", [("P", Value), ("L", Value), ("U", Value)])
Parts = NamedTuple("Parts", [("mantissa", Value), ("exponent", Value)])
QR = NamedTuple("QR", [("Q", Value), ("R", Value)])
Reflected = NamedTuple("Reflected", [("a", Value), ("tau", Value)])
SVD = NamedTuple("SVD", [("U", Value), ("S", Value), ("Vh", Value)])
SignAndLog = NamedTuple("SignAndLog", [("sign", Value), ("logabsdet", Value)])
Solved = NamedTuple("Solved", [("result", Value), ("info", Value)])
Sorted = NamedTuple("Sorted", [("values", Value), ("indices", Value)])
Transposed = NamedTuple("Transposed", [("U", Value), ("S", Value), ("V", Value)])
Triangular = NamedTuple("Triangular", [("solution", Value), ("cloned_coefficient", Value)])

Sorted.__doc__ = "Values in order, and the positions that they came from."
for _kind, _rows in {
    Cholesky: "`cholesky_ex`", Eigen: "`eigh`", Extrema: "`aminmax`", Extremum: "`max` and `min` along one axis",
    Factored: "`lu_factor`", FactoredInfo: "`lu_factor_ex`", Indefinite: "`ldl_factor`",
    IndefiniteInfo: "`ldl_factor_ex`", Inverse: "`inv_ex`", PLU: "`linalg.lu` and `lu_unpack`",
    Parts: "`frexp`", QR: "`qr`", SVD: "`linalg.svd`", SignAndLog: "`slogdet`", Reflected: "`geqrf`",
    Solved: "`solve_ex`", Transposed: "`svd`",
    Triangular: "`triangular_solve`",
}.items():
    _kind.__doc__ = f"The result of {_rows}."
