"""A process that writes to a SQLite file, and says on stdout what it was answered.

`claim PATH OWNER COUNT`: tries to claim each of so many steps, and prints those that it has.
`write PATH`: changes a few steps forever, and prints each change once it is answered.
"""

import asyncio
import sys
from datetime import timedelta

from lucius_sdk.clock import SystemClock
from lucius_sdk.idempotency_store import Claimed, Claims
from lucius_sdk.idempotency_store.sqlite import SqliteStore
from tests.sdk.idempotency_store.steps import LEASE, LOCK, key, record


async def claim(path: str, owner: str, count: int) -> None:
    store, clock = SqliteStore(path, patience=timedelta(seconds=30)), SystemClock()
    claims = Claims(store, owner, clock)

    async def one(number: int) -> None:
        now = clock.now()
        seen = await claims.claim(
            key(number), attempt_no=1, lease_id="lease", until=now + LOCK, deadline=now + LEASE
        )
        if isinstance(seen, Claimed):
            print(number, flush=True)

    for start in range(0, count, 10):
        await asyncio.gather(*(one(number) for number in range(start, start + 10)))
    await store.close()


async def write(path: str) -> None:
    store = SqliteStore(path)

    async def forever(number: int) -> None:
        version, epoch = None, 0
        while True:
            epoch += 1
            version = await store.write(key(number), record(epoch=epoch), version)
            print(number, epoch, flush=True)

    await asyncio.gather(*(forever(number) for number in range(8)))


def main(verb: str, path: str, *rest: str) -> None:
    if verb == "claim":
        owner, count = rest
        asyncio.run(claim(path, owner, int(count)))
    else:
        asyncio.run(write(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
