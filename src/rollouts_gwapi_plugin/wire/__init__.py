"""What the host and we say to each other, sans-IO: bytes in, events out; standard library only."""
