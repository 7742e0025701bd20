"""Configuration of the documentation. Neither building nor reading it needs the network."""

import shutil
import sys
from pathlib import Path

import skpml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from api_reference import write_api_reference  # noqa: E402

# The reference is generated; a page of a removed name would fail the build.
shutil.rmtree(HERE / "api", ignore_errors=True)
write_api_reference(HERE / "api")

project = "scikit-pml"
author = "scikit-pml developers"
copyright = "2026, scikit-pml developers"
release = skpml.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "method_table",
    "offline_math",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

# One page per public name, written to api/generated from the tables of api/index.md.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Single backticks in a docstring name a Python object; anything else is shown as code.
default_role = "py:obj"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = "scikit-pml"
html_static_path = ["_static"]
html_css_files = ["extra.css"]
html_math_renderer = "mathml"
html_theme_options = {"top_of_page_buttons": []}
