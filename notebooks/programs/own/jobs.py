"""Run the programs of notebook 04, and print the lines that matter of what they print."""

import functools
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from IPython.display import display

from shown import command_box

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
STALLED = 124  # of the launcher
EPOCH = re.compile(r"(?:\[worker (\d+)\] )?Epoch (\d+): (\d+) examples, (\w+) (\S+), weights (\S+)")
NOT_SHOWN = re.compile(
    r'\[launch\] +(Traceback|File ".*site-packages|raise |self\.)|its last lines'
)


@dataclass
class Job:
    """How a job ended, what it printed, and the numbers of its epochs.

    ``epochs[epoch][rank]`` is ``(examples, accuracy, weights)``, the last two as printed.
    """

    status: int
    text: str
    epochs: dict = field(default_factory=dict)


@functools.lru_cache(None)
def _scratch():
    """Return the temporary folder of what the programs write."""
    return tempfile.TemporaryDirectory()


def job(program, *options, workers=0, launcher=(), also="", quiet=False):
    """Run a program, print a line for each worker and epoch, and return the :class:`Job`.

    Parameters
    ----------
    program : str
        ``step4_right``, or a path, from here or from the folder of the notebooks.
    options : words for the program; ``scratch/`` stands for a folder for its files
    workers : int
        0 starts the program without the launcher.
    launcher : words for the launcher
    also : str
        Lines in which this regular expression is found are printed, too.
    quiet : bool
        Print nothing.
    """
    words = _command(program, options, workers, launcher)
    done = _finish(words, ["--stall-timeout", "70"] if workers else [])
    if not quiet:
        display(command_box(_plain(" ".join(map(_typed, words)))))
        print("\n".join(map(_plain, _lines_that_matter(done, also))))
    return Job(done.returncode, done.stdout, _epochs(done.stdout))


def _command(program, options, workers, launcher):
    """Return the words of a command: of a program, with the launcher if there are workers."""
    path = Path(program) if str(program).endswith(".py") else FOLDER / f"{program}.py"
    if not path.exists():
        path = ROOT / "notebooks" / path
    words = ["python", path.resolve(), *options]
    if workers:
        launch = ["python", ROOT / "tools/launch.py", "-n", workers, "-s", 1, "--no-prepare"]
        words = [*launch, *launcher, *words]
    return words


def _finish(words, of_launcher):
    """Run a command to its end, with further words for the launcher that are not shown."""
    command = [str(word).replace("scratch/", f"{_scratch().name}/") for word in words]
    command = [sys.executable if word == "python" else word for word in command]
    command[2:2] = of_launcher
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    for _ in range(2):  # MXNet as it is has a rare deadlock
        done = subprocess.run(command, cwd=ROOT, timeout=170, **pipe)
        if done.returncode != STALLED:
            break
    return done


def _epochs(text):
    """Return the numbers of each epoch and worker that are printed, see :class:`Job`."""
    epochs = {}
    for rank, epoch, examples, _, *numbers in EPOCH.findall(text):
        epochs.setdefault(int(epoch), {})[int(rank or 0)] = int(examples), *numbers
    return {epoch: dict(sorted(found.items())) for epoch, found in epochs.items()}


def _lines_that_matter(done, also):
    """Return the lines of the epochs, by worker, those with the pattern, and a failure's status."""
    kept, epoch = [], -1
    for number, line in enumerate(done.stdout.splitlines(), 1):
        if EPOCH.search(line):
            epoch = int(EPOCH.search(line)[2])
            kept.append((epoch, 0, line))  # of one epoch, by worker
        elif also and re.search(also, line) and not NOT_SHOWN.search(line):
            kept.append((epoch, number, line))
    lines = [line for *_, line in sorted(kept)]
    return [*lines, f"exit status {done.returncode}"] if done.returncode else lines


def _typed(word):
    """Return a word as one types it in the project's folder: this Python by its path there."""
    python = sys.executable.replace(f"{ROOT}{os.sep}", "")
    python = "python" if os.path.isabs(python) else python
    return python if word == "python" else str(word)


def changed_step(name):
    """Write a step with a mistake put in, see ``mistakes.py``; return its path."""
    from programs.own.mistakes import changed

    path = Path(_scratch().name, f"{name.replace(' ', '_')}.py")
    path.write_text(changed(name), encoding="utf-8")
    return path


def distance(one, other):
    """Return the largest difference between the parameters in two files of ``scratch/``."""
    import mxnet as mx

    saved = [mx.nd.load(str(Path(_scratch().name, name))) for name in (one, other)]
    return max(float(abs(saved[0][key] - saved[1][key]).max().asscalar()) for key in saved[0])


def _plain(text):
    """Leave out the folders of this machine."""
    text = text.replace(_scratch().name, "scratch")
    return text.replace(f"{ROOT}{os.sep}", "")
