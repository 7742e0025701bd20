"""How the documentation is built. Nothing is fetched, neither while building nor while reading."""

import shutil
import sys
from pathlib import Path

import skpml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# A page of a name that is gone would end the build.
shutil.rmtree(HERE / "api" / "generated", ignore_errors=True)

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

# One page a public name, written to api/generated from the tables of api/index.md.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# A single backtick in a docstring names a Python object; where it is none, it is set as code.
default_role = "py:obj"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = "scikit-pml"
html_static_path = ["_static"]
html_css_files = ["extra.css"]
html_math_renderer = "mathml"
html_theme_options = {"top_of_page_buttons": []}
