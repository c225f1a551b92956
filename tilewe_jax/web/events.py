"""Events in the rooms of a server that it measures and logs."""


class Observer:
    """Receives events. This class ignores them; ``monitor.Monitor`` measures and logs them."""

    def refused(self, channel: str, status: int, error: str, address: str, path: str) -> None:
        """Note a refusal.

        Args:
          channel: what was refused: ``"http"``, a request; ``"socket"``, a WebSocket; ``"message"``, a message of a WebSocket;
            ``"connection"``, a connection before its first request.
          status: status of the refusal, as of an HTTP response.
          error: the reason.
          address: address of the client.
          path: path of the request or of the WebSocket.
        """

    def acknowledged(self, seconds: float) -> None:
        """Note the time from the arrival of a move until its acknowledgement was sent."""

    def engine_moved(self, seconds: float, was_warm: bool) -> None:
        """Note the time of an engine for a move, and whether its search was compiled before."""
