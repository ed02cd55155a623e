"""encoding/gob: what Go sends for a value."""
