"""Sphinx's settings for the pages that tools/make_site.py puts together in build/site-source."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cifar10_dist"))

project = "Distributed training with Apache MXNet Gluon"
html_title = "MXNet Gluon, distributed"
html_short_title = html_title
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

# The docstrings of the lesson, without MXNet.
autodoc_mock_imports = ["mxnet", "numpy", "gluoncv", "cv2"]
autodoc_member_order = "bysource"
napoleon_google_docstring = False

html_theme = "furo"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_use_index = False
html_baseurl = os.environ.get("SITE_URL", "")
html_context = {
    "commit": os.environ.get("SITE_COMMIT", ""),
    "base": urlsplit(html_baseurl).path.rstrip("/") + "/" if html_baseurl else "",
}
copybutton_selector = "div:not(.output) > div.highlight pre"


def write_inline(writer, node):
    """Write a formula as MathML, which browsers draw by themselves."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(writer, node):
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Make formulas MathML: it needs neither a script nor a font from elsewhere."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))


html_math_renderer = "mathml"
