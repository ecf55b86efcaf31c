"""A service that is slow, down or half frozen, as processes: `lucius up` with the bus inside, and
instances of a service of the SDK. Times are scaled: the ACK timeout is that of a few steps."""

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from math import ceil
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from lucius_cli.demo.child import Child
from lucius_contract.timeouts import RECOVERY_GRACE
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier

ACK_TIMEOUT = ceil(seconds(10))
STEP = 0.4
START, STOP = seconds(60), seconds(30)
PROTOCOL = f"""
protocol_id: slow
version: "1"
request_type: SLOW
steps:
  - step_type: SLOW
    service: slow
    payload_schema: {{type: object}}
    ack_timeout: {ACK_TIMEOUT}s
    lease: 60s
    backoff: [1s, 2s]
"""

pytestmark = [time_limit(240), pytest.mark.check]


class Cluster:
    """A control plane, and instances of the service that come and go."""

    def __init__(self, folder: Path) -> None:
        self.diary = folder / "diary"
        self.diary.touch()
        self._folder = folder
        self._children: list[Child] = []
        (folder / "protocols").mkdir()
        (folder / "protocols" / "slow.yaml").write_text(PROTOCOL)
        command = [sys.executable, "-m", "lucius_cli", "up", "--port", "0", "--bus-port", "0"]
        environ = {
            "LUCIUS_DATA_DIR": str(folder / "data"),
            "LUCIUS_PROTOCOLS_DIR": str(folder),
        }
        self._plane = self._started("lucius up", command, environ)
        self.url = self._bus = ""
        self.ready_at = 0.0

    def start(self) -> None:
        ready = self._plane.until_ready(START)
        self.url, self._bus = ready["api"], ready["bus"]
        self.ready_at = time.monotonic()

    def instance(self, slots: int = 1) -> Child:
        number = len(self._children)
        command = [sys.executable, "-m", "tests.flow.slow_service", str(STEP), str(self.diary)]
        key = "SharedAccessKeyName=local;SharedAccessKey=local;UseDevelopmentEmulator=true;"
        environ = {
            "LUCIUS_SERVICEBUS_CONNECTION": f"Endpoint={self._bus};{key}",
            "LUCIUS_WORKSPACE_ROOT": str(self._folder / "data" / "workspace"),
            "LUCIUS_DEDUP_STORE": f"sqlite://{self._folder / 'dedup.db'}",
            "LUCIUS_CONCURRENCY": str(slots),
            "LUCIUS_HEALTH_PORT": "0",
        }
        child = self._started(f"instance {number}", command, environ)
        child.until_ready(START)
        return child

    def stop(self) -> None:
        for child in reversed(self._children):
            child.send(signal.SIGCONT)
            child.send(signal.SIGTERM)
        for child in reversed(self._children):
            child.ended(STOP)
            child.kill()

    def runs(self) -> Counter[str]:
        """How often the work on each job was begun."""
        return Counter(line.split()[0] for line in self.diary.read_text().splitlines())

    def _started(self, name: str, command: Sequence[str], environ: dict[str, str]) -> Child:
        log = self._folder / f"{len(self._children)}.log"
        child = Child(name, command, Path.cwd(), {**os.environ, **environ}, log)
        self._children.append(child)
        child.start()
        return child


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


class Client:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def submit(self, count: int) -> list[str]:
        return await asyncio.gather(*(self._submit() for _ in range(count)))

    async def _submit(self) -> str:
        envelope = {
            "tenant_id": "acme",
            "request_type": "SLOW",
            "input_ref": {"uri": "https://example.org/a.pdf"},
            "output_ref": {"uri": "az://results/a.json"},
            "payload": {"number": uuid4().hex},
            "schema_version": "1",
        }
        answer = await self._http.post("/v1/orchestrate", json=envelope)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["jobId"])

    async def attempts(self, jobs: Sequence[str], within: float) -> Counter[int]:
        """How many attempts the jobs needed, once all have succeeded."""
        counts = Counter[int]()
        async with asyncio.timeout(within):
            for job in jobs:
                while (found := (await self._http.get(f"/v1/jobs/{job}")).json())[
                    "completed_at"
                ] is None:
                    await asyncio.sleep(0.1)
                assert found["state"] == "SUCCEEDED", found
                counts[found["attempts_total"]] += 1
        return counts

    async def service(self) -> dict[str, object]:
        services = (await self._http.get("/v1/services")).json()["items"]
        return dict(next(each for each in services if each["service"] == "slow"))

    async def letters(self) -> list[object]:
        return list((await self._http.get("/v1/dead-letters")).json()["items"])


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(base_url=cluster.url, timeout=seconds(30)) as http:
        yield Client(http)


async def after_the_grace(cluster: Cluster) -> None:
    """ACK timeouts are not acted on before."""
    while time.monotonic() < cluster.ready_at + RECOVERY_GRACE.total_seconds() + 1:
        await asyncio.sleep(0.5)


async def test_a_queue_longer_than_the_ack_timeout_costs_no_attempt(
    cluster: Cluster, client: Client
) -> None:
    cluster.instance(slots=1)
    first = await client.submit(1)
    await client.attempts(first, within=seconds(60))
    await after_the_grace(cluster)
    jobs = await client.submit(count := by_tier(40, 40, 160))
    assert count * STEP > 1.5 * ACK_TIMEOUT
    assert await client.attempts(jobs, within=seconds(30 + 2 * count * STEP)) == {1: count}
    assert cluster.runs() == dict.fromkeys([*first, *jobs], 1)


async def test_a_service_that_is_down_for_many_ack_timeouts_fails_nothing(
    cluster: Cluster, client: Client
) -> None:
    instance = cluster.instance(slots=4)
    await client.attempts(await client.submit(5), within=seconds(30))
    instance.send(signal.SIGTERM)
    assert instance.ended(STOP)
    jobs = await client.submit(count := by_tier(40, 40, 500))
    async with asyncio.timeout(seconds(60)):
        while (await client.service())["presence"] != "ABSENT":
            await asyncio.sleep(0.2)
    assert await client.letters() == []
    cluster.instance(slots=4)
    counts = await client.attempts(jobs, within=seconds(60 + count * STEP))
    assert counts[1] > count // 2
    assert await client.letters() == []
    assert set(cluster.runs().values()) == {1}


async def test_one_frozen_instance_of_two_fails_no_job(cluster: Cluster, client: Client) -> None:
    cluster.instance(slots=1)
    frozen = cluster.instance(slots=1)
    jobs = await client.submit(10)
    await client.attempts(jobs[:4], within=seconds(30))
    frozen.send(signal.SIGSTOP)
    jobs += await client.submit(20)
    await client.attempts(jobs, within=seconds(150))
    assert await client.letters() == []
