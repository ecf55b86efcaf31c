"""What was written goes to the disk while the rest is still received, so that there is little to
wait for when a part is made durable."""

import ctypes
import os
from functools import cache

_START_WRITING = 2  # SYNC_FILE_RANGE_WRITE: nobody waits for it


def send_to_disk(file: int, since: int) -> int:
    """From that offset on; where it ends. A hint: without it the file becomes durable all the same,
    only later, so it does not matter whether the system takes it."""
    end = os.lseek(file, 0, os.SEEK_CUR)
    if (sync_file_range := _sync_file_range()) is not None:
        sync_file_range(file, since, end - since, _START_WRITING)
    return end


@cache
def _sync_file_range() -> "ctypes._NamedFuncPointer | None":
    """Linux alone has it, and Python has no name for it."""
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function
