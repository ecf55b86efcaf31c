"""API keys: random secrets, of which a file keeps the SHA-256.

A secret has 256 random bits, so that a plain hash of it cannot be searched for; slow hashes are for
secrets that people choose.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.security import private_files
from lucius_orchestrator.security.bearer import bearer_token, unauthenticated
from lucius_orchestrator.security.callers import Caller, Role
from lucius_orchestrator.security.key_document import (
    ALL_TENANTS,
    Entry,
    KeyInfo,
    read_entries,
    write_entries,
)

PREFIX = "lk_"
LOOK_INTERVAL = timedelta(seconds=1)
_ID_BYTES = 8
_SECRET_BYTES = 32
_LONGEST_NAME = 128

_log = logging.getLogger("lucius_orchestrator.security")


class KeyFileUnreadable(ContractError):
    """Nobody can be authenticated until the file is whole again. `reason` is for operators."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(ErrorCode.UNAVAILABLE, "the API keys cannot be read")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class NewKey:
    """The only time that the secret is there to be seen."""

    key_id: str
    secret: str = field(repr=False)


class KeyFile:
    """The keys in one file, which several processes may change at the same time.

    `find` goes by a copy in memory that is at most `LOOK_INTERVAL` old; the rest goes by the file.
    A file that is not there has no keys. One that cannot be read is KeyFileUnreadable for everyone,
    those included whose keys were in the copy until then. What cannot be written is an OSError.
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], datetime],
        *,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._path = path
        self._clock = clock
        self._entropy = entropy
        self._looked_at: datetime | None = None
        self._content: bytes | None = None
        self._copy: Mapping[str, Entry] | KeyFileUnreadable = {}

    def create(self, name: str, tenants: frozenset[str] | None, roles: frozenset[Role]) -> NewKey:
        """A new key; None for all tenants. ValueError says what the key lacks."""
        _check(name, tenants, roles)
        key_id = self._entropy(_ID_BYTES).hex()
        secret = f"{PREFIX}{key_id}_{self._entropy(_SECRET_BYTES).hex()}"
        info = KeyInfo(key_id, name, tenants, frozenset(roles), self._clock())
        with private_files.locked(self._path) as target:
            self._write(target, (*self._entries(), Entry(info, _digest(secret))))
        return NewKey(key_id, secret)

    def revoke(self, key_id: str) -> bool:
        """Whether there was such a key to revoke. It stays in the file, as revoked."""
        with private_files.locked(self._path) as target:
            entries = self._entries()
            changed = tuple(self._revoked(entry, key_id) for entry in entries)
            if changed == entries:
                return False
            self._write(target, changed)
        return True

    def keys(self) -> list[KeyInfo]:
        return [entry.info for entry in self._entries()]

    def find(self, secret: str) -> KeyInfo | None:
        """The key with this secret, unless it was revoked."""
        if self.is_old():
            self.look()
        return self.find_in_copy(secret)

    def find_in_copy(self, secret: str) -> KeyInfo | None:
        if isinstance(self._copy, KeyFileUnreadable):
            raise KeyFileUnreadable(self._copy.path, self._copy.reason)
        entry = self._copy.get(_key_id(secret))
        if entry is None or entry.info.revoked_at is not None:
            return None
        return entry.info if hmac.compare_digest(entry.sha256, _digest(secret)) else None

    def is_old(self) -> bool:
        """Also when the clock was set back: its past says nothing about the copy's age."""
        if self._looked_at is None:
            return True
        return not timedelta() <= self._clock() - self._looked_at < LOOK_INTERVAL

    def look(self) -> None:
        """Bring the copy up to date; does not raise. Content is compared, since times of files
        are too coarse to tell two changes apart."""
        looked_at = self._clock()
        try:
            self._update(self._read())
        except KeyFileUnreadable as unreadable:
            self._refuse(unreadable)
        self._looked_at = looked_at

    def _update(self, content: bytes | None) -> None:
        if content != self._content or isinstance(self._copy, KeyFileUnreadable):
            self._copy = {entry.info.key_id: entry for entry in self._parsed(content)}
            self._content = content

    def _refuse(self, unreadable: KeyFileUnreadable) -> None:
        if not isinstance(self._copy, KeyFileUnreadable):
            where = {"path": str(unreadable.path), "reason": unreadable.reason}
            _log.error("keys.unreadable", extra=where)
        self._copy = unreadable

    def _entries(self) -> tuple[Entry, ...]:
        return self._parsed(self._read())

    def _read(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyFileUnreadable(self._path, error.strerror or "I/O error") from error

    def _parsed(self, content: bytes | None) -> tuple[Entry, ...]:
        entries = () if content is None else read_entries(content)
        if entries is None:
            raise KeyFileUnreadable(self._path, "not a well-formed key file")
        return entries

    def _write(self, target: Path, entries: Sequence[Entry]) -> None:
        private_files.replace(target, write_entries(entries))
        self._looked_at = None

    def _revoked(self, entry: Entry, key_id: str) -> Entry:
        if entry.info.key_id != key_id or entry.info.revoked_at is not None:
            return entry
        return entry._replace(info=replace(entry.info, revoked_at=self._clock()))


class KeyAuthenticator:
    """Bearers of API keys. Files are read in a thread, by one request for all that wait."""

    def __init__(self, key_file: KeyFile) -> None:
        self._keys = key_file
        self._looking = asyncio.Lock()

    def recognises(self, token: str) -> bool:
        return token.startswith(PREFIX)

    async def authenticate(self, authorization: str | None) -> Caller:
        secret = bearer_token(authorization)
        if self._keys.is_old():
            await self._look()
        info = self._keys.find_in_copy(secret)
        if info is None:
            raise unauthenticated("the API key is not valid")
        return info.caller

    async def _look(self) -> None:
        async with self._looking:
            if self._keys.is_old():
                await asyncio.to_thread(self._keys.look)


def _check(name: str, tenants: frozenset[str] | None, roles: frozenset[Role]) -> None:
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"a key's name has 1 to {_LONGEST_NAME} printable characters")
    if not roles:
        raise ValueError("a key without a role may do nothing: give at least one")
    if tenants is not None and (not tenants or not all(tenants) or ALL_TENANTS in tenants):
        raise ValueError("give a key at least one tenant by its name, or all of them")


def _key_id(secret: str) -> str:
    return secret.removeprefix(PREFIX).partition("_")[0] if secret.startswith(PREFIX) else ""


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
