"""A scripted orchestrator for one service under test.

It publishes directives to a service over the bus emulator, takes the replies over HTTP or on the
reply topics, and judges them with the orchestrator's own `decide`, so its verdicts cannot drift
from the real ones. What it sends can be spoilt (`orders.Kind`), and what surrounds the service can
fail by name (`faults.FAULTS`). Everything that passes is in `Mock.recording`.

    async with Mock(MockSettings("ocr", workspace)) as mock:
        issued = mock.send(Order("ocr", "OCR", payload={}))
        result = await mock.recording.wait(lambda: ..., within=10)

`lucius mock up` is the same with an HTTP API for other languages.
"""

from orchestrator_mock.faults import FAULTS, Fault
from orchestrator_mock.mock import Issued, Mock, MockSettings
from orchestrator_mock.orders import MALFORMED, Kind, Order
from orchestrator_mock.recording import Backlog, Entry, Recording, What
from orchestrator_mock.refs import ServedRef

__all__ = [
    "FAULTS",
    "MALFORMED",
    "Backlog",
    "Entry",
    "Fault",
    "Issued",
    "Kind",
    "Mock",
    "MockSettings",
    "Order",
    "Recording",
    "ServedRef",
    "What",
]
