"""How things are shared out: examples over workers, GPUs over processes, sums over both."""


def split_range(length, num_parts, part_index):
    """Cut ``range(length)`` into near-equal parts and give one of them.

    Parameters
    ----------
    length, num_parts : int
        The first ``length % num_parts`` parts are one longer than the others.
    part_index : int
        In ``[0, num_parts)``.

    Returns
    -------
    start, stop : int
        Half-open, as in ``range``.
    """
    size, longer = divmod(length, num_parts)
    start = part_index * size + min(part_index, longer)
    return start, start + size + (part_index < longer)
