"""Find mxnet for its first import, so that the process is ready before, and MXNet right after it.

The work is done when mxnet is executed, and not when ``gluon_dist`` is imported: a program that
never imports MXNet, such as the launcher or a type checker, stays as it is.
"""

import sys
import warnings
from importlib.machinery import PathFinder


class Finder:
    """A finder of mxnet alone."""

    has_worked = False

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Find mxnet as Python does, with a loader that does more."""
        spec = PathFinder.find_spec(name) if name == "mxnet" else None
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _prepared(spec.loader.exec_module)
        return spec


def _prepared(execute):
    def execute_prepared(module):
        from gluon_dist.setup import changes

        is_first, Finder.has_worked = not Finder.has_worked, True
        if is_first:
            changes.make_ready()
        with changes.DURING.make():
            execute(module)
        if is_first:
            changes.correct(module)

    return execute_prepared


def register():
    """Register the finder; after mxnet it is too late for a part of its work."""
    if "mxnet" not in sys.modules:
        sys.meta_path.insert(0, Finder)
        return
    from gluon_dist.setup import changes, environment

    if environment.role() in ("server", "scheduler"):  # it serves inside its import of mxnet
        return
    text = "import gluon_dist before mxnet: it is too late to set its threads"
    warnings.warn(text, stacklevel=3)
    changes.make_ready()
    changes.correct(sys.modules["mxnet"])
