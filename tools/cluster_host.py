"""One host of `cluster.py`: its files, and its process number 1.

Run as `python cluster_host.py FOLDER NAME [SYSTEM …]`, already inside new namespaces.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys

from cluster_batch import PROGRAMS, mount, system

SSHD_CONFIG = """\
ListenAddress {address}
HostKey "{folder}/host_key"
AuthorizedKeysFile "{cluster}/key.pub"
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PidFile none
MaxStartups 100
SetEnv "PATH={path}"
Subsystem sftp internal-sftp
"""


def write_files(folder, name, addresses):
    """Write the files that each host has of its own.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the host, in that of the cluster.
    addresses : dict
        The addresses of all hosts, by name.
    """
    (folder / "home" / "ubuntu").mkdir(parents=True)
    keygen = ["ssh-keygen", "-qt", "ed25519", "-N", "", "-C", name, "-f", folder / "host_key"]
    subprocess.run(keygen, check=True)
    python = pathlib.Path(sys.executable).parent
    config = SSHD_CONFIG.format(
        address=addresses[name],
        folder=folder,
        cluster=folder.parent,
        path=f"{python}:{PROGRAMS}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    )
    (folder / "sshd_config").write_text(config, encoding="utf-8")
    users = pathlib.Path("/etc/passwd").read_text(encoding="utf-8")
    users = f"ubuntu:x:0:0::/home/ubuntu:/bin/sh\n{users}"
    (folder / "passwd").write_text(users, encoding="utf-8")
    # Without passwords, and with nobody locked: sshd refuses such a user, whatever the key.
    shadow = "".join(f"{line.partition(':')[0]}:*:::::::\n" for line in users.splitlines())
    (folder / "shadow").write_text(shadow, encoding="utf-8")
    lines = [f"{address} {other}\n" for other, address in addresses.items()]
    (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines), encoding="utf-8")


def make_private(folder, name, systems):
    """Mount over the folders that a host must not share with this machine."""
    socket.sethostname(name)
    # Clusters with a batch system nearly always share /home, for scripts and what they print.
    home = (folder.parent / "d1" if systems else folder) / "home"
    root = pathlib.Path(__file__).resolve().parent.parent
    for path in {sys.prefix, sys.base_prefix, str(root)}:
        if path.startswith("/home/"):  # still needed: this Python, and the project
            (home / path[len("/home/") :]).mkdir(parents=True, exist_ok=True)
            mount("--bind", path, home / path[len("/home/") :])
    for file in "passwd", "shadow", "hosts":
        mount("--bind", folder / file, f"/etc/{file}")
    mount("--rbind", home, "/home")
    mount("-t", "tmpfs", "shm", "/dev/shm")
    mount("-t", "tmpfs", "run", "/run")
    os.mkdir("/run/sshd")


def expect(word):
    """Wait for a word from `cluster.py up`; if that has ended, end this host."""
    if sys.stdin.readline() != f"{word}\n":
        sys.exit(1)


def main(folder, name, systems):
    """Be process number 1: start the daemons, then reap orphans."""
    make_private(folder, name, systems)
    expect("wired")
    subprocess.Popen([shutil.which("sshd"), "-D", "-e", "-f", folder / "sshd_config"])
    for each in systems:
        system(each).start(folder, name)
    expect("keep")
    while True:
        try:
            os.wait()
        except ChildProcessError:
            sys.exit("sshd has ended")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
