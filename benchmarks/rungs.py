"""The rungs of ladder.py, in a module without MXNet, so that groups.py can name them."""

RUNGS = (
    "whole batches from one array, a thread ahead",
    "a processor for each thread, instead of half of them",
    "hybridize(static_alloc, static_shape), the loss too",
    "convolutions of few pixels as products of matrices",
    "no wait between backward and update",
    "updates on the workers",
    "gradients in buckets of 8 MB, sent as they are ready",
    "memory of messages kept",
    "gradients added up in shared memory, not sent",
)
