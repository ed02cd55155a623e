"""The way to the Kubernetes API."""
