"""What runs on the hosts, sent there by ssh: standard library only, Python 3.6 or later."""
