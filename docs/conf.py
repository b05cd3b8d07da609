"""Configuration of Sphinx."""

project = "gpusim"
author = "The gpusim authors"
copyright = author  # noqa: A001  (Sphinx's name)

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3

html_theme = "alabaster"
html_theme_options = {
    "description": "Where the time goes when an AMD GPU waits for memory",
    "fixed_sidebar": True,
    "page_width": "1040px",
}
