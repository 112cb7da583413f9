"""The page that explores programs: its folding and layout under node, and the page itself in a browser, where there is one."""

import importlib.util
import json
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import genesis
from genesis import nn, optim
from genesis.debug import Recording
from genesis.debug.page import EXPLORER, page

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_browser = pytest.mark.skipif(importlib.util.find_spec("PySide6") is None, reason="the extra `browser` is not installed")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.before(x))))


@pytest.fixture(scope="module")
def recorded():
    model = nn.Sequential(nn.Embedding(20, 16), *(Block() for _ in range(6)), nn.Linear(16, 20))
    optimizer = optim.AdamW(model.parameters())
    x = genesis.arange(24).reshape(2, 12) % 20
    x.tolist()
    with Recording() as recording:
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x).reshape(-1, 20), x.reshape(-1))
            loss.backward()
            optimizer.step()
            loss.item()
        genesis.arange(5).sum().item()
    return recording.programs


@pytest.fixture(scope="module")
def html(recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(page(recorded, "model.py"), encoding="utf-8")
    return path


def node(script, *files):
    """What a script prints as JSON, after these files of the explorer."""
    text = "\n".join([*((EXPLORER / file).read_text() for file in files), script])
    run = subprocess.run(["node", "-"], input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def arranged(widths, edges):
    boxes = [{"key": k, "width": width, "height": 40, "order": k} for k, width in enumerate(widths)]
    return node(f"""
        const found = arrange({json.dumps(boxes)}, {json.dumps(edges)});
        const centres = [...found.centres].sort((a, b) => a[0] - b[0]).map(c => c[1]);
        console.log(JSON.stringify({{...found, centres}}));""", "layout.js")


@needs_node
def test_every_edge_points_down_and_no_boxes_overlap():
    widths = [20.0 + 7 * (i % 5) for i in range(30)]
    edges = [[i, j] for j in range(30) for i in {j // 2, j // 3} if i != j]
    found = arranged(widths, edges)
    centres, rows = found["centres"], {}
    for (a, b), corners in zip(edges, found["corners"], strict=True):
        heights = [centres[a][1], *[y for _, y in corners], centres[b][1]]
        assert heights == sorted(heights) and heights[0] < heights[-1]
    for (x, y), width in zip(centres, widths, strict=True):
        rows.setdefault(y, []).append((x, width))
    for row in rows.values():
        assert all(x1 - x0 >= (w0 + w1) / 2 + 26 - 1e-6 for (x0, w0), (x1, w1) in pairwise(sorted(row)))
    assert all(x - w / 2 + 1e-6 >= 0 and x + w / 2 <= found["width"] + 1e-6 for (x, _), w in zip(centres, widths, strict=True))


@needs_node
def test_a_chain_is_straight_and_a_source_sits_right_above_its_reader():
    chain = arranged([50.0] * 5, [[i, i + 1] for i in range(4)])["centres"]
    assert len({round(x, 6) for x, _ in chain}) == 1
    centres = arranged([10.0] * 4, [[0, 1], [1, 3], [2, 3]])["centres"]
    assert centres[2][1] == centres[1][1]
    assert not arranged([], [])["centres"] and len(arranged([10.0], [])["centres"]) == 1


@needs_node
def test_a_box_unfolds_to_at_most_thirty_boxes_and_nothing_is_lost(html, recorded):
    data = html.read_text().split('type="application/json">')[1].split("</script>")[0]
    found = node(f"""const programs = {data}.programs, answers = programs.map(program => {{
        const root = tree(program), sizes = [], leaves = [];
        (function walk(item) {{
            if (item.kind === "op") return leaves.push(item.id);
            sizes.push(item.children.length);
            item.children.forEach(walk);
        }})(root);
        const opened = openFirst(root), boxes = visible(root).boxes.length;
        return {{ sizes, leaves, opened, boxes, nodes: program.nodes.map(n => n.id), ms: root.ms - program.ms,
                  loops: visible(root).edges.filter(e => e.from === e.to).length,
                  last: leaves.at(-1), hits: find(root, program, "%" + leaves.at(-1)).map(n => n.id) }};
    }}); console.log(JSON.stringify(answers));""", "fold.js")
    for program in found:
        assert max(program["sizes"]) <= 30 and program["boxes"] == program["opened"] <= 30 and program["loops"] == 0
        assert sorted(program["leaves"]) == program["nodes"] and abs(program["ms"]) < 1e-3
        assert program["hits"] == [program["last"]]
    assert len(found) == len(recorded) == 2


def drive(html, *steps):
    run = subprocess.run([sys.executable, str(Path(__file__).with_name("browser.py")), str(html)], input=json.dumps(steps),
                         capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found["said"] == []
    return found["answers"]


COUNT = ["run", "graph.boxes.length"]
PANEL = ["run", "panel.textContent"]


@needs_browser
def test_it_opens_on_what_took_longest_and_unfolds_on_a_click(html):
    shown, first, _, unfolded, about, _, folded, _, panel = drive(
        html, ["run", "byId('program').selectedOptions[0].textContent"], COUNT, ["click", ".box .plus"], COUNT, PANEL,
        ["click", ".head"], COUNT, ["click", ".box .label"], PANEL)
    assert "ran 3\u00d7" in shown and 3 <= first <= 30 and unfolded > first
    assert "takes" in about and ("launches, the longest first" in about or "kernel of stage #" in about)
    assert folded != unfolded and "takes" in panel


@needs_browser
def test_search_finds_operations_and_enter_goes_to_one_with_its_kernels_code(html):
    _, _, found, hits, _, panel, _, left = drive(
        html, ["key", "Slash"], ["type", "erf"], ["run", "byId('found').textContent"],
        ["run", "graph.boxes.filter(b => b.element.classList.contains('hit')).length"], ["key", "Return"], PANEL,
        ["key", "Escape"], ["run", "document.querySelectorAll('.hit').length"])
    assert int(found.split()[0]) >= 1 and hits >= 1
    assert "erf" in panel and "kernel of stage #" in panel and "def genesis_" in panel and "reads" in panel
    assert left == 0


@needs_browser
def test_keys_walk_and_fold_and_both_themes_are_painted(html, tmp_path):
    shot = tmp_path / "page.png"
    *_, walked, before, _, after, light, _, dark, saved = drive(
        html, ["key", "Down"], ["key", "Right"], ["run", "chosen !== null"], COUNT, ["key", "Return"], COUNT,
        ["colour", 600, 990], ["key", "T"], ["colour", 600, 990], ["shot", str(shot)])
    assert walked and after >= before
    assert sum(bytes.fromhex(light[1:])) > 3 * 200 and sum(bytes.fromhex(dark[1:])) < 3 * 60
    assert saved and shot.stat().st_size > 10_000
