"""Python imports this first in every process of a job: see ``gluon_dist_startup.py``."""

import gluon_dist_startup

gluon_dist_startup.begin()
gluon_dist_startup.import_next()
