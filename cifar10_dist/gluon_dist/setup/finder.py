"""A finder that prepares the process for the first import of mxnet, and corrects MXNet after it.

The work is done when mxnet is executed, and not when ``gluon_dist`` is imported: a program that
never imports MXNet, such as the launcher or a type checker, stays as it is.
"""

import sys
import warnings


class Finder:
    """Finds mxnet, and nothing else."""

    has_worked = False

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return the spec of mxnet, with a loader that prepares the process and corrects MXNet."""
        spec = _by_others(Finder, name, path, target) if name == "mxnet" else None
        if spec is not None and spec.has_location:  # not a mock of a documentation's
            spec.loader.exec_module = _prepared(spec.loader.exec_module)
        return spec


def _prepared(execute):
    """Return what executes mxnet in a process that is ready for it, and then corrects it."""

    def execute_prepared(module):
        from gluon_dist.setup import changes, claim

        is_first, Finder.has_worked = not Finder.has_worked, True
        if is_first:
            claim.take()
            changes.make_ready()
        with changes.DURING.make():
            execute(module)
        if is_first:
            changes.correct(module)

    return execute_prepared


class After:
    """Finds one module, and calls a function with it once it has been executed."""

    def __init__(self, name, function):
        self._name, self._function = name, function

    def find_spec(self, name, path=None, target=None):
        """Return the spec of the module by the other finders."""
        spec = _by_others(self, name, path, target) if name == self._name else None
        if spec is not None and spec.loader is not None:
            execute, function = spec.loader.exec_module, self._function

            def execute_and_call(module):
                execute(module)
                function(module)

            spec.loader.exec_module = execute_and_call
        return spec


def _by_others(this, name, path, target):
    """Return the spec that the other finders have."""
    for finder in sys.meta_path:
        ask = getattr(finder, "find_spec", None)
        spec = ask(name, path, target) if ask and finder is not this else None
        if spec is not None:
            return spec
    return None


def register():
    """Register the finder; if mxnet is imported already, a part of its work is too late."""
    if "mxnet" not in sys.modules:
        sys.meta_path.insert(0, Finder)
        return
    from gluon_dist.setup import changes, environment

    if environment.role() in ("server", "scheduler"):  # it serves inside its import of mxnet
        return
    text = "import gluon_dist before mxnet: it is too late to set its threads; the rest is done"
    warnings.warn(text, stacklevel=3)
    changes.make_ready()
    changes.correct(sys.modules["mxnet"])
