"""The table is complete: every field is set by it, every variable is documented by it."""

import re
from dataclasses import fields

import pytest

from docs.generator import ROOT
from docs.generator.settings import settings_page
from lucius_orchestrator.settings import SETTINGS, SettingInfo, Settings, Use, effective
from lucius_orchestrator.settings.load import load_settings

PAGE = settings_page()


def test_every_field_of_the_settings_is_set_by_the_table() -> None:
    reached = {info.field.partition(".")[0] for info in SETTINGS if info.field is not None}
    assert reached == {field.name for field in fields(Settings)} - {"warnings"}


def test_no_variable_and_no_field_stands_there_twice() -> None:
    variables = [info.variable for info in SETTINGS]
    taken = [info.field for info in SETTINGS if info.field is not None]
    assert len(set(variables)) == len(variables)
    assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("info", SETTINGS, ids=lambda info: info.variable)
def test_every_variable_is_documented(info: SettingInfo) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{info.variable}` |")]
    assert info.meaning in row
    if info.use is Use.READ:
        assert info.kind.rule in row
        assert f"| `{info.default}` |" in row or f"| {info.unset} |" in row


def test_the_page_is_the_one_that_was_generated() -> None:
    assert (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8") == PAGE


def test_no_cell_of_the_page_breaks_its_table() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) == len(SETTINGS)
    assert {len(re.findall(r" \| ", row)) for row in rows} == {1, 3}


@pytest.mark.parametrize("info", SETTINGS, ids=lambda info: info.variable)
def test_a_default_is_of_its_kind_and_written_as_it_is_read(info: SettingInfo) -> None:
    if info.default is not None:
        assert info.kind.write(info.kind.read(info.default)) == info.default
    assert str(info.kind) == info.kind.rule


def test_what_is_in_force_names_every_variable_that_is_read_and_where_it_comes_from() -> None:
    environ = {"LUCIUS_PORT": "9000", "LUCIUS_HOST": " ", "LUCIUS_LEASE_SECONDS": "90.50"}
    rows = effective(load_settings(environ), environ)
    assert [row.variable for row in rows] == [i.variable for i in SETTINGS if i.use is Use.READ]
    assert all(row.value_masked and row.meaning for row in rows)
    assert {row.variable for row in rows if row.source == "set"} == {
        "LUCIUS_PORT",
        "LUCIUS_LEASE_SECONDS",
    }
    shown = {row.variable: row.value_masked for row in rows}
    assert shown["LUCIUS_PORT"] == "9000"
    assert shown["LUCIUS_HOST"] == "127.0.0.1"
    assert shown["LUCIUS_LEASE_SECONDS"] == "90.5"
    assert shown["LUCIUS_AUTH"] == "off"
    assert shown["LUCIUS_RETENTION_DAYS"] == "30"
    assert shown["LUCIUS_REF_SCHEMES"] == "artifact,az,file,https,s3"
    assert shown["LUCIUS_REF_PLACES"] == "(any)"
    assert shown["LUCIUS_SERVICEBUS_LANES"] == "16"
