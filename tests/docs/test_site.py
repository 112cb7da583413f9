"""The site: every page that it names is there, every link leads somewhere, and docstrings become Markdown."""

import re
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
from tools import documentation

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)): page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")}
MADE = {*documentation.OUTSIDE, *documentation.PICTURES, *(f"reference/{name}.md" for name in documentation.MODULES)}
SITE = {*PAGES, *MADE, "reference/index.md", *(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.ipynb"))}


def links(page, text):
    for target, _ in documentation.LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        yield str((DOCS / page).parent.joinpath(target).resolve().relative_to(DOCS))


def test_the_navigation_names_every_page_once():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"^ +- (?:\w+: )?([\w/]+(?:\.\w+|/))$", navigation, re.MULTILINE)
    found = [page for page in named if not page.endswith("/")]
    assert len(found) == len(set(found)) and set(found) <= SITE
    assert {page for page in SITE if page.count("/") == 0 and page.endswith(".md")} <= set(found)


@pytest.mark.parametrize("page", PAGES)
def test_links_of_pages_lead_to_pages(page):
    text = documentation._relinked(PAGES[page], Path("docs") / Path(page).parent)
    assert set(links(page, text)) <= SITE


@pytest.mark.parametrize("page", documentation.OUTSIDE)
def test_links_of_pages_from_outside_lead_to_pages(page):
    source = Path(documentation.OUTSIDE[page])
    text = documentation._relinked((ROOT / source).read_text(encoding="utf-8"), source.parent)
    assert set(links(page, text)) <= SITE


def test_the_reference_has_signatures_arguments_and_examples():
    text = documentation.reference("genesis.nn.functional")
    assert "## softmax\n\n```python\nsoftmax(" in text and text.count("```") % 2 == 0
    sections = re.split(r"^## ", documentation.reference("genesis.optim"), flags=re.MULTILINE)
    (adam,) = [section for section in sections if section.startswith("Adam\n")]
    assert "```pycon\n>>> " in adam and "### Adam.step" not in adam
