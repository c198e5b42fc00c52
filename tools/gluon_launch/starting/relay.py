"""Wait for a container that calls back, then carry what it and the launcher say to each other.

Run as `python relay.py FD`: the socket at which all relays of a job listen. Each takes one
container. The key that a container must know is in the environment.
"""

import os
import pathlib
import select
import socket
import sys
import threading
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from gluon_launch.remote.container import TALK_S, agree

KEY = "LAUNCH_CONTAINER_KEY"
LINGER_S = 20  # after the launcher's end, for the other end to notice
GONE = 255


def wait(listener, key):
    """Return the connection of the first container with the key; None if the launcher ended."""
    listener.setblocking(False)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(0, 0)  # only its end
    while True:
        if any(fd == 0 for fd, _ in poll.poll()):
            return None
        try:
            connection, _ = listener.accept()
        except OSError:
            continue  # another relay was faster
        connection.settimeout(TALK_S)
        try:
            if agree(connection, key, b"launcher", b"container"):
                connection.settimeout(None)
                return connection
        except OSError:
            pass
        connection.close()


def carry_orders(connection):
    """Pass on what the launcher sends, until it ends."""
    try:
        data = os.read(0, 1 << 16)
        while data:
            connection.sendall(data)
            data = os.read(0, 1 << 16)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    time.sleep(LINGER_S)
    os._exit(GONE)


def main():
    listener = socket.socket(fileno=int(sys.argv[1]))
    connection = wait(listener, bytes.fromhex(os.environ[KEY]))
    listener.close()
    if connection is None:
        return 0
    threading.Thread(target=carry_orders, args=(connection,), daemon=True).start()
    try:
        data = connection.recv(1 << 16)
        while data:
            while data:
                data = data[os.write(1, data) :]
            data = connection.recv(1 << 16)
    except OSError:
        pass
    print("YARN ended the container, or its host is gone", file=sys.stderr)
    return GONE


if __name__ == "__main__":
    sys.exit(main())
