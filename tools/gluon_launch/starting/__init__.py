"""Ways of starting: which command reaches a host, here, by ssh, or through a batch system."""
