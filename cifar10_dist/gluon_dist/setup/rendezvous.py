"""The scheduler's role without servers: Horovod's workers find each other here."""

import sys

from gluon_dist.setup import environment


def serve_rendezvous():
    """Be Horovod's rendezvous until the launcher ends this process.

    What it says is read by the launcher (``gluon_launch/watching/registration.py``).
    """
    try:
        from horovod.runner.http import http_server
    except ImportError:
        text = "-s 0 is for Horovod, which is not installed: make setup HOROVOD=1"
        print(f"error: {text}", file=sys.stderr, flush=True)
        sys.exit(2)

    class Handler(http_server.RendezvousHandler):
        def _put_value(self, scope, key, value):
            super()._put_value(scope, key, value)
            if scope == "global" and key.isdigit():
                tell(f"worker {key} of {environment.num_workers()} is here")

    address = environment.root_address()
    server = http_server.RendezvousHTTPServer(address, Handler, verbose=0)
    tell("listens")
    server.serve_forever()


def tell(what):
    """Print a line for the launcher."""
    print(f"rendezvous: {what}", file=sys.stderr, flush=True)
