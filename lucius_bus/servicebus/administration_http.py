"""What the administration client lacks, below it: plain HTTP to an emulator, and subscriptions that
are made with their only rule.

The service takes the first rule of a subscription in its description, so that none is there for a
moment with a rule that lets everything through. The client has no way to say it, but hands options
of a call down to its transport: `first_rule` is put into the body there. Its place matters, the
service reads the elements in their order.
"""

from types import TracebackType
from typing import Any
from xml.sax.saxutils import escape

from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport

from lucius_bus.filters import PropertyFilter

_SERVICE_BUS = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA = "http://www.w3.org/2001/XMLSchema"
_RULE = b"<DefaultRuleDescription"
_AFTER_RULE = b"<MaxDeliveryCount>"
_LARGEST_INT = 2**31 - 1
_CONNECT_SECONDS = 10
_READ_SECONDS = 60


class AdministrationTransport(AsyncHttpTransport[Any, Any]):
    """`is_plain`: the client says https, and http is spoken. An emulator is near: no proxy."""

    def __init__(self, *, is_plain: bool = False) -> None:
        self._is_plain = is_plain
        self._http = AioHttpTransport(
            use_env_settings=not is_plain,
            connection_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
        )

    async def open(self) -> None:
        await self._http.open()

    async def close(self) -> None:
        await self._http.close()

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.close()

    async def send(self, request: Any, *, first_rule: bytes | None = None, **options: Any) -> Any:
        options.pop("use_tls", None)
        if first_rule is not None:
            _insert(request, first_rule)
        asked = request.url
        if self._is_plain:
            request.url = asked.replace("https://", "http://", 1)
        try:
            return await self._http.send(request, **options)
        finally:
            request.url = asked


def _insert(request: Any, rule: bytes) -> None:
    """Once: a request that is tried again has it. A body that looks otherwise is left as it is;
    the rule has to be made afterwards then."""
    before, mark, after = request.data.partition(_AFTER_RULE)
    if mark and _RULE not in before:
        request.data = before + rule + mark + after
        request.headers["Content-Length"] = str(len(request.data))


def first_rule(name: str, wanted: PropertyFilter) -> bytes:
    """The description of a rule as the first of a subscription."""
    system = _element("MessageId", wanted.message_id) + _element("SessionId", wanted.session_id)
    pairs = "".join(_pair(key, value) for key, value in wanted.properties.items())
    properties = f"<Properties>{pairs}</Properties>" if pairs else ""
    text = (
        f'<DefaultRuleDescription xmlns="{_SERVICE_BUS}" xmlns:i="{_INSTANCE}">'
        f'<Filter i:type="CorrelationFilter">{system}{properties}</Filter>'
        f'<Action i:type="EmptyRuleAction"/><Name>{escape(name)}</Name></DefaultRuleDescription>'
    )
    return text.encode()


def _element(name: str, value: str | None) -> str:
    return "" if value is None else f"<{name}>{escape(value)}</{name}>"


def _pair(key: str, value: str | int) -> str:
    kind = "string"
    if isinstance(value, int):
        kind = "int" if abs(value) <= _LARGEST_INT else "long"
    return (
        f"<KeyValueOfstringanyType><Key>{escape(key)}</Key>"
        f'<Value i:type="d6p1:{kind}" xmlns:d6p1="{_SCHEMA}">{escape(str(value))}</Value>'
        "</KeyValueOfstringanyType>"
    )
