"""What happens first in every Python of a job, whoever wrote the program.

The launcher puts this folder at the front of PYTHONPATH (not with --no-prepare), and Python imports
``sitecustomize``. That of opentelemetry-instrument may stand in front and imports no other one: it
calls ``begin``, which ``entry_points.txt`` names.

Nothing more happens until the program imports mxnet: then ``gluon_dist`` makes the process ready
and corrects MXNet, as if the program had imported it. A program that imports ``gluon_dist`` before
gets its own, or, if it has none, the one that this file belongs to.

Every Python reads this, also 2.7 and those that have no MXNet. Each tells the launcher when it has
begun to exit: who hangs there after an uncaught exception has failed.
"""

import atexit
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))  # of the package


class Preparing(object):  # noqa: UP004
    """A finder of mxnet, by the other finders, with a loader that does more."""

    def find_spec(self, name, path=None, target=None):
        """Change nothing yet: a program may only ask whether there is an mxnet."""
        if name != "mxnet" or "gluon_dist" in sys.modules:  # which has a finder of its own
            return None
        for finder in sys.meta_path:
            ask = getattr(finder, "find_spec", None)
            spec = ask(name, path, target) if ask and finder is not self else None
            if spec is not None:
                if spec.has_location:
                    spec.loader.exec_module = prepared(spec.loader.exec_module)
                return spec
        return None


class Last(object):  # noqa: UP004
    """A finder of ``gluon_dist`` where nobody else finds it."""

    def find_spec(self, name, path=None, target=None):
        """Find the package that this file belongs to."""
        if name != "gluon_dist":
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, [ROOT])


def prepared(execute):
    """Return what executes mxnet in a process that is made ready for it."""

    def execute_prepared(module):
        if hasattr(module, "prepared_by"):  # other finders that ask all finders have asked twice
            return execute(module)
        module.prepared_by = HERE
        try:
            del sys.modules["mxnet"]  # it is not there yet, for who looks
            sys.path.insert(0, ROOT)  # the launcher's own version
            try:
                from gluon_dist.setup import stranger
            finally:
                sys.path.remove(ROOT)
                sys.modules["mxnet"] = module
        except BaseException as error:
            end(error)
        stranger.execute(execute, module)

    return execute_prepared


def end(error):
    """End this process: Python would go on without what makes MXNet right."""
    text = "gluon_dist could not be imported: {!r}; --no-prepare starts the job without it\n"
    sys.stderr.write(text.format(error))
    sys.stderr.flush()
    os._exit(1)


def tell_exit(number=None):
    """Tell the launcher that this process is in its exit; not one that was forked from `number`."""
    path, this = os.environ.get("LAUNCH_PREPARED"), os.getpid()
    if path and number in (None, this):
        try:
            open(path + "." + str(this), "wb").close()
        except EnvironmentError:  # noqa: UP024  the launcher has taken its folder away
            pass


def begin():
    """Look out for mxnet in a process of a job."""
    atexit.register(tell_exit, os.getpid())
    is_wanted = os.environ.get("DMLC_ROLE") and sys.version_info >= (3, 8)
    if is_wanted and not any(isinstance(finder, Last) for finder in sys.meta_path):
        sys.meta_path.insert(0, Preparing())
        sys.meta_path.append(Last())


def import_next():
    """Import the sitecustomize that Python would have found without this one, if there is one."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != HERE]
    this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this
