"""How the program ends: one line for a mistake of the user's, the traceback for one of ours."""

import os
import sys
import traceback

STOPPED = 75  # exit status: stopped on request, all is saved, start me again


class UsageError(Exception):
    """Something that the user can mend; the message says what, where and what to do."""


def run(main, program):
    """Call ``main()`` and end the process with its status, whatever happens.

    A worker that raises, or calls ``sys.exit``, while others still train prints its traceback and
    then hangs: the store's destructor waits at a barrier that the others never reach. Hence every
    failure ends with ``os._exit``, and only success takes the ordinary way out, on which the
    workers wait for each other.

    Parameters
    ----------
    main : callable
        Returns the exit status, ``None`` for 0.
    program : str
        Name to put in front of the message.
    """
    try:
        status = main() or 0
    except UsageError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        status = 130
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    flush(sys.stdout)
    flush(sys.stderr)
    if status != 0:
        os._exit(status)


def flush(stream):
    """Flush a stream whose reader may be gone."""
    try:
        stream.flush()
    except OSError:
        pass
