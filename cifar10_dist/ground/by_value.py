"""Send the servers an optimizer with the classes that the program itself defines.

MXNet pickles an optimizer, with its schedule, by the names of its classes. A class of the script is
``__main__.Warm`` then, which no server has: there ``__main__`` is stopped at its first import.
cloudpickle sends such a class itself; a class of a module still goes by its name.
"""

import base64
import pickle

try:
    import cloudpickle
except ImportError:  # not in every installation: servers then end with the name they do not find
    cloudpickle = pickle


class ByValue:
    """Takes the place of the module `pickle` in ``mxnet.kvstore.kvstore``."""

    loads = staticmethod(pickle.loads)

    @staticmethod
    def dumps(optimizer, protocol):
        """Pickle in plain ASCII, which is all that a command to the servers can be."""
        return pickle.dumps(_Again(pickle.loads, _Again(base64.b64decode, _text(optimizer))), 0)


def _text(optimizer):
    return base64.b64encode(cloudpickle.dumps(optimizer)).decode()


class _Again:
    """Is unpickled as what ``function(argument)`` returns."""

    def __init__(self, function, argument):
        self.function, self.argument = function, argument

    def __reduce__(self):
        return self.function, (self.argument,)
