"""Error texts are kept with the rows: short, and without credentials."""

import re

MAX_ERROR = 1000
_HIDDEN = "***"

# A name, then its value: `password=...`, `"api_key": "..."`, `SharedAccessKey=...`, `sig=...`.
# The name is sought from the beginning of a word only, else a long one would cost its square. A
# backslash hides what follows it, as in a connection string of PostgreSQL. A quote is open where a
# text was cut.
_NAMED = re.compile(
    r"""(?ix)
    (?<![\w.-]) ( [\w.-]* (?: passw(?:or)?d | passphrase | pwd | secret | token | signature
                | credential | api[-_]?key | access[-_]?key | account[-_]?key | accesskey
                | private[-_]?key | functions[-_]?key | subscription[-_]?key | master[-_]?key )
      | sig | key ) (?=["']?\s*[:=])
    (?P<between> ["']?\s*[:=]\s* )
    (?: "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | ["']?(?:[^\s&;"'\\]|\\.)+ )
    """
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic|sharedaccesssignature)\s+[^\s,;\"']+")
_URL = re.compile(r"(?<=://)[^\s\"'<>]+")
# All before the last `@` of the authority. A password may hold a slash that should have been
# encoded; digits alone between a colon and a slash are a port.
_USER_INFO = re.compile(r"^(?: [^/]*@ | [^/:@]*:(?!\d{1,5}/)[^?]*@ )", re.VERBOSE)
_QUERY_VALUE = re.compile(r"(?<==)[^&#]+")
_JWT = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")


def redacted(text: str) -> str:
    """`text` without anything that looks like a credential, without NUL, bounded."""
    # Cut first, so that a huge text costs little; with room, so that no credential is cut in half
    # and then not recognised.
    text = text[: 4 * MAX_ERROR].replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = without_credentials(text.encode(errors="replace").decode())
    return text if len(text) <= MAX_ERROR else text[: MAX_ERROR - 1] + "\N{HORIZONTAL ELLIPSIS}"


def without_credentials(text: str) -> str:
    """`text` without anything that looks like a credential: values under names that suggest one,
    and what `without_url_credentials` hides."""
    text = without_url_credentials(_SCHEME.sub(rf"\1 {_HIDDEN}", text))
    text = _NAMED.sub(rf"\1\g<between>{_HIDDEN}", text)
    return _JWT.sub(_HIDDEN, text)


def without_url_credentials(text: str) -> str:
    """`text` without the user and the query's values of every URL in it: which of them are secret
    is known to its server alone, as `?code=` of Azure Functions."""
    return _URL.sub(_without_credentials_in_url, text)


def _without_credentials_in_url(found: re.Match[str]) -> str:
    rest = _USER_INFO.sub(f"{_HIDDEN}@", found[0])
    path, mark, query = rest.partition("?")
    return path + mark + _QUERY_VALUE.sub(_HIDDEN, query)
