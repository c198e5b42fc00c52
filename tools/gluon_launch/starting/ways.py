"""All ways of starting, by the names that `--launcher` takes."""

from gluon_launch.starting.local import Local
from gluon_launch.starting.mpi import Mpi
from gluon_launch.starting.sge import GridEngine
from gluon_launch.starting.slurm import Slurm
from gluon_launch.starting.ssh import Ssh
from gluon_launch.starting.yarn import Yarn

WAYS = {way.name: way for way in (Local(), Ssh(), Mpi(), Slurm(), GridEngine(), Yarn())}
# The options that only some ways support.
PARTICULAR = tuple(dict.fromkeys(option for way in WAYS.values() for option in way.options))
