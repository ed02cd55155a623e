"""The reference data plane: what a conformant Gateway does with the routes that it finds on the API."""
