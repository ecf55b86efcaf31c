"""Text as it stands in the output, whether it was printed or recognised."""

import re
import unicodedata

_PLAIN = {
    0x02: "-",  # PDFium's hyphen at the end of a line
    0x0B: "\n",
    0x0C: "\n",  # between pages alone
    0x85: "\n",
    0xA0: " ",
    0xAD: None,
    0x2028: "\n",
    0x2029: "\n",
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFFFE: "-",
}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\uffff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_WITHOUT_MEANING = frozenset({"Cn", "Co", "Cs"})
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def tidied(text: str) -> str:
    """Plain letters and line ends, at most one blank line in a row, no white space around it."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").translate(_PLAIN)
    lines = (line.rstrip() for line in _CONTROL.sub("", plain).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def readable_letters(text: str) -> int:
    """How many letters and digits it has; none if a good part has no meaning in Unicode, which is
    what a font without its table gives."""
    letters = sum(map(str.isalnum, text))
    lost = sum(unicodedata.category(c) in _WITHOUT_MEANING or c == _REPLACEMENT for c in text)
    return letters if lost * 10 <= letters else 0
