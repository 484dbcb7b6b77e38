"""Links that work on the page of the repository and in the site alike.

Pages link to files of the repository by relative paths, as they must there; here those of files
that have a page lead to it, and those that have none are plain words. Names in code type, which
are no links in Markdown, become links to the method, object or command that they name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from exactk.methods import registry
from tools.site.api import MODULES
from tools.site.commands import anchor, commands

__all__ = ["LinkNames", "lead_home", "lead_included_home", "page_of", "resolved", "with_others"]

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
CALL = re.compile(r"((?:exactk\.)?[A-Za-z_][\w.]*)(\(.*\))?", flags=re.S)
# Files outside docs that a page shows.
SHOWN = {
    "README.md": "index",
    "CONTRIBUTING.md": "contributing",
    "ARCHITECTURE.md": "architecture",
    "CHANGELOG.md": "changelog",
    "benchmarks/README.md": "benchmarks",
}
CLI_PAGE = "cli"
API_PAGE = "api/index"
# Stands in the first page for all pages that it does not list by name.
OTHERS = "(others)"


def page_of(file: str) -> str | None:
    """Return the page of a file of the repository, None where there is none.

    Examples
    --------
    >>> page_of("benchmarks/README.md"), page_of("docs/proof.md"), page_of("examples/demo.py")
    ('benchmarks', 'proof', 'examples/demo')
    >>> page_of("LICENSE")
    """
    if file in SHOWN:
        return SHOWN[file]
    path = PurePosixPath(file)
    if path.parts[:1] == ("examples",) and path.suffix == ".py" and (ROOT / file).is_file():
        return str(path.with_suffix(""))
    if path.parts[:1] == ("docs",) and path.suffix == ".md" and (ROOT / file).is_file():
        return str(path.relative_to("docs").with_suffix(""))
    return None


def resolved(text: str, file: str) -> str:
    """Return Markdown with the links of a file of the repository led to pages of the site.

    Examples
    --------
    >>> resolved("[how](docs/proof.md#measured), [who](LICENSE)", "README.md")
    '[how](/proof.md#measured), who'
    """

    def lead(match: re.Match[str]) -> str:
        words, target = match.groups()
        path, hash_sign, part = target.partition("#")
        if "://" in target or not path:
            return match[0]
        page = page_of(normpath(PurePosixPath(file).parent / path))
        if page is None:
            return words
        kind = "rst" if page.startswith("examples/") else "md"
        return f"[{words}](/{page}.{kind}{hash_sign}{part})"

    return LINK.sub(lead, text)


def lead_home(app: Sphinx, docname: str, source: list[str]) -> None:
    """Resolve the links of a page as it is read."""
    path = Path(app.env.doc2path(docname))
    if docname == "index":
        pages = {page.stem for page in Path(app.srcdir).glob("*.md")} - {"index"}
        source[0] = with_others(source[0], pages)
    if path.suffix == ".md":
        source[0] = resolved(source[0], f"docs/{path.relative_to(app.srcdir).as_posix()}")


def with_others(index: str, pages: set[str]) -> str:
    r"""Return the first page with ``(others)`` replaced by the pages that it does not list.

    Examples
    --------
    >>> with_others("Begin <start>\n(others)\n", {"start", "panel", "report"})
    'Begin <start>\npanel\nreport\n'
    """
    listed = set(re.findall(r"^(?:.*<)?([\w/-]+)>?$", index, flags=re.M))
    others = sorted(page for page in pages if page not in listed)
    return index.replace(f"{OTHERS}\n", "".join(f"{page}\n" for page in others))


def lead_included_home(app: Sphinx, path: Path, docname: str, source: list[str]) -> None:
    """Resolve the links of a file that a page includes."""
    file = (Path(app.srcdir) / path).resolve()
    if file.suffix == ".md" and file.is_relative_to(ROOT):
        source[0] = resolved(source[0], file.relative_to(ROOT).as_posix())


class LinkNames(SphinxPostTransform):
    """Link names in code type, the first time that a section has them."""

    # After references are resolved: what is linked by then is left as it is.
    default_priority = 200

    def run(self, **options: object) -> None:
        """Go through the page."""
        seen: set[tuple[int, str]] = set()
        for literal in list(self.document.findall(nodes.literal)):
            if any(isinstance(above, (nodes.reference, nodes.title)) for above in _above(literal)):
                continue
            place = self.place(literal.astext())
            section = next((id(a) for a in _above(literal) if isinstance(a, nodes.section)), 0)
            if place is None or place[0] == self.env.docname or (section, place[1]) in seen:
                continue
            seen.add((section, place[1]))
            docname, key, target = place
            link = make_refnode(
                self.env.app.builder, self.env.docname, docname, target, literal.deepcopy(), key
            )
            literal.replace_self(link)

    def place(self, text: str) -> tuple[str, str, str] | None:
        """Return page, key and id of what a text names; None if it names nothing."""
        if text in registry.names():
            return f"methods/{text}", f"method {text}", ""
        words = text.split()
        if words[:1] == ["exactk"]:
            for known in sorted(commands(), key=len, reverse=True):
                if tuple(words[1 : 1 + len(known)]) == known:
                    return CLI_PAGE, f"exactk {' '.join(known)}", anchor(known)
        call = CALL.fullmatch(text)
        if call is None or not (call[1].startswith("exactk.") or call[1][0].isupper()):
            return None
        if call[1].removeprefix("exactk.") in MODULES:
            return API_PAGE, call[1], call[1].replace(".", "-")
        objects = self.env.domains.python_domain.objects
        name = f"exactk.{call[1].removeprefix('exactk.')}"
        found = objects.get(name)
        return (found.docname, name, found.node_id) if found else None


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node
