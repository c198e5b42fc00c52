"""What the launcher and its supervisors on the hosts have agreed on."""

SILENCE_S = 10  # neither side has heard of the other for so long: the host is lost, all is ended
KILL_S = 3  # between TERM and KILL
