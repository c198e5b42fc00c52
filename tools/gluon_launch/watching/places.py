"""A check that every supervisor is on the host that was asked for.

What starts it may have a mind of its own: mpirun cuts names at the dot, an option of srun names
another host, ssh uses a connection to another host if a ControlPath is the same for both.
"""


def wrong(job, connections, world, ask):
    """Return a line for each supervisor that is on another host; `ask` is `Watch.ask`."""
    way = job.way
    wanted = {c: world.addresses(way.wanted(c.host, job)) for c in way.doubtful(connections)}
    orders = {c: ("own", {"addresses": found}) for c, found in wanted.items() if found}
    own = ask("own", orders) if orders else {}
    return [
        f"{c.host}: {way.programs[-1]} led to {c.ready['hostname']}, which does not have its"
        f" address {' or '.join(wanted[c])}"
        for c in own
        if not own[c]["addresses"] and c.ready["hostname"] != c.host.name
    ]
