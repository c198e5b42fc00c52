"""Near-equal parts: of examples, of GPUs, of sums."""


def split_range(length, num_parts, part_index):
    """Return one of the near-equal parts of ``range(length)``.

    Parameters
    ----------
    length, num_parts : int
        The first ``length % num_parts`` parts are longer by one.
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
