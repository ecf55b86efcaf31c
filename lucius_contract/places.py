"""Which refs a tenant may name: places, and the one spelling of a uri that they are compared with.

A place is a prefix of uris that ends at a `/`, as `az://inbox/{tenant}/`, where `{tenant}` is the
folder of the tenant that asks. What two readers of a uri could read as two different files is
refused, so that no spelling leads out of a place.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import SplitResult, quote, unquote, urlsplit

from lucius_contract.refs import ARTIFACT

HTTPS = "https"
STORAGE_SCHEMES = frozenset({"file", "az", "s3"})
READABLE_SCHEMES = STORAGE_SCHEMES | {ARTIFACT, HTTPS}
PUBLISHABLE_SCHEMES = STORAGE_SCHEMES | {ARTIFACT}
"""What some service of the platform can publish to."""
TENANT = "{tenant}"

# Nearly every ref is its own normal form: nothing to decode, and no dot begins or ends a segment.
_NORMAL = re.compile(
    r"(?:file://|(?:az|s3|https)://[a-z0-9]+(?:[.-][a-z0-9]+)*)"
    r"(?:/[A-Za-z0-9_~-]+(?:\.+[A-Za-z0-9_~-]+)*)+/?"
)
_BUCKET = re.compile(r"(?:[A-Za-z0-9._$-]|\{tenant\})+")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*")
_AMBIGUOUS = re.compile(r"[/\\\x00-\x1f\x7f-\x9f]")
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HTTPS_PORT = 443


def normalised(uri: str) -> str:
    """Return the one spelling of a uri, without query and fragment. ValueError, which says why, if
    it has none: a dot segment, an encoded slash, a segment that storages read differently."""
    if _NORMAL.fullmatch(uri):
        return uri
    if _UNPRINTABLE.search(uri):
        raise ValueError("holds white space or control characters")
    parts = _split(uri)
    if parts.scheme == HTTPS:
        authority = _host(parts)
    elif parts.scheme in STORAGE_SCHEMES:
        if "?" in uri or "#" in uri:
            raise ValueError("has a query or a fragment; percent-encode '?' and '#'")
        authority = _bucket(parts)
    else:
        raise ValueError(f"has the scheme {parts.scheme!r}, of which there are no places")
    names = _names(parts)
    return f"{parts.scheme}://{authority}/{'/'.join(quote(name, safe='') for name in names)}"


def read_prefix(text: str, schemes: frozenset[str]) -> str:
    """Return a place in its normal form. ValueError says why it is none."""
    scheme = text.partition(":")[0]
    if scheme not in schemes:
        raise ValueError(f"must begin with one of {', '.join(f'{s}://' for s in sorted(schemes))}")
    if not text.endswith("/"):
        raise ValueError("must end with a '/', or names that begin alike would be within it")
    if "{" in text.replace(TENANT, "") or "}" in text.replace(TENANT, ""):
        raise ValueError(f"has a placeholder other than {TENANT}")
    prefix = normalised(text).replace(quote(TENANT, safe=""), TENANT)
    if prefix == "file:///":
        raise ValueError("names no folder")
    return prefix


@dataclass(frozen=True, slots=True)
class Reach:
    """What every tenant may name besides its places: all below `prefixes`, and anything of a scheme
    in `schemes` while no place of that scheme is set."""

    prefixes: tuple[str, ...] = ()
    schemes: frozenset[str] = frozenset()


class Workspace(NamedTuple):
    """The folder above the folders of all tenants; `folded` is for comparisons without case."""

    prefix: str
    folded: str


class TenantPlaces(NamedTuple):
    """One tenant and what it may name in one direction: of the workspace an input may name the
    tenant's own `folder`, and an output nothing."""

    workspace: Workspace
    folder: str
    places: Sequence[str]
    reach: Reach
    is_input: bool

    def problem(self, uri: str) -> str | None:
        """Return why a well-formed uri is not the tenant's to name, or None."""
        scheme = uri.partition(":")[0]
        known = READABLE_SCHEMES if self.is_input else PUBLISHABLE_SCHEMES
        if scheme not in known:
            done = "read" if self.is_input else "published to"
            return f"has a scheme that is never {done}; {done}: {', '.join(sorted(known))}"
        places = [place for place in self.places if place.startswith(scheme)]
        is_open = not places and scheme in self.reach.schemes
        if scheme == ARTIFACT or (scheme == HTTPS and is_open):
            return None
        try:
            spelled = normalised(uri)
        except ValueError as error:
            return f"cannot be compared with places: {error}"
        if _meets(spelled, self.workspace.folded):
            return self._problem_in_workspace(spelled)
        own = [place.replace(TENANT, self.folder) for place in places]
        if is_open or spelled.startswith((*own, *self.reach.prefixes)):
            return None
        which = "input_places" if self.is_input else "output_places"
        return f"is in no place of the tenant; an operator adds one to {which}"

    def _problem_in_workspace(self, spelled: str) -> str | None:
        if not self.is_input:
            return "is in the workspace, where only steps write"
        if spelled.startswith(f"{self.workspace.prefix}{self.folder}/"):
            return None
        return "is in the workspace, of which a tenant may read its own folder alone"


