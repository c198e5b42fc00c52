"""Tell of a job: on the screen, in logs, and at its end in a few last lines."""
