"""Sphinx's settings for the pages that tools/make_site.py puts together in build/site-source."""

import html
import inspect
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cifar10_dist"))
sys.path.insert(0, str(ROOT / "notebooks" / "images"))
WORDS_PER_MINUTE = 200
SHORT_CELL, NUMBERS_CELL, LONG_CELL = 12, 24, 40  # characters
LONG_LITERAL = 28  # characters; shorter ones are not broken
LOG = re.compile(r"^(\S+ )?\[(launch|worker|server|scheduler)\b|^\$ ", re.M)
DESCRIPTION = 160  # characters; search engines cut what is longer
PLOTS = ROOT / "benchmarks" / "results"
PHONE = "screen and (max-width: 46em)"  # where a drawn picture is narrow, as in site.css

project = "Distributed training with Apache MXNet Gluon"
html_title = "MXNet Gluon, distributed"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

nb_execution_mode = "off"
nb_code_prompt_show = "Show what happens"  # of cells with the tag hide-output
nb_code_prompt_hide = "Hide what happens"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

# The docstrings, without MXNet. They tell the types.
autodoc_typehints = "none"
autodoc_mock_imports = ["mxnet", "numpy", "gluoncv", "cv2"]
autodoc_member_order = "bysource"
napoleon_google_docstring = False

html_theme = "furo"
pygments_dark_style = "github-dark"
html_theme_options = {"dark_css_variables": {"color-code-background": "#1d2229"}}
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
html_math_renderer = "mathml"
html_baseurl = os.environ.get("SITE_URL", "")
html_context = {
    "commit": os.environ.get("SITE_COMMIT", ""),
    "archive": os.environ.get("SITE_ARCHIVE", ""),
    "base": urlsplit(html_baseurl).path.rstrip("/") + "/" if html_baseurl else "",
}
copybutton_selector = "div:not(.output) > div.highlight pre"


