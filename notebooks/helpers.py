"""What the notebooks show with: a source, a command's output, a figure."""

import base64
import html
import inspect
import io
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from IPython.display import HTML, Markdown, display

ROOT = Path(__file__).resolve().parent.parent


def show(source):
    """Display a function, or a file, of this project: where it is written, and its text."""
    if isinstance(source, str):
        print(f"{source}:")
        text = (ROOT / source).read_text(encoding="utf-8")
    else:
        place = Path(inspect.getsourcefile(source)).resolve().relative_to(ROOT)
        print(f"{place.as_posix()}, from line {inspect.getsourcelines(source)[1]}:")
        text = textwrap.dedent(inspect.getsource(source))
    # As Markdown it takes its colours from the page, which may be light or dark.
    display(Markdown(f"```python\n{text}```"))


def run(*words, timeout_s=170, **environ):
    """Run a command in the project's folder, print what it prints, and return that.

    ``python`` is this notebook's own. Raises CalledProcessError if the command fails and
    TimeoutExpired if it takes too long.
    """
    command = [sys.executable if word == "python" else str(word) for word in words]
    print("$", *words)
    process = subprocess.run(
        command,
        cwd=ROOT,
        env=dict(os.environ, **environ),
        timeout=timeout_s,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = process.stdout.replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")
    print(output, end="")
    process.check_returncode()
    return output


def figure(fig, alt):
    """Display a Matplotlib figure with the text that stands for it where it cannot be seen."""
    image = io.BytesIO()
    fig.savefig(image, format="png", dpi=100, bbox_inches="tight", facecolor="white")
    data = base64.b64encode(image.getvalue()).decode()
    display(HTML(f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data}">'))
