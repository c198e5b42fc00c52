"""What the notebooks show with: the source of a function, a command's output, a figure."""

import base64
import html
import inspect
import io
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

from IPython.display import HTML, display
from PIL import Image
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).resolve().parent.parent
# The face of shown code: its colours are fixed, and the page around it may be light or dark.
FACE = "color: black; background: #f8f8f8; font-family: monospace; white-space: pre; padding: 8px"


def show(source):
    """Display where a function or module of this project is written, and its source."""
    place = Path(inspect.getsourcefile(source)).resolve().relative_to(ROOT)
    lines, first = inspect.getsourcelines(source)
    print(f"{place.as_posix()}, from line {max(first, 1)}:")
    style = HtmlFormatter(noclasses=True, nobackground=True, prestyles=FACE)
    display(HTML(highlight(textwrap.dedent("".join(lines)), PythonLexer(), style)))


def run(*words, timeout_s=170, **environ):
    """Run a command in the project's folder, print what it prints, and return that.

    ``python`` is this notebook's own. Raises CalledProcessError if the command fails and
    TimeoutExpired if it takes too long.
    """
    command = [sys.executable if word == "python" else str(word) for word in words]
    print("$", shlex.join(map(str, words)))
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environ = dict(os.environ, **environ)
    process = subprocess.run(command, cwd=ROOT, env=environ, timeout=timeout_s, **pipe)
    output = process.stdout.replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")
    print(output, end="")
    process.check_returncode()
    return output


def figure(fig, alt):
    """Display a Matplotlib figure with the text that stands for it where it cannot be seen."""
    drawn, image = io.BytesIO(), io.BytesIO()
    fig.savefig(drawn, format="png", dpi=100, bbox_inches="tight", facecolor="white")
    # With 256 colours it takes a third of the bytes.
    Image.open(drawn).convert("RGB").quantize(256).save(image, format="png", optimize=True)
    data = base64.b64encode(image.getvalue()).decode()
    display(HTML(f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data}">'))
