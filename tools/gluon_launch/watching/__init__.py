"""Watch a job: reach its hosts, start its processes, notice what happens, stop and start again."""
