"""What else uses the machine's processors."""

import psutil

NOTICED = 0.15  # processors; less is the noise of an idle machine


def load(seconds=0.3):
    """Return how many processors are busy, while no measured program runs.

    What other tenants of the machine take (steal) counts.
    """
    return round(psutil.cpu_percent(seconds) / 100 * psutil.cpu_count(), 2)


def busy_processes(seconds=1.0):
    """Return a line for each process that uses a processor, the busiest first."""
    found = []
    for process in psutil.process_iter():
        try:
            process.cpu_percent()  # from here on
            found.append(process)
        except psutil.Error:  # ended
            pass
    psutil.cpu_percent(seconds)  # sleeps
    lines = []
    for process in found:
        try:
            share = process.cpu_percent() / 100
            if share >= NOTICED / 2:
                words = " ".join(process.cmdline()[:3]) or process.name()
                lines.append((share, f"{words} (pid {process.pid}): {share:.2f}"))
        except psutil.Error:
            pass
    return [line for _, line in sorted(lines, reverse=True)]
