"""net/rpc: calls and replies as gob values on a stream."""

from rollouts_gwapi_plugin.wire.netrpc.connection import ClientConnection, ServerConnection
from rollouts_gwapi_plugin.wire.netrpc.events import CallReceived, ReplyReceived, Unreadable

__all__ = ["CallReceived", "ClientConnection", "ReplyReceived", "ServerConnection", "Unreadable"]
