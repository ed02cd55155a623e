"""A small cluster for demo and tests: API server, reference data plane, and a host that plays the controller."""
