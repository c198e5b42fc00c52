"""What is a page in a notebook and text elsewhere: source code above all."""

import html
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter

# Of shown code, on a light and on a dark page. A page that names no theme gets the light ones.
INK, PAPER = ("#1d1d22", "#e6e6ea"), ("#f6f8fa", "#1b1e24")
# By the classes of Pygments, or how these begin.
KEYWORDS, STRINGS = ("#7a3e9d", "#d2a8ff"), ("#0a6b3d", "#7ee0a3")
INKS = {
    "k": KEYWORDS,
    "ow": KEYWORDS,
    "s": STRINGS,
    "c": ("#5f6670", "#a0a8b4"),  # comments
    "m": ("#8a4b00", "#ffb86b"),  # numbers
    "nf": ("#0b5394", "#79c0ff"),  # names of functions
    "nc": ("#0b5394", "#79c0ff"),  # of classes
    "gi": STRINGS,  # lines that come
    "gd": ("#b3261e", "#ff8f87"),  # lines that go
}
DARK_PAGES = '[data-jp-theme-light="false"]', '[data-theme="dark"]', ".vscode-dark"
OPTION = re.compile(r"(?<!\S)--?\w[\w-]*")  # of a command: not broken at its hyphens
# A docstring of more than three lines: its first line, and the rest.
DOCSTRING = re.compile(
    r'^( *<span class="sd">"""(?!.*"""</span>).*\n)'
    r'((?:(?:<span class="sd">.*)?\n){2,}?<span class="sd">.*"""</span>\n)',
    re.M,
)
PLAIN = re.compile(rf'<span class="(?!{"|".join(INKS)})\w*">(.*?)</span>', re.S)


class Shown:
    """Something that is a page in a notebook, and text in a terminal or a text file."""

    def __init__(self, page, text):
        self.page, self.text = page, text

    def __repr__(self):
        """Return the text."""
        return self.text

    def _repr_html_(self):
        return self.page


def style_of_code():
    """Return the style of shown code."""
    pages = ",".join(f"body{page} .shown" for page in DARK_PAGES)
    inks = "".join(
        f'.shown [class^="{name}"]{{color:light-dark({light},{dark})}}'
        for name, (light, dark) in INKS.items()
    )
    return (
        f"<style>.shown{{color-scheme:light}}{pages}{{color-scheme:dark}}"
        '@media(prefers-color-scheme:dark){body[data-theme="auto"] .shown{color-scheme:dark}}'
        f"pre.shown.shown{{color:light-dark({','.join(INK)});"
        f"background:light-dark({','.join(PAPER)});"
        f"font-family:monospace;white-space:pre;overflow-x:auto;padding:8px}}{inks}</style>"
    )


def coloured(text, lexer):
    """Return source text; as a page it has colours, and long docstrings are folded."""
    spans = PLAIN.sub(r"\1", highlight(text, lexer, HtmlFormatter(nowrap=True)))
    spans = DOCSTRING.sub(r"<details><summary>\1</summary>\2</details>", spans)
    return Shown(f'{style_of_code()}<pre class="shown">{spans}</pre>', text.rstrip("\n"))


def command_box(command):
    """Return a command in a box: a click selects it whole, and the site has a button to copy it."""
    look = "border-left:4px solid #0072B2;white-space:pre-wrap;overflow-wrap:anywhere;"
    look += "padding-right:48px;font-size:13px;user-select:all"  # room for the site's copy button
    text = OPTION.sub(r'<span style="white-space:nowrap">\g<0></span>', html.escape(command, False))
    box = f'<pre class="shown" style="{look}">{text}</pre>'
    return Shown(f'{style_of_code()}<div><div class="highlight">{box}</div></div>', command)
