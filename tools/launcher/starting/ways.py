"""All ways of starting, by the names that `--launcher` takes."""

from launcher.starting.local import Local
from launcher.starting.mpi import Mpi
from launcher.starting.sge import GridEngine
from launcher.starting.slurm import Slurm
from launcher.starting.ssh import Ssh
from launcher.starting.yarn import Yarn

WAYS = {way.name: way for way in (Local(), Ssh(), Mpi(), Slurm(), GridEngine(), Yarn())}
