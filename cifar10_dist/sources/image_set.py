"""What every source of images gives."""

from typing import Any, NamedTuple


class ImageSet(NamedTuple):
    """The images of a training set or a test set, and their labels.

    Attributes
    ----------
    images : ndarray of uint8, shape (N, C, H, W), or RecordImages
    labels : ndarray of int32, shape (N,), or RecordLabels
    """

    images: Any
    labels: Any

    def first(self, number):
        """Return the first ``number`` examples; all of them for None. Not of RecordIO files."""
        return ImageSet(self.images[:number], self.labels[:number])
