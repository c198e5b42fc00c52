"""What the notebooks show with: the source of a function, a command's output, a figure."""

import base64
import contextlib
import difflib
import fcntl
import html
import inspect
import io
import itertools
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from gluon_dist.setup.process import usable_processors

from IPython.display import display
from PIL import Image
from pygments.lexers import DiffLexer, PythonLexer

from shown import Shown, coloured, command_box

ROOT = Path(__file__).resolve().parent.parent
# The lesson, and what notebooks start, import and look at: none of it is installed.
FOLDERS = ("cifar10_dist", "notebooks/programs", "notebooks/experiments", "benchmarks", "tools")
sys.path += [str(ROOT / folder) for folder in FOLDERS]
os.environ["NO_COLOR"] = "1"  # Jupyter asks for colours, and cells read what programs print
STARTED = time.time()
OWN = {}  # the folders of this kernel, by name: path, and the open file that says whose they are


def show(source):
    """Display where a function or module of this project is written, and its source."""
    place = Path(inspect.getsourcefile(source)).resolve()
    # Of gluon_dist, .venv may have the copy that stands beside another folder of notebooks.
    root = next(folder for folder in place.parents if (folder / "cifar10_dist").is_dir())
    lines, first = inspect.getsourcelines(source)
    print(f"{place.relative_to(root).as_posix()}, from line {max(first, 1)}:")
    display(coloured(textwrap.dedent("".join(lines)), PythonLexer()))


def own_folder(name):
    """Empty a folder that only this kernel uses, and return its path, seen from the project.

    That is ``build/NAME``, or ``build/NAME-2`` while another kernel has the first. Where ``build``
    is somebody else's, or its disk has no locks, it is a temporary folder.
    """
    if name not in OWN:
        OWN[name] = _first_free(name)
    folder = OWN[name][0]
    shutil.rmtree(ROOT / folder, ignore_errors=True)  # of an earlier run
    (ROOT / folder).mkdir(parents=True)
    return folder


def _first_free(name):
    """Return the first folder of a name that no other kernel has, and what keeps it ours."""
    build = ROOT / "build"
    if not os.access(build if build.exists() else ROOT, os.W_OK):
        return _temporary()
    build.mkdir(exist_ok=True)
    for number in itertools.count(1):
        folder = f"{name}-{number}" if number > 1 else name
        with contextlib.suppress(PermissionError):  # another user's
            lock = open(build / f"{folder}.lock", "wb")  # noqa: SIM115  open as long as we live
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return Path("build", folder), lock
            except BlockingIOError:  # another kernel's
                lock.close()
            except OSError:  # a disk without locks, as NFS may be
                lock.close()
                return _temporary()


def _temporary():
    holder = tempfile.TemporaryDirectory(prefix="notebook-")  # removed with this process
    return Path(holder.name), holder


def run(*words, timeout_s=170, **environ):
    """Run a command in the project's folder, show it and what it prints, and return the latter.

    ``python`` is this notebook's own. Raises CalledProcessError if the command fails and
    TimeoutExpired if it takes too long.
    """
    display(command_box(_typed(words, environ)))
    process = _finish(words, timeout_s, environ)
    print(process.stdout, end="")
    process.check_returncode()
    return process.stdout


def run_quietly(*words, timeout_s=170, **environ):
    """Run a command as ``run`` does, but show nothing; return its exit status and its lines.

    The first line is ``$`` and the command.
    """
    process = _finish(words, timeout_s, environ)
    return process.returncode, [f"$ {_typed(words, environ)}", *process.stdout.splitlines()]


def _finish(words, timeout_s, environ):
    """Run a command to its end; what it printed has no path of this machine."""
    command = [sys.executable if word == "python" else str(word) for word in words]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environ = dict(os.environ, **environ)
    process = subprocess.run(command, cwd=ROOT, env=environ, timeout=timeout_s, **pipe)
    process.stdout = process.stdout.replace(f"{ROOT}{os.sep}", "").replace(str(ROOT), ".")
    return process


