"""All reports of a run, in one folder."""

from collections.abc import Iterator
from pathlib import Path

from contract_tests.reports.badge import badge
from contract_tests.reports.html import html_text
from contract_tests.reports.json_report import json_text
from contract_tests.reports.junit import junit_text
from contract_tests.verdicts import Report

_MAKERS = {
    "report.json": json_text,
    "junit.xml": junit_text,
    "report.html": html_text,
    "badge.svg": badge,
}


def write_all(report: Report, folder: Path) -> Iterator[Path]:
    """Each file as it is written. `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in _MAKERS.items():
        path = folder / name
        path.write_text(make(report), encoding="utf-8")
        yield path
