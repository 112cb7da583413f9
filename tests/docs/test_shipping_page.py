"""docs/shipping.md: what it shows runs, in its order."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "shipping.md"


def test_the_examples_run():
    found = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    exec("\n".join(found), {})
