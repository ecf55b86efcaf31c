"""Kinds of values that say where something is.

What they refuse is never shown again: people put credentials into addresses.
"""

import re
from collections.abc import Iterable
from os.path import abspath
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from lucius_azure.table_names import physical_name
from lucius_contract.errors import ContractError
from lucius_contract.places import READABLE_SCHEMES, TENANT, normalised, read_prefix
from lucius_contract.refs import ARTIFACT, LOCAL_SCHEMES, RefPolicy, check_ref
from lucius_settings.hosts import HOST, address_of, is_loopback
from lucius_settings.kinds import Kind, Refused, entries, must, set_of
from lucius_settings.secret import Secret

_PLACE = re.compile(r"\.?[a-z0-9$_][a-z0-9$._-]{0,251}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SCHEMES = sorted(LOCAL_SCHEMES)
_ROOT_SCHEMES = sorted(LOCAL_SCHEMES - {ARTIFACT})
_EVERYTHING = "file:///"
_ROOTS = RefPolicy(schemes=LOCAL_SCHEMES, allow_private_addresses=True)


def _read_base(text: str) -> str:
    parts = _split(text, BASE_URL.rule)
    if parts.scheme not in ("http", "https"):
        raise Refused(f"has another scheme; must be {BASE_URL.rule}")
    if "?" in text or "#" in text:
        raise Refused(f"has a query or a fragment; must be {BASE_URL.rule}")
    return text.rstrip("/")


BASE_URL = Kind("an http or https url without credentials, query and fragment", _read_base)


def _read_protected(text: str) -> str:
    parts = _split(text, PROTECTED_URL.rule)
    local = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if parts.scheme != "https" and not local:
        raise Refused(f"does not use https; must be {PROTECTED_URL.rule}")
    return text


PROTECTED_URL = Kind(
    "an https url, or an http url of a loopback host, without credentials", _read_protected
)


def _split(text: str, rule: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise Refused(f"is no url; must be {rule}") from error
    if not parts.scheme or not parts.hostname or " " in text:
        raise Refused(f"is no url; must be {rule}")
    if "@" in parts.netloc:
        raise Refused(f"carries a user name or a password; must be {rule}")
    return parts


def _read_host_and_port(text: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        HOST.read(parts.hostname or "")
        is_whole = bool(parts.port) and parts.netloc == text and "@" not in text
    except (Refused, ValueError) as error:
        raise must(HOST_AND_PORT.rule, text) from error
    if not is_whole:
        raise must(HOST_AND_PORT.rule, text)
    return text


HOST_AND_PORT = Kind("a host and a port, as temporal.example:7233", _read_host_and_port)


def _read_database(text: str) -> Secret:
    if not text.startswith(("postgresql://", "postgres://")):
        raise Refused(f"has another form; must be {DATABASE_URL.rule}")
    return Secret(text)


DATABASE_URL = Kind("a url that begins with postgresql:// or postgres://", _read_database)


def _read_table_name(text: str) -> str:
    try:
        physical_name(text)
    except ValueError as error:
        raise must(TABLE_NAME.rule, text) from error
    return text


TABLE_NAME = Kind(
    "a name with 3 to 63 letters and digits, a letter first, other than tables; what else it holds"
    " is left out",
    _read_table_name,
)


def _read_root(text: str) -> str:
    try:
        check_ref(text, _ROOTS, "")
        normalised(text)
    except (ContractError, ValueError) as error:
        raise Refused(f"cannot be used; must be {ROOT_URI.rule}") from error
    if not urlsplit(text).path.strip("/") and text.startswith("file:"):
        raise Refused(f"names no folder; must be {ROOT_URI.rule}")
    if "?" in text or "#" in text:
        raise Refused(f"has a query or a fragment; must be {ROOT_URI.rule}")
    return text


ROOT_URI = Kind(
    "a uri of a folder, as file:///srv/lucius or az://container/folder, without credentials,"
    f" '..', query and fragment; its scheme is one of {', '.join(_ROOT_SCHEMES)}",
    _read_root,
)


def _read_folders(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_folder(entry) for entry in entries(text, FOLDERS.rule)))


def _folder(entry: str) -> str:
    """The uri of a folder in its normal form, with a slash at its end."""
    local = entry.replace("file://localhost/", "file:///", 1)
    uri = local if _SCHEME.match(local) else Path(abspath(local)).as_uri()
    if uri == _EVERYTHING:
        return uri
    try:
        prefix = read_prefix(f"{uri.rstrip('/')}/", READABLE_SCHEMES - {ARTIFACT})
    except ValueError as error:
        raise Refused(f"has an entry that {error}; must be {FOLDERS.rule}") from error
    if TENANT in prefix:
        raise Refused(f"has an entry with {TENANT}; must be {FOLDERS.rule}")
    return prefix


FOLDERS = Kind(
    "a comma list of folders, as paths or as uris like file:///srv/in and az://container/folder",
    _read_folders,
    ",".join,
    empty=(),
)


def schemes() -> Kind:
    rule = f"a comma list of {', '.join(_SCHEMES)}"

    def read(entry: str) -> str:
        if entry.lower() not in LOCAL_SCHEMES:
            raise must(rule, entry)
        return entry.lower()

    return set_of(read, rule, None)


def places(what: str, empty: Iterable[str] | None) -> Kind:
    """A leading dot stands for all hosts below a domain."""
    rule = f"a comma list of {what}, without scheme, port and path"

    def read(entry: str) -> str:
        if not _PLACE.fullmatch(entry.lower()) and not address_of(entry):
            raise must(rule, entry)
        return entry.lower()

    return set_of(read, rule, empty)
