"""The package gluon_dist on this host, which the launcher brings for the processes of a job.

Goes to every host together with `supervisor.py`: standard library only, Python 3.6 or later.
"""

import base64
import fcntl
import glob
import json
import os
import shutil
import tempfile
import time
import zlib

FOLDER = "gluon-dist-"  # how the folder of the package begins
SETTLED_S = 60  # a younger folder may not be locked yet


def remove_abandoned():
    """Remove folders of this user whose supervisor and guard were killed, both at once."""
    for folder in glob.glob(os.path.join(tempfile.gettempdir(), FOLDER + "*")):
        try:
            about = os.stat(folder)
            if about.st_uid != os.getuid() or time.time() - about.st_mtime < SETTLED_S:
                continue
            lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR)
        except OSError:  # it has just gone, or is not ours
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # somebody holds it: all is well
            pass
        os.close(lock)


class Package:
    """Comes in parts; then it is unpacked to a folder, of which each process is told."""

    def __init__(self):
        self.packed = ""
        self.folder = self.why_not = None  # where it is, or why it is not

    def unpack(self):
        """Write its files to a folder that only this user can read."""
        if not self.packed:
            return
        try:
            remove_abandoned()
            self.folder = tempfile.mkdtemp(prefix=FOLDER)
            self.lock()
            for path, text in json.loads(zlib.decompress(base64.b64decode(self.packed))).items():
                path = os.path.join(self.folder, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        except OSError as error:
            self.why_not = f"no place for gluon_dist: {error}; set TMPDIR, or say --no-prepare"

    def lock(self):
        """Hold the folder until this process and the guard have ended."""
        lock = os.open(os.path.join(self.folder, "lock"), os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:  # a file system without locks: then nobody else removes the folder, either
            pass

    def tell(self, name, env):
        """Return the environment of a process that finds the package first, and its claim file."""
        if not self.folder:
            return env, None
        places = [env.get("PYTHONPATH", os.environ.get("PYTHONPATH"))]
        startup = os.path.join(self.folder, "gluon_dist", "startup")
        claim = os.path.join(self.folder, name)
        python_path = os.pathsep.join([startup, *filter(None, places)])
        return dict(env, PYTHONPATH=python_path, LAUNCH_PREPARED=claim), claim

    def remove(self):
        """Leave no folder."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
