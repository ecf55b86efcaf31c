"""Texts as OCR writes them, and a way to see that work grows no faster than they do."""

import time
from collections.abc import Callable

from hypothesis import strategies as st

_PIECES = [
    "The cat sat on the mat. ",
    "unbelievable ",
    "Invoice date: 3 March 2026\n",
    "e.g. ",
    "4,711.20",
    "\u4e2d\u6587\u3002",
    "\ud55c\uad6d",
    "xyzzyqwv" * 3,
    "!!!",
    "\u200b",
    "- item\n",
    "a b c d e f ",
    "lamps   7   8\n",
    "\n",
    "\n\n",
    "\r\n",
    "\f",
    "\x1c",
    " ",
]

texts = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=12)), max_size=40).map(
    "".join
)

_SMALL, _TIMES = 20_000, 8
_ALLOWED = 3 * _TIMES
"""Linear work takes 8 times as long for 8 times the text, quadratic work 64 times."""


def grows_no_faster_than_the_text(work: Callable[[str], object], unit: str) -> bool:
    small = unit * (_SMALL // len(unit))
    return _fastest(work, small * _TIMES) < _ALLOWED * _fastest(work, small) + 0.01


def _fastest(work: Callable[[str], object], text: str) -> float:
    return min(_seconds(work, text) for _ in range(3))


def _seconds(work: Callable[[str], object], text: str) -> float:
    begin = time.thread_time()
    work(text)
    return time.thread_time() - begin
