"""Start a job of schedulers, servers and workers, watch it, and stop it. See `tools/launch.py`."""
