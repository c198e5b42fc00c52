"""A dist store does what other stores do: in the order of the calls, and to no other array."""

import functools

PUSHED = ()  # nothing shows when that is done


def keep_order(mxnet):
    """Let a push to ``dist_sync`` wait for earlier ones to its key, and for pulls asked before it.

    All are queued. Servers count pushes, not workers: a second push that overtakes the end of the
    first is taken for another worker's, and the sums are wrong. And a pull that is still queued
    may bring what a later push has made. Of the processor's arrays copies are pushed: MXNet would
    write what is pulled for their key into them.
    """
    store_class = mxnet.kvstore.KVStore
    push, pull, pushpull = store_class.push, store_class.pull, store_class.pushpull
    init = store_class.init

    store_class.may_overwrite = False  # what is pushed: see OwnCalls in shared_store.py

    def settle(store, key, arrays, is_push=True, pushed=()):
        """Wait for what was queued for a key; note the arrays that the next call will fill.

        An array that is pushed is waited for by what is queued: backward may still write it.
        """
        unsettled = vars(store).setdefault("unsettled", {})
        if "dist" not in store.type or "async" in store.type:
            return
        keys = key if isinstance(key, (list, tuple)) else [key]
        for n, each in enumerate(keys):
            before = unsettled.get(each)
            unsettled[each] = list(arrays_of(arrays if keys is not key else arrays[n : n + 1]))
            if before:
                known = {id(array) for array in arrays_of(pushed)}
                for array in before:
                    if id(array) not in known:
                        array.wait_to_read()
            elif before is not None and is_push:
                mxnet.nd.waitall()

    @functools.wraps(push)
    def push_in_order(self, key, value, priority=0):
        settle(self, key, PUSHED, pushed=value)
        push(self, key, copied(self, key, value), priority)

    @functools.wraps(pull)
    def pull_in_order(self, key, out=None, *args, **kwargs):
        settle(self, key, () if out is None else out, is_push=False)
        pull(self, key, out, *args, **kwargs)

    @functools.wraps(pushpull)
    def pushpull_in_order(self, key, value, out=None, priority=0):
        settle(self, key, value if out is None else out, pushed=value)
        pushpull(self, key, value if out is None else copied(self, key, value), out, priority)

    @functools.wraps(init)
    def init_with_copies(self, key, value):
        init(self, key, copied(self, key, value))

    store_class.push, store_class.pull = push_in_order, pull_in_order
    store_class.pushpull, store_class.init = pushpull_in_order, init_with_copies


def copied(store, key, value):
    """Return copies of the arrays that MXNet would go on using, one for a key."""
    if "dist" not in store.type or store.may_overwrite:
        return value
    if isinstance(key, (list, tuple)):
        return [copied(store, None, each) for each in value]
    arrays = value if isinstance(value, (list, tuple)) else [value]
    is_kept = len(arrays) == 1 and arrays[0].stype == "default"
    return arrays[0].copy() if is_kept and arrays[0].context.device_type == "cpu" else value


def arrays_of(items):
    """Yield the arrays of lists within lists."""
    if isinstance(items, (list, tuple)):
        for each in items:
            yield from arrays_of(each)
    else:
        yield items
