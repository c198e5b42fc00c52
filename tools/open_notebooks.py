#!/usr/bin/env python3
"""Open JupyterLab: ``make jupyter``. Its address stands in one line, below warnings only.

Options are those of ``jupyter lab``.
"""

from jupyter_server.serverapp import ServerApp
from jupyterlab.labapp import LabApp


class Server(ServerApp):
    """A server that says where it is in a line, and at any level of its log."""

    def start_app(self):
        """Start as usual, but without the block of lines on an address with a new token."""
        address = self.local_url  # makes the token
        self.identity_provider.token_generated = False
        super().start_app()
        print(f"JupyterLab: {address}  (Ctrl-C stops it)", flush=True)


if __name__ == "__main__":
    LabApp.serverapp_class = Server
    LabApp.launch_instance()
