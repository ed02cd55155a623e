"""yamux: many streams over one connection."""
