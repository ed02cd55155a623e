"""Accept connections and give each a thread: the one front of both transports.

What must always hold: an error of one connection ends that connection only; there are never more than
`MAX_CONNECTIONS`; after `close` no further connection is taken.
"""

import socket
import threading
import time
from collections.abc import Callable

from rollouts_gwapi_plugin.log import get_logger

# A host needs one connection and a probing one; each costs a thread and up to some MB of buffers.
MAX_CONNECTIONS = 64
# Accepting can fail for want of file descriptors; trying again at once would only burn the processor.
ACCEPT_PAUSE = 0.1

ConnectionServer = Callable[[socket.socket], None]


class Front:
    """Takes connections from a listening socket; `serve` has each in a thread of its own and closes it."""

    def __init__(self, listening: socket.socket, serve: ConnectionServer) -> None:
        self._listening = listening
        self._serve = serve
        self._closed = threading.Event()
        self._accepting = threading.Thread(target=self._accept_all, name="accept", daemon=True)
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to accept."""
        self._accepting.start()

    def close(self) -> None:
        """Take no more connections; the caller closes the listening socket."""
        self._closed.set()

    def join(self, seconds: float) -> bool:
        """Wait until all connections have ended; False where some have not after that time."""
        deadline = time.monotonic() + seconds
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _accept_all(self) -> None:
        while not self._over():
            try:
                connection, _ = self._listening.accept()
            except OSError as error:
                if not self._over():
                    get_logger().warning("can't accept a connection", error=str(error))
                    self._closed.wait(ACCEPT_PAUSE)
                continue
            self._take(connection)

    def _over(self) -> bool:
        return self._closed.is_set() or self._listening.fileno() == -1

    def _take(self, connection: socket.socket) -> None:
        thread = threading.Thread(target=self._run, args=(connection,), name="connection", daemon=True)
        with self._lock:
            full = len(self._threads) >= MAX_CONNECTIONS
            if not full:
                self._threads.add(thread)
                # Under the lock, since a thread that has not begun can't be joined.
                thread.start()
        if full:
            get_logger().warning("refused a connection: too many are open", limit=MAX_CONNECTIONS)
            connection.close()

    def _run(self, connection: socket.socket) -> None:
        try:
            self._serve(connection)
        except Exception as error:  # noqa: BLE001 - one connection's failure is not the process's (D4)
            get_logger().error("a connection ended by a bug", exc_info=error)
            connection.close()
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())