def _typed(words, environ):
    """Return what one types in the project's folder to run a command."""
    settings = [f"{name}={value}" for name, value in environ.items()]
    python = sys.executable.replace(f"{ROOT}{os.sep}", "")
    python = "python" if os.path.isabs(python) else python
    typed = [*settings, *(python if word == "python" else str(word) for word in words)]
    return shlex.join(typed).replace(f"{ROOT}{os.sep}", "")


@contextlib.contextmanager
def ssh_hosts(count, rate=None):
    """Give the launcher's words for ssh hosts d1, d2, … made on this machine, as root on Linux.

    ``rate`` is that of their cables, as in ``"100mbit"``. Where no hosts can be made, say so and
    give the words that start all on this machine.
    """
    name = f"notebook-{os.getpid()}"
    cluster = ("python", "tools/cluster.py", "--name", name)
    limit = ["--rate", rate] if rate else []
    status, lines = run_quietly(*cluster, "up", "--hosts", count, *limit)
    if status:
        print(f"No ssh hosts can be made here ({lines[-1]}): all runs on this machine.")
        yield ["--launcher", "local"]
        return
    try:
        names = ",".join(f"d{number + 1}" for number in range(count))
        yield ["-H", names, f"--ssh-option=-F.cluster/{name}/ssh_config"]
    finally:
        run_quietly(*cluster, "down")


def took(data_name):
    """Print how long the notebook ran, on which machine, with which data."""
    import mxnet as mx

    minutes = max(1, round((time.time() - STARTED) / 60))
    print(
        f"Took {minutes} minute{'s' * (minutes > 1)} on {usable_processors()}"
        f" processors, {mx.context.num_gpus()} GPUs, MXNet {mx.__version__}, data {data_name},"
        f" on {time.strftime('%Y-%m-%d')}"
    )


def table(head, rows):
    """Display a table: the words of its head, and for each row a name and values."""
    rows = [[str(value) for value in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    cells = [[html.escape(value, quote=False) for value in row] for row in rows]
    page = f"<thead><tr><th>{'</th><th>'.join(cells[0])}</th></tr></thead><tbody>"
    for name, *values in cells[1:]:
        page += f'<tr><th scope="row">{name}</th><td>{"</td><td>".join(values)}</td></tr>'
    look = "border-collapse: separate; border-spacing: 16px 2px; text-align: right"
    display(Shown(f'<table style="{look}">{page}</tbody></table>', "\n".join(lines)))


def figure(fig, alt):
    """Display a Matplotlib figure with the text that stands for it where it cannot be seen.

    It has two pixels for each of the page, for dense screens.
    """
    import matplotlib.pyplot as plt

    drawn, image = io.BytesIO(), io.BytesIO()
    fig.savefig(drawn, format="png", dpi=200, bbox_inches="tight", facecolor="white")
    # With few colours it takes a third of the bytes.
    colours = 256 if any(axes.images for axes in fig.axes) else 64
    pixels = Image.open(drawn).convert("RGB").quantize(colours)
    pixels.save(image, format="png", optimize=True)
    data = base64.b64encode(image.getvalue()).decode()
    words = f'alt="{html.escape(alt)}" width="{pixels.width // 2}"'
    page = f'<img {words} src="data:image/png;base64,{data}">'
    display(Shown(page, f"[picture: {alt}]"))
    plt.close(fig)


def show_difference(before, after):
    """Display what turns one module or function into another: lines that go (-) and come (+)."""
    old, new = (inspect.getsource(source).splitlines() for source in (before, after))
    changes = difflib.unified_diff(old, new, n=2, lineterm="")
    lines = [line for line in changes if not line.startswith(("---", "+++"))]
    kept = ["⋯" if line.startswith("@@") else line for line in lines]
    display(coloured("\n".join(kept), DiffLexer()))
