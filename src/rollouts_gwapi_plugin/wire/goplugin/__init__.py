"""go-plugin: the handshake and the broker of streams."""
