"""docs/extending.md is carried out: its blocks go into a copy of the package, and what they add is checked there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n# (genesis/\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES = {"softcap": 1, "cbrt": 2, "tanhexp": 2, "Lion": 1}  # what each of the four may cost

CHECKS = """
import numpy as np, genesis
from genesis import nn
from genesis.nn import functional as F
from genesis.optim.lion import Lion

assert genesis.__file__.startswith(ROOT), genesis.__file__
assert_close = lambda found, wanted, bound=2e-6: np.testing.assert_allclose(found.numpy(), wanted, rtol=bound, atol=1e-7)
gradcheck = genesis.autograd.gradcheck
values = np.array([-27.0, -1.5, -0.0, 0.0, 1e-30, 0.3, 8.0, 1e30, np.inf, -np.inf, np.nan], np.float32)
x = genesis.tensor(values)
leaf = genesis.tensor([-2.0, -0.7, 0.4, 3.0], dtype=genesis.float64, requires_grad=True)

# the primitive: values as NumPy's, in 64 and 16 bits too; its gradient; every name; a fused kernel; vmap
assert_close(genesis.cbrt(x), np.cbrt(values))
assert np.signbit(genesis.cbrt(x).numpy())[2]
wide = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-250, 250, 0.5)
assert_close(genesis.cbrt(genesis.tensor(wide, dtype=genesis.float64)), np.cbrt(wide), 1e-15)
assert_close(genesis.cbrt(genesis.tensor([8.0, 0.1], dtype=genesis.float16)), np.cbrt(np.float16([8.0, 0.1])), 1e-3)
gradcheck(genesis.cbrt, (leaf,))
genesis.autograd.gradgradcheck(genesis.cbrt, (leaf,))
for found in (x.cbrt(), x.cube_root(), genesis.cube_root(x), genesis.special.cbrt(x), genesis.ops.cbrt(x)):
    assert_close(found, np.cbrt(values))
y = genesis.tensor([8.0, 27.0])
assert y.cbrt_() is y and y.cube_root_().tolist() == genesis.tensor([2.0, 3.0]).cbrt().tolist()
assert len(genesis.debug.program(genesis.cbrt(x * 2 + 1) - 3).kernels) == 1
assert "cbrt" in dir(genesis.special) and "cbrt" in genesis.special.__all__
assert_close(genesis.vmap(genesis.cbrt)(genesis.tensor([[8.0], [27.0]])), [[2.0], [3.0]])

# the composite
z = np.linspace(-4, 4, 9, dtype=np.float32)
for found in (genesis.softcap(genesis.tensor(z), 2.0), genesis.tensor(z).softcap(2.0),
              genesis.soft_clamp(genesis.tensor(z), 2.0), genesis.tensor(z).softcap_(2.0),
              F.softcap(genesis.tensor(z), 2.0, inplace=True)):
    assert_close(found, 2 * np.tanh(z / 2))
gradcheck(lambda x: genesis.softcap(x, 2.0), (leaf,))

# the layer
layer = nn.TanhExp(rate=0.5)
assert_close(layer(genesis.tensor(z)), z * np.tanh(np.exp(0.5 * z)))
assert repr(layer) == "TanhExp(rate=0.5)" and "TanhExp" in dir(nn)
t = genesis.tensor(z)
assert nn.TanhExp(inplace=True)(t) is t and not hasattr(t, "tanhexp")
gradcheck(lambda x: F.tanhexp(x, 0.5), (leaf,))

# the optimizer: three steps as NumPy takes them, eagerly and compiled
p, m = np.array([1.0, -2.0, 0.5]), np.zeros(3)
w = genesis.tensor(p, dtype=genesis.float64, requires_grad=True)
optimizer = Lion([w], lr=0.1, weight_decay=0.01)
@genesis.compile
def step():
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
for _ in range(3):
    g = 2 * p
    p, m = p - 0.1 * (np.sign(0.9 * m + 0.1 * g) + 0.01 * p), 0.99 * m + 0.01 * g
    step()
np.testing.assert_allclose(w.detach().numpy(), p, rtol=1e-6)
assert optimizer.state_dict()["param_groups"][0]["lr"] == 0.1
print("carried out")
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the package in which every block is at the end of its file."""
    root = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "genesis", root / "genesis")  # with its compiled files: times are kept
    shutil.copy(ROOT / "conftest.py", root)
    for file, text in BLOCKS:
        path = root / file
        before = path.read_text(encoding="utf-8") + "\n\n" if path.exists() else ""
        path.write_text(before + text, encoding="utf-8")
    return root


def run(root, *arguments):
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=root, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_added_works(extended):
    assert run(extended, "-c", CHECKS.replace("ROOT", repr(str(extended)))) == "carried out\n"


def test_the_examples_in_the_blocks_run(extended):
    files = sorted({file for file, text in BLOCKS if ">>>" in text} | {"genesis/nn/activation.py"})  # a layer has its row's
    assert len(files) == 3
    run(extended, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--doctest-modules", *files)


@pytest.mark.parametrize("name", FILES)
def test_each_thing_costs_as_many_files_as_the_page_says(name):
    files = {file for file, text in BLOCKS if name.lower() in text.lower()}
    assert len(files) == FILES[name]
    assert all((ROOT / file).exists() for file in files) or name == "Lion"


def test_an_optimizer_is_at_most_45_lines():
    (text,) = [text for file, text in BLOCKS if "optim" in file]
    assert text.count("\n") <= 45


def test_the_page_names_every_field():
    fields = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert fields >= {"method", "in_place", "operator", "aliases", "namespace", "public"}
