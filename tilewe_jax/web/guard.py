"""Protection against requests that other web pages make in a visitor's browser."""

import ipaddress
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
        " object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), interest-cohort=()",
}
"""Headers of every response. They forbid content of other servers, inline scripts, and frames in other pages."""
_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))
"""The addresses of this machine."""


FORWARDING_HEADERS = ("x-forwarded-for", "forwarded", "via")
"""Headers of requests that a proxy has forwarded."""


def with_mapped(networks: Iterable[Network]) -> list[Network]:
    """Return networks, and for IPv4 also the addresses ::ffff:1.2.3.4, by which a listener of IPv6 knows them."""
    mapped = [
        ipaddress.ip_network((f"::ffff:{network.network_address}", 96 + network.prefixlen))
        for network in networks
        if network.version == 4
    ]
    return [*networks, *mapped]


def includes(networks: Iterable[Network], address: str) -> bool:
    """Return whether an address is in one of these networks; ``False`` for a text that is not an address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return any(ip in network for network in with_mapped(networks))


def allows_host(host: str, names: Collection[str]) -> bool:
    """Return whether a ``Host`` header has an IP address or one of these names.

    With DNS rebinding, the name of another site resolves to the address of this server, so that pages of that site count as
    its own. The header has the name of that site then.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name in names:
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def allows_origin(origin: str | None, host: str, is_secure: bool = False) -> bool:
    """Return whether a request comes from a page of this server or, without an origin, from a program.

    Args:
      origin: header ``Origin``, the server of the page.
      host: header ``Host``.
      is_secure: whether the request came by TLS; a page without TLS is then a page of another server.
    """
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in (("https",) if is_secure else ("http", "https")) and parts.netloc.lower() == host.lower()


class Guard:
    """Middleware that checks host and origin of requests, and adds the security headers to responses.

    Args:
      app: the application.
      host_names: names under which clients reach the server, besides IP addresses.
    """

    def __init__(self, app: ASGIApp, host_names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in host_names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI request or WebSocket."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [header for header in _HEADERS if header[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        error = self._error(scope) if scope["type"] in ("http", "websocket") else None
        if error is None:
            await self._app(scope, receive, send_guarded)
        elif scope["type"] == "http":
            await JSONResponse({"error": error, "field": None}, 403, {"connection": "close"})(scope, receive, send_guarded)
        else:  # a close before the acceptance gives an HTTP response 403
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": error})

    def _error(self, scope: Scope) -> str | None:
        """Reason to refuse a request because of its headers, or ``None``."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not allows_host(host, self._names):
            return f"the server does not accept the host name {host[:80]!r}; start it with --names to add it"
        is_reading = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_reading and not allows_origin(headers.get("origin"), host, scope["scheme"] in ("https", "wss")):
            return "requests from pages of other sites are not allowed"
        return None
