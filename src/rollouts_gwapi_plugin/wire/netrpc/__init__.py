"""net/rpc: calls and replies as gob values on a stream."""
