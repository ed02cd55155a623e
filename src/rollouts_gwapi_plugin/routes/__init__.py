"""The reconcilers: route in, route out; pure."""
