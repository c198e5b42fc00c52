"""What a job is: its processes, hosts, addresses, environment and exit statuses."""
