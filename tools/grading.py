"""How copies are graded: ``make assignments`` lets nbgrader know these two steps.

nbgrader leaves out a check that is missing, and gives no points at all to a copy that ends its
kernel. Here missing checks are put back, and a cell that ends or blocks its kernel, or takes more
than its share of the machine, fails alone: the remaining cells are run again without it.
"""

import ctypes
import os
import signal
import sys
import threading

import psutil
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_output
from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute, OverwriteCells
from nbgrader.utils import is_grade
from traitlets import Float, Integer

from grading_kernel import MB, MEMORY, PLACE

GB = 1000 * MB
PR_SET_CHILD_SUBREAPER = 36


def configure(config):
    """Set what every course needs; the course's own ``nbgrader_config.py`` comes after this."""
    config.ExecutePreprocessor.kernel_name = "gluon-grading"  # see make_assignments.py
    steps = {OverwriteCells: PutBackChecks, Execute: RunWithinLimits}
    for name in "sanitize_preprocessors", "autograde_preprocessors":
        usual = Autograde.class_traits()[name].default()
        config.Autograde[name] = [steps.get(step, step) for step in usual]


def name_of(resources):
    """Return the name of a copy's file, as below the course's folder ``submitted``."""
    names = resources["nbgrader"]
    return f"{names['student']}/{names['assignment']}/{names['notebook']}.ipynb"


class PutBackChecks(OverwriteCells):
    """Put back checks that were deleted, and the metadata of those that an editor took it from."""

    add_missing_cells = True

    def preprocess(self, nb, resources):
        """Log the name of the copy; the rest is nbgrader's."""
        self.copy = name_of(resources)
        return super().preprocess(nb, resources)

    def add_missing_grade_cells(self, nb, resources):
        """Find or add each missing check."""
        source = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        texts = {cell.name: cell for cell in source.source_cells}
        plain = {cell.source.strip(): cell for cell in nb.cells if "nbgrader" not in cell.metadata}
        missing = [check for check in source.grade_cells if check.name not in index_of(nb)]
        found = {check.name: plain.get(texts[check.name].source.strip()) for check in missing}
        if not index_of(nb) and not any(found.values()):
            raise ValueError(
                f"{self.copy}: not graded, for no cell has nbgrader's metadata. Put the answers "
                "into the notebook that was handed out, and hand that in"
            )
        for check in missing:
            cell = self.missing_cell_transform(texts[check.name], check.max_score)
            if found[check.name]:
                found[check.name].metadata = cell.metadata
                self.log.warning("%s: %s had lost its metadata", self.copy, check.name)
                continue
            if "id" in nb.cells[0]:  # older formats have none
                cell.id = f"{check.name}-again"
            answer = index_of(nb).get(check.name.rpartition("-check")[0], len(nb.cells))
            nb.cells.insert(answer + 1, cell)
            self.log.warning("%s: %s was missing and was put back", self.copy, check.name)
        return nb, resources


def index_of(nb):
    """Return the index of each cell that nbgrader knows, by its name."""
    known = [(cell.metadata.get("nbgrader", {}), at) for at, cell in enumerate(nb.cells)]
    return {metadata["grade_id"]: at for metadata, at in known if "grade_id" in metadata}


class RunWithinLimits(Execute):
    """Run a copy. A cell that ends its kernel or exceeds a limit fails; all other cells are run."""

    memory_gb = Float(MEMORY / GB, help="of a copy's kernel and programs").tag(config=True)
    files_gb = Float(4, help="of what a copy writes into its folder").tag(config=True)
    processes = Integer(200, help="that a copy may have at a time").tag(config=True)

    def preprocess(self, nb, resources, km=None):
        """Run the cells, again without the one that failed where it takes the kernel with it."""
        adopt_orphans()
        self.failed = set()
        while True:
            self.index, self.excess, self.over = None, "", threading.Event()
            watch = threading.Thread(target=self._watch, daemon=True)
            watch.start()
            try:
                return super().preprocess(nb, resources, km)
            except (CellTimeoutError, DeadKernelError) as error:
                if self.index is None:
                    raise
                is_slow = isinstance(error, CellTimeoutError)
                reason = "could not be interrupted" if is_slow else "ended its kernel"
                self._fail(nb.cells[self.index], self.excess or reason, name_of(resources))
            finally:
                self.over.set()
                watch.join()
                end(children())

    def _fail(self, cell, reason, copy):
        """Let the cell that was being run end with an error."""
        self.log.warning("%s: cell %d %s: run again without it", copy, self.index + 1, reason)
        text = f"This cell {reason}."
        cell.outputs.append(new_output("error", ename="Limit", evalue=text, traceback=[text]))
        self.failed.add(self.index)

    def preprocess_cell(self, cell, resources, index):
        """Run a cell that has not failed before."""
        if index in self.failed:
            return cell, resources
        self.index = index
        cell, resources = super().preprocess_cell(cell, resources, index)
        for output in cell.get("outputs", []) if is_grade(cell) else ():
            if output.get("name") == "stderr":  # which nbgrader takes for a failed check
                output.name = "stdout"
        return cell, resources

    def _watch(self):
        """End the processes of a copy when they take too much."""
        while not self.over.wait(0.5):
            processes = children()
            for taken, limit, what in (
                (len(processes), self.processes, "processes"),
                (sum(map(memory, processes)) / GB, self.memory_gb, "GB of memory"),
                (sum(map(written, processes)) / GB, self.files_gb, "GB of files"),
            ):
                if taken > limit:
                    self.excess = f"took more than {round(limit, 1):g} {what}"
                    end(processes)
                    break


def adopt_orphans():
    """Become the parent of what a kernel leaves behind, where that can be had (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """Return the kernel and all processes that come from it."""
    return psutil.Process().children(recursive=True)


def memory(process):
    """Return the bytes of memory that a process takes."""
    try:
        return process.memory_info().rss
    except psutil.Error:  # it has ended
        return 0


def written(process):
    """Return the bytes in the folder of a kernel; a small file counts as a block."""
    total = 0
    for folder, _, names in os.walk(PLACE / str(process.pid)):
        for name in names:
            try:
                total += max(4096, os.lstat(os.path.join(folder, name)).st_size)
            except FileNotFoundError:
                pass
    return total


def end(processes):
    """Kill processes, and those that they start meanwhile, until none is left."""
    while processes:
        for process in processes:
            try:
                if os.getpgid(process.pid) != os.getpgid(0):
                    os.killpg(os.getpgid(process.pid), signal.SIGKILL)  # no member can fork away
                process.kill()
            except (psutil.Error, ProcessLookupError):
                pass
        psutil.wait_procs(processes, timeout=5)
        processes = children()
