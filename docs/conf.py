"""How the documentation is built: `make docs`, or `python -m sphinx -W docs docs/_build/html`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The tree that is documented is the one that this file lies in, whatever is installed.
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])

from exactk import __version__  # noqa: E402

project = "exactk"
author = "exactk developers"
copyright = "exactk developers, BSD-3-Clause"  # noqa: A001
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "tools.site",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
nitpicky = True
# Options begin with two hyphens, and quotes are typed as they are meant.
smartquotes = False
# Single backticks name objects, parameters and methods alike: those that have a page become links.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]

myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4

autosummary_generate = ["api/index.rst"]
autosummary_imported_members = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False

# Nothing of the theme comes from the network: fonts are the reader's own.
html_theme = "furo"
html_title = f"exactk {__version__}"
html_static_path = ["_static"]
html_css_files = ["exactk.css"]
html_js_files = ["exactk.js"]
html_copy_source = False
html_show_sourcelink = False
# Excerpts would be fetched, which a browser refuses for files.
html_show_search_summary = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
# Every colour of these has a contrast of 4.5 or more to the paper.
pygments_style = "a11y-light"
pygments_dark_style = "a11y-dark"
highlight_language = "none"
