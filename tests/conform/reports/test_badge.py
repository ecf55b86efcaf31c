from dataclasses import replace
from xml.etree.ElementTree import fromstring

import pytest

from contract_tests.reports.badge import badge
from contract_tests.rules import Level
from contract_tests.verdicts import Report
from tests.conform.reports.samples import failed, fault, report, skipped

_GREEN, _RED, _YELLOW, _GREY = "#2a8a3e", "#c5303c", "#b07d00", "#6e7681"


@pytest.mark.parametrize(
    ("found", "said", "colour"),
    [
        (report(), "core", _GREEN),
        (report(level=Level.FULL), "full", _GREEN),
        (report(failed("LC-04")), "not conformant", _RED),
        (report(surprises=("remove it",)), "not conformant", _RED),
        (report(skipped("LC-10")), "incomplete", _YELLOW),
        (report(is_partial=True), "incomplete", _YELLOW),
        (report(fault("LC-04")), "harness fault", _GREY),
        (report(replace(failed("LC-04"), is_known=True)), "core, 1 known failure", _YELLOW),
    ],
)
def test_a_badge_says_how_the_service_stands(found: Report, said: str, colour: str) -> None:
    root = fromstring(badge(found))  # noqa: S314 - it is our own
    assert root.get("aria-label") == f"lucius conformance: {said}"
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(texts) == {"lucius conformance", said}
    assert colour in badge(found)


def test_a_badge_needs_no_other_file_and_can_stand_beside_others() -> None:
    assert "href" not in badge(report())
    assert "id=" not in badge(report())
