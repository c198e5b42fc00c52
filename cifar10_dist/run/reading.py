"""``--test-io``: how fast the images are read."""

from run.progress import Progress


def measure_reading(loader, workers, disp_batches):
    """Read an epoch without training (``--test-io``) and print MXNet's speed lines.

    Parameters
    ----------
    loader : loader.TrainLoader
    workers : Workers
    disp_batches : int
        Batches between two lines.
    """
    progress = Progress(workers.rank, len(loader), disp_batches)
    progress.epoch_started(0)
    for steps_done, batch in enumerate(loader.epoch(0), 1):
        labels = [] if batch.label is None else [batch.label]
        progress.batch_done(0, steps_done, [], labels)
    workers.barrier()
    return 0
