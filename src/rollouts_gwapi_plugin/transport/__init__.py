"""The two ways in which the host can talk to the service."""
