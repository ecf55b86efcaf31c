"""Blobs behind a proxy."""

from collections.abc import Callable

from lucius_sdk.workspace_io import BlobStorage
from lucius_sdk.workspace_io.blob.account import Patience
from tests.runner.deadlines import DEADLINE

AT_ONCE = Patience(connect=DEADLINE, answer=DEADLINE, waits=(0.0, 0.0, 0.0))
"""Tries again without a pause."""

PUT, STAGE, COMMIT, GET, HEAD = "PUT", "PUT block", "PUT blocklist", "GET", "HEAD"
"""What a proxy is asked."""

OpenThrough = Callable[[Patience], BlobStorage]