def write_inline(writer, node):
    """Write a formula as MathML, which browsers draw without a script and a font of ours."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(writer, node):
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def sign(app, what, name, obj, options, signature, returns):
    """Give a class the arguments of its constructor, not those of its base, which is mocked."""
    if what != "class" or not inspect.isfunction(obj.__init__):
        return None
    _, *arguments = inspect.signature(obj.__init__).parameters.values()
    untyped = [argument.replace(annotation=inspect.Parameter.empty) for argument in arguments]
    return str(inspect.Signature(untyped)), returns


def mark_logs(app, doctree):
    """Say which text is a log, whose lines may be broken."""
    for block in doctree.findall(nodes.literal_block):
        if LOG.search(block.astext()):
            block["classes"].append("log")


def mark_outcomes(app, doctree):
    """Say what tells the outcome of a folded output, to be seen when that is opened.

    That is the text below it, up to the end of its first paragraph that is not a caption; with
    the list that this paragraph begins.
    """
    for cell in doctree.findall(nodes.container):
        if "tag_hide-output" not in cell["classes"]:
            continue
        below = cell.parent[cell.parent.index(cell) + 1 :]
        for node, after in zip(below, [*below[1:], None]):
            if not isinstance(node, (nodes.paragraph, nodes.bullet_list)):
                break
            node["classes"].append("outcome")
            is_caption = isinstance(node[0], nodes.emphasis) and len(node) == 1
            if not is_caption and not isinstance(after, nodes.bullet_list):
                break


def mark_cells(app, doctree):
    """Say which cells of tables must not be broken, and which want some width on a phone."""
    for cell in doctree.findall(nodes.entry):
        length = len(cell.astext())
        is_number = re.match(r"\W?\d", cell.astext())
        if length <= (NUMBERS_CELL if is_number else SHORT_CELL):
            cell["classes"].append("short")
        elif length >= LONG_CELL:
            cell["classes"].append("long")


def tell_minutes(app, pagename, templatename, context, doctree):
    """Give a page the minutes that reading takes: as notebooks/README says, else by its words."""
    readme = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    file = re.escape(pagename.replace("notebooks/", ""))
    row = re.search(rf"\({file}\.ipynb\).*?\| (\d+) min \|", readme)
    if row:
        context["minutes"] = int(row[1])
    elif re.fullmatch(r"docs/\w+|RESULTS|README|benchmarks/[\w-]+", pagename):
        words = re.sub(r"<[^>]+>", " ", context["body"]).split()
        context["minutes"] = max(1, round(len(words) / WORDS_PER_MINUTE))


def mark_word(match):
    """Return a word of code, which may be broken if it is long."""
    is_long = len(html.unescape(match[1])) > LONG_LITERAL
    return match[0].replace('"pre"', '"pre long"') if is_long else match[0]


def show_drawn(match):
    """Return a picture in light and in dark; on a phone the narrow one, if there is one."""
    alt, address, name = match.groups()
    narrow_from = ROOT / "notebooks" / "images" / f"{name}.svg", PLOTS / f"{name}-narrow.svg"
    is_narrow = any(path.exists() for path in narrow_from)
    shown = ""
    for scheme, end in ("light", ""), ("dark", "-dark"):
        image = f'<img {alt} class="only-{scheme}" src="{address}{end}.svg">'
        if is_narrow:
            narrow = f'<source media="{PHONE}" srcset="{address}-narrow{end}.svg">'
            image = f"<picture>{narrow}{image}</picture>"
        shown += image
    return shown


def mend(app, pagename, templatename, context, doctree):
    """Give headings of the list of pages their level, and take empty heads from tables."""
    tree = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = tree.replace('"heading"', '"heading" aria-level="2"')
    if "body" in context:
        empty = r'<th(?: class="head[\w ]*"><p></p>|>)</th>'
        context["body"] = re.sub(empty, "<td></td>", context["body"])
        drawn = r'<img (alt="[^"]*") src="([^"]*_images/([^"/]+))\.svg" />'
        context["body"] = re.sub(drawn, show_drawn, context["body"])
        words = r'<span class="pre">([^<]+)</span>'
        context["body"] = re.sub(words, mark_word, context["body"])
    if pagename.startswith("notebooks/"):  # a number that tests compare with the outputs: no code
        number = r'<code class="[\w ]+"><span class="pre">([\d.,]+)</span></code>'
        context["body"] = re.sub(number, r"\1", context["body"])


def introduce(app, pagename, templatename, context, doctree):
    """Tell who links to a page, or finds it, what it is about; take its second viewport."""
    first = re.search(r"</h1>.*?<p>(.*?)</p>", context.get("body", ""), re.S)
    words = html.unescape(re.sub(r"<[^>]+>", "", first[1] if first else project)).split()
    about = " ".join(words)
    if len(about) > DESCRIPTION:
        about = about[:DESCRIPTION].rsplit(" ", 1)[0] + " …"
    title = html.unescape(re.sub(r"<[^>]+>", "", context.get("title", project)))
    place = f"{html_baseurl.rstrip('/')}/" if html_baseurl else context["pathto"]("", 1)
    told = {
        "og:type": "website",
        "og:title": title,
        "og:site_name": html_title,
        "og:description": about,
        "og:image": f"{place}_static/card.png",
        "og:image:alt": "Three workers send gradients to a sum, and get it back",
    }
    tags = re.sub(r'<meta name="viewport"[^>]*>', "", context.get("metatags", ""))
    tags += f'\n<meta name="description" content="{html.escape(about)}">'
    for name, words in told.items():
        tags += f'\n<meta property="{name}" content="{html.escape(words)}">'
    context["metatags"] = tags


def draw_more(app, failure):
    """Write the narrow pictures, and each picture once more in the colours of a dark page."""
    from card import NARROW, in_the_dark
    from draw import drawn

    folder = Path(app.outdir, "_images")
    for name, text in () if failure else drawn(NARROW):
        (folder / f"{name}-narrow.svg").write_text(text, encoding="utf-8")
    for path in () if failure else PLOTS.glob("*-narrow.svg"):
        shutil.copy(path, folder)
    for path in folder.glob("*.svg"):
        text = in_the_dark(path.read_text(encoding="utf-8"))
        path.with_name(f"{path.stem}-dark.svg").write_text(text, encoding="utf-8")


def setup(app):
    """Connect the functions above."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.connect("autodoc-process-signature", sign)
    for mark in mark_logs, mark_outcomes, mark_cells:
        app.connect("doctree-read", mark)
    app.connect("html-page-context", tell_minutes)
    app.connect("html-page-context", mend, priority=900)  # after the theme
    app.connect("html-page-context", introduce, priority=900)
    app.connect("build-finished", draw_more)
    return {"parallel_read_safe": True}
