"""Tokens (JWT) of an issuer that publishes its keys: who calls is the issuer's word.

What a token must say: `iss` and `aud` as configured, `sub` (the caller's name), `exp`, `roles`
(a list), `tenants` (a list, or "*" for all), and in its header a `kid` that the issuer publishes.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

import aiohttp
import jwt

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.security import keys as api_keys
from lucius_orchestrator.security.bearer import bearer_token, unauthenticated
from lucius_orchestrator.security.callers import Caller, Role
from lucius_orchestrator.security.issuer_keys import IssuerKey, read_key_set

FRESH = timedelta(minutes=5)
GRACE = timedelta(hours=1)
REFETCH_INTERVAL = timedelta(minutes=1)
RETRY_INTERVAL = timedelta(seconds=5)
CLOCK_SKEW = timedelta(seconds=30)
_FETCH_TIMEOUT = aiohttp.ClientTimeout(total=5)
_LARGEST_KEY_SET = 256 * 1024
_LAST_SECOND = 2**53  # whole seconds that a float can tell apart; NaN is beyond them too

_log = logging.getLogger("lucius_orchestrator.security")


class IssuerKeys(Protocol):
    async def key(self, kid: str) -> IssuerKey | None:
        """The issuer's key of this id, None if it has no such key.

        Raises ContractError UNAVAILABLE when that cannot be told.
        """
        ...


class _Copy(NamedTuple):
    keys: Mapping[str, IssuerKey]
    fetched_at: datetime


class _Attempt(NamedTuple):
    at: datetime
    succeeded: bool


class JwksSource:
    """An issuer's key set, fetched over HTTP when it is needed.

    A copy is good for `FRESH`; then it is fetched again, and so it is for a key that the copy
    lacks, but at most once per `REFETCH_INTERVAL`, whatever tokens ask for. While the issuer is
    away the last copy serves until it is `GRACE` old. Without a copy that serves, the issuer is
    asked at most once per `RETRY_INTERVAL`.
    """

    def __init__(self, url: str, clock: Callable[[], datetime]) -> None:
        self._url = url
        self._clock = clock
        self._copy: _Copy | None = None
        self._last: _Attempt | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, kid: str) -> IssuerKey | None:
        if self._is_due(kid) or (self._fetching is not None and self._known(kid) is None):
            await self._fetch_once()
        found = self._known(kid)
        if found is None and not (self._last and self._last.succeeded and self._serving()):
            raise ContractError(ErrorCode.UNAVAILABLE, "the token issuer's keys cannot be read")
        return found

    def _known(self, kid: str) -> IssuerKey | None:
        copy = self._serving()
        return None if copy is None else copy.keys.get(kid)

    def _serving(self) -> _Copy | None:
        """A copy from the future is of unknown age: the clock was set back."""
        copy = self._copy
        if copy is None or not timedelta() <= self._clock() - copy.fetched_at <= GRACE:
            return None
        return copy

    def _is_due(self, kid: str) -> bool:
        now, copy = self._clock(), self._serving()
        if copy is not None and now - copy.fetched_at < FRESH and kid in copy.keys:
            return False
        wait = RETRY_INTERVAL if copy is None else REFETCH_INTERVAL
        return self._fetching is None and not self._tried_within(wait, now)

    def _tried_within(self, wait: timedelta, now: datetime) -> bool:
        return self._last is not None and timedelta() <= now - self._last.at < wait

    async def _fetch_once(self) -> None:
        """One fetch for all who wait. It outlives a request that goes away, so that callers who
        hang up cannot keep the keys from being fetched."""
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch())
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        started, succeeded = self._clock(), False
        try:
            self._copy = _Copy(await self._download(), started)
            succeeded = True
        except (aiohttp.ClientError, OSError) as error:
            _log.warning("issuer.unavailable", extra={"reason": type(error).__name__})
        except _Unusable as unusable:
            _log.warning("issuer.unavailable", extra={"reason": str(unusable)})
        finally:
            self._last = _Attempt(started, succeeded)
            self._fetching = None

    async def _download(self) -> Mapping[str, IssuerKey]:
        """Redirects are not followed: they lead to places that nobody configured."""
        async with (
            aiohttp.ClientSession(timeout=_FETCH_TIMEOUT) as session,
            session.get(self._url, allow_redirects=False) as response,
        ):
            if response.status != HTTPStatus.OK:
                raise _Unusable(f"HTTP status {response.status}")
            keys = read_key_set(await _limited(response.content))
        if keys is None:
            raise _Unusable("not a key set")
        return keys


class _Unusable(Exception):
    """An answer of the issuer without a key set in it."""


async def _limited(stream: aiohttp.StreamReader) -> bytes:
    content = bytearray()
    async for chunk in stream.iter_any():
        content += chunk
        if len(content) > _LARGEST_KEY_SET:
            raise _Unusable(f"more than {_LARGEST_KEY_SET} bytes")
    return bytes(content)


class JwtAuthenticator:
    """Bearers of an issuer's tokens. Only algorithms with public keys count."""

    def __init__(
        self, source: IssuerKeys, issuer: str, audience: str, clock: Callable[[], datetime]
    ) -> None:
        self._source = source
        self._issuer = issuer
        self._audience = audience
        self._clock = clock

    def recognises(self, token: str) -> bool:
        return not token.startswith(api_keys.PREFIX)

    async def authenticate(self, authorization: str | None) -> Caller:
        token = bearer_token(authorization)
        key = await self._source.key(_kid(token))
        if key is None:
            raise _not_valid()
        claims = self._verified(token, key)
        self._check_times(claims)
        return _caller(claims)

    def _verified(self, token: str, key: IssuerKey) -> Mapping[str, Any]:
        """Times are checked apart from this, since the library has a clock of its own."""
        try:
            return jwt.decode(
                token,
                key.public_key,
                algorithms=list(key.algorithms),
                audience=self._audience,
                issuer=self._issuer,
                options={
                    "require": ["exp", "iss", "aud", "sub"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise _not_valid() from error

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now, skew = self._clock().timestamp(), CLOCK_SKEW.total_seconds()
        if _moment(claims["exp"]) + skew <= now:
            raise unauthenticated("the token has expired")
        if "nbf" in claims and _moment(claims["nbf"]) - skew > now:
            raise unauthenticated("the token is not valid yet")


def _kid(token: str) -> str:
    try:
        kid = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise _not_valid() from error
    if not isinstance(kid, str):
        raise _not_valid()
    return kid


def _moment(claim: object) -> float:
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        raise _not_valid()
    if not abs(claim) <= _LAST_SECOND:
        raise _not_valid()
    return float(claim)


def _caller(claims: Mapping[str, Any]) -> Caller:
    name = claims["sub"]
    if not isinstance(name, str) or not name or not name.isprintable():
        raise _not_valid()
    return Caller(name, _tenants(claims.get("tenants")), _roles(claims.get("roles")))


def _tenants(claim: object) -> frozenset[str] | None:
    """In a list "*" is refused: it would be a tenant of that name, which nobody meant."""
    if claim == "*":
        return None
    tenants = _texts(claim)
    if "*" in tenants:
        raise _not_valid()
    return tenants


def _roles(claim: object) -> frozenset[Role]:
    named = _texts(claim)
    roles = frozenset(role for role in Role if role.value in named)
    if len(roles) != len(named):
        raise _not_valid()
    return roles


def _texts(claim: object) -> frozenset[str]:
    if not isinstance(claim, list) or not claim:
        raise _not_valid()
    if not all(isinstance(text, str) and text for text in claim):
        raise _not_valid()
    return frozenset(claim)


def _not_valid() -> ContractError:
    return unauthenticated("the token is not valid")
