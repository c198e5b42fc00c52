"""The rungs of ladder.py; groups.py reads their names without importing MXNet."""

RUNGS = {
    "batches": "whole batches from one array, a thread ahead",
    "threads": "a processor for each thread, instead of half of them",
    "hybridized": "hybridize(static_alloc, static_shape), the loss too",
    "products": "convolutions of few pixels as products of matrices",
    "no wait": "no wait between backward and update",
    "updates": "updates on the workers",
    "buckets": "gradients in buckets of 8 MB, sent as they are ready",
    "malloc": "memory of messages kept",
    "shared memory": "gradients added up in shared memory, not sent",
}
