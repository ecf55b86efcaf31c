"""The part that collects what no artifact needs any more, from time to time."""

import asyncio
from datetime import timedelta

from lucius_artifacts.collection.collector import Collector
from lucius_artifacts.errors import Busy
from lucius_artifacts.telemetry import Telemetry


class Collections:
    """Runs by `run()` until `stop()`, which does not wait for a collection that is under way: each
    of its steps stands by itself, and the next collection goes on with what is left."""

    def __init__(self, collector: Collector, telemetry: Telemetry, interval: timedelta) -> None:
        self._collector = collector
        self._telemetry = telemetry
        self._interval = interval.total_seconds()
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def stop(self) -> None:
        self._stopping.set()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                collecting = tasks.create_task(self._collect())
                await self._stopping.wait()
                collecting.cancel()
        finally:
            self._stopped.set()

    async def run_once(self) -> None:
        try:
            report = await self._collector.collect()
        except Busy as error:
            self._telemetry.collection_busy(str(error))
        except Exception as error:  # whatever it is, the process goes on
            self._telemetry.collection_failed(error)
        else:
            self._telemetry.collected(report)

    async def _collect(self) -> None:
        while True:
            await self.run_once()
            await asyncio.sleep(self._interval)
