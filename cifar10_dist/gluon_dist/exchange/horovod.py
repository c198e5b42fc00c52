"""Gradients added up by Horovod, through ``workers/horovod_store.py``."""

from gluon_dist.exchange.buckets import BUCKET_BYTES, Buckets


class HorovodBuckets(Buckets):
    """Buckets that Horovod adds up, in the order in which backward fills them."""

    def __init__(self):
        super().__init__(BUCKET_BYTES)

    def add_up(self):
        """Send every bucket, the last layers' first."""
        for number in reversed(range(len(self.buckets))):
            self._send(number)

    def explain(self):
        """Say who adds gradients up."""
        return ["gradients are added up by Horovod, without servers"]
