"""Error texts are kept with the rows: short, and without credentials."""

import re

MAX_ERROR = 1000
_HIDDEN = "***"

# A name, then its value: `password=...`, `"api_key": "..."`, `SharedAccessKey=...`, `sig=...`.
# The name is sought from the beginning of a word only, else a long one would cost its square.
_NAMED = re.compile(
    r"""(?ix)
    (?<![\w.-]) ( [\w.-]* (?: passw(?:or)?d | pwd | secret | token | signature | credential
                | api[-_]?key | access[-_]?key | account[-_]?key | accesskey | private[-_]?key )
      | sig | key ) (?=["']?\s*[:=])
    (?P<between> ["']?\s*[:=]\s* )
    (?: "[^"]*" | '[^']*' | [^\s&;,"'}\])]+ )
    """
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic|sharedaccesssignature)\s+[^\s,;\"']+")
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")
_JWT = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")


def redacted(text: str) -> str:
    """`text` without anything that looks like a credential, without NUL, bounded."""
    # Cut first, so that a huge text costs little; with room, so that no credential is cut in half
    # and then not recognised.
    text = text[: 4 * MAX_ERROR].replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = text.encode(errors="replace").decode()
    text = _SCHEME.sub(rf"\1 {_HIDDEN}", text)
    text = _NAMED.sub(rf"\1\g<between>{_HIDDEN}", text)
    text = _USER_INFO.sub(f"{_HIDDEN}@", text)
    text = _JWT.sub(_HIDDEN, text)
    return text if len(text) <= MAX_ERROR else text[: MAX_ERROR - 1] + "\N{HORIZONTAL ELLIPSIS}"
