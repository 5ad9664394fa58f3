"""How Sphinx builds these pages: python -m sphinx -W -b html docs docs/_build."""

from importlib.metadata import version as version_of

project = "Morula"
author = "The Morula developers"
copyright = "2026, The Morula developers"
release = version_of("morula")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Reference"]

html_theme = "furo"
html_title = f"Morula {release}"
