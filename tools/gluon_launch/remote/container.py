"""Call the launcher back from a container, and become a supervisor.

Goes there as a file with a call of `main` at its end: standard library only, Python 3.6 or later.
"""

import hashlib
import hmac
import json
import os
import shutil
import socket

SIZE = 32  # bytes of a number drawn at random, and of a proof
TALK_S = 10


def proof(key, who, number):
    """Return what only an end that knows the key can say about a number of the other end."""
    return hmac.new(key, who + number, hashlib.sha256).digest()


def receive(connection):
    """Return the next `SIZE` bytes."""
    data = b""
    while len(data) < SIZE:
        more = connection.recv(SIZE - len(data))
        if not more:
            raise OSError("the connection closed")
        data += more
    return data


def agree(connection, key, ours, theirs):
    """Return whether both ends know the key. It does not cross the network."""
    number = os.urandom(SIZE)
    connection.sendall(number)
    connection.sendall(proof(key, ours, receive(connection)))
    return hmac.compare_digest(receive(connection), proof(key, theirs, number))


def call(addresses, port, key):
    """Return a connection to the launcher; None if it waits for nobody any more."""
    for address in addresses:
        try:
            connection = socket.create_connection((address, port), TALK_S)
            if agree(connection, key, b"container", b"launcher"):
                connection.settimeout(None)
                return connection
        except OSError:
            pass  # this one is not on a network that we share, or not the launcher
    return None


def tell(connection, why):
    """Tell the launcher why there will be no supervisor, and wait until it has read that."""
    connection.settimeout(TALK_S)
    try:
        connection.sendall(json.dumps({"report": "leaving", "why": why}).encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):  # what is not read would cut the connection off
            pass
    except OSError:
        pass


def main(addresses, port, key, archives, links):
    """Work in this folder, which YARN has made for the container."""
    connection = call(addresses, port, bytes.fromhex(key))
    if connection is None:
        print("the launcher does not wait for this container")
        return
    try:
        for archive in archives:
            shutil.unpack_archive(archive)
        for link, name in links.items():
            os.symlink(name, link)
    except Exception as error:
        tell(connection, f"{type(error).__name__}: {error}")
        raise
    fd = connection.detach()
    for standard in (0, 1):  # YARN may have closed these, and the connection may be one of them
        os.dup2(fd, standard)
    if fd > 1:
        os.close(fd)
    orders = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115  the supervisor reads on
    exec(eval(orders.readline()[7:]), {"__name__": "__main__"})
