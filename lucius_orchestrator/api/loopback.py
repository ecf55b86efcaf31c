"""Without auth, who reaches this machine's loopback may do all. A browser reaches it for every page
that it shows, so requests that a page of another site has made are refused, and so are those for
another name than the machine's own, which is how a page makes itself look like one of ours."""

from functools import lru_cache
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from lucius_contract.errors import ERRORS, ErrorCode
from lucius_orchestrator.api.answers import send_refusal
from lucius_orchestrator.api.headers import header
from lucius_orchestrator.api.problems import Refusal

_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class LoopbackOnly:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = _reason(scope) if scope["type"] == "http" else None
        if reason is None:
            await self._app(scope, receive, send)
            return
        meaning = ERRORS[ErrorCode.FORBIDDEN].meaning
        await send_refusal(
            Refusal(HTTPStatus.FORBIDDEN, ErrorCode.FORBIDDEN, meaning, reason), send
        )


def _reason(scope: Scope) -> str | None:
    host, origin = header(scope, b"host"), header(scope, b"origin")
    if host is not None and not _is_own(b"//" + host):
        return "auth is off, so only requests for this machine's own names are taken"
    if origin is not None and not _is_own(origin):
        return "auth is off, so requests from pages of other sites are not taken"
    return None


@lru_cache(maxsize=64)
def _is_own(address: bytes) -> bool:
    try:
        return (urlsplit(address.decode("latin-1")).hostname or "") in _OWN_NAMES
    except ValueError:
        return False