@lru_cache(maxsize=16)
def workspace_of(root: str, system: str) -> Workspace:
    """Return `<root>/<system>/`. ValueError if the root has no normal form."""
    prefix = normalised(f"{root.rstrip('/')}/{system}/")
    return Workspace(prefix, _folded(prefix))


def _meets(spelled: str, workspace: str) -> bool:
    """Whether a uri is within the workspace, or a folder around it, on storages that tell upper and
    lower case apart and on those that do not."""
    found = _folded(spelled)
    folder = found if found.endswith("/") else f"{found}/"
    return folder.startswith(workspace) or workspace.startswith(folder)


def _folded(spelled: str) -> str:
    name = unquote(spelled) if "%" in spelled else spelled
    return name.lower() if name.isascii() else normalize("NFC", name.casefold())


def _split(uri: str) -> SplitResult:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:  # whose message may hold a password
        raise ValueError("is no uri with a host and a port") from None
    return parts


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if not _HOST.fullmatch(host) or "@" in parts.netloc:
        raise ValueError("names no host that is written in letters, digits, dots and dashes")
    shown = f"[{host}]" if ":" in host else host
    return shown if parts.port in (None, _HTTPS_PORT) else f"{shown}:{parts.port}"


def _bucket(parts: SplitResult) -> str:
    if parts.scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise ValueError("does not have the form file:///absolute/path")
        return ""
    if not _BUCKET.fullmatch(parts.netloc):
        raise ValueError("names no container or bucket")
    return parts.netloc


def _names(parts: SplitResult) -> list[str]:
    """The segments, decoded once. The last one is empty for a folder."""
    if _BROKEN_ESCAPE.search(parts.path):
        raise ValueError("has a '%' that begins no escape; write %25")
    *folders, last = [_name(segment, parts.scheme) for segment in parts.path[1:].split("/")]
    if parts.scheme == "file":  # two slashes are one
        folders = [folder for folder in folders if folder]
    if "" in folders:
        raise ValueError("has an empty segment")
    return [*folders, last]


def _name(segment: str, scheme: str) -> str:
    try:
        name = unquote(segment, errors="strict")
        name.encode()
    except UnicodeError as error:
        raise ValueError("is not UTF-8 once it is percent-decoded") from error
    if name in (".", ".."):
        raise ValueError("has a dot segment")
    if _AMBIGUOUS.search(name):
        raise ValueError("has an encoded slash, a backslash or a control character")
    if scheme == "az" and name.endswith("."):
        raise ValueError("has a segment that ends with a dot, which Azure may leave out")
    return name
