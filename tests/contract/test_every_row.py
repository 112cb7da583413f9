"""Every row of the contract has a test that bears its name."""

import ast
import itertools
from pathlib import Path

ROWS = [
    *(f"s0_{i}" for i in range(1, 33) if i != 23), *(f"s1_{i}" for i in range(1, 18)), *(f"s2_{i}" for i in range(1, 16)),
    *(f"s3_{i}" for i in range(1, 18)), *(f"c{i}" for i in range(1, 28)),
]


def test_every_row_of_the_contract_has_a_test():
    names = [
        node.name
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    covered = {row for row, name in itertools.product(ROWS, names) if name.startswith(f"test_{row}_")}
    assert [row for row in ROWS if row not in covered] == []
