"""At which addresses the processes find each other, and how an address sets a rank."""

import re

ELSEWHERE = "192.0.2.1"  # reserved for examples: whatever routes there is a host's main address


def scheduler_address(reached):
    """Return the first host's address as other hosts can use it, and None or whom to ask about.

    `reached` are the addresses at which the hosts were reached, or their names, "" if not known. If
    the second is not None, ask the first host which of its addresses routes to it: only the host's
    name is known, or an IPv6 address, which MXNet cannot use, or 127.0.0.1.
    """
    first = reached[0]
    others = [a for a in reached[1:] if a and ":" not in a and not a.startswith("127.")]
    others.sort(key=lambda address: address == first)  # to itself a name may mean 127.0.1.1
    is_ipv4, from_itself = re.fullmatch(r"[0-9.]+", first), first.startswith("127.")
    if not is_ipv4 or (from_itself and others):
        return first, (others or [ELSEWHERE])[0]
    return first, None


def announced_address(address, rank):
    """Return the address in octal, with one leading zero more for each rank.

    ps-lite numbers the nodes by the address they announce, compared as a string, highest first. So
    `0177.0.0.1`, `00177.0.0.1`, `000177.0.0.1` become ranks 0, 1 and 2, wherever they are, and all
    of them mean 127.0.0.1 to the system.
    """
    octal = ".".join(f"0{int(part):o}" for part in address.split("."))
    return "0" * rank + octal


def announced_rank(address):
    """Return the rank that an address announces: `announced_address` reversed."""
    return len(address) - len(address.lstrip("0")) - 1
