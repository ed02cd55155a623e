"""The service over yamux, net/rpc and gob: the stock controller's way."""
