"""The table of operations is complete, documented and up to date."""

from pathlib import Path

from genesis.ops import OPERATIONS
from tools.operator_table import arguments, gradient, kind, main, summary, table

TABLE = Path(__file__).parents[2] / "docs" / "operators.md"


def test_the_table_in_the_documents_is_up_to_date():
    assert TABLE.read_text(encoding="utf-8") == table(), "run python tools/operator_table.py"


def test_it_is_written_where_one_says(tmp_path):
    main(["-o", str(tmp_path / "operators.md")])
    assert (tmp_path / "operators.md").read_text(encoding="utf-8") == table()


def test_every_row_says_what_it_is():
    assert not [name for name, row in OPERATIONS.items() if not summary(row)]


def test_rows_tell_primitives_from_composites():
    sums, spread, soft = OPERATIONS["sum"], OPERATIONS["expand"], OPERATIONS["softmax"]
    assert arguments(sums) == "input, dim=None, keepdim=False, *, dtype=None"
    assert [kind(row) for row in (sums, spread, soft)] == ["primitive: reduce", "primitive: view", "composite"]
    assert [gradient(row) for row in (sums, OPERATIONS["argmax"], soft)] == ["yes", "no", "by its parts"]
