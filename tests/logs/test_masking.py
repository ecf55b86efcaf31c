"""No value under a name that suggests a secret is ever shown."""

import io
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_logs.formatting import FORMATTERS, LogFormat
from lucius_logs.logs import LogHandler
from lucius_logs.masking import MASK, is_secret, shown, shown_field
from lucius_outbox.redaction import redacted

WORDS = ("token", "secret", "password", "authorization", "key", "connection")
SECRET = "hunter2-hunter2"  # noqa: S105 - stands for one
names = st.builds(
    lambda before, word, after, upper: before + (word.upper() if upper else word) + after,
    st.text("abc_-. \n", max_size=5),
    st.sampled_from(WORDS),
    st.text("abc_-. \n", max_size=5),
    st.booleans(),
)
secrets = st.sampled_from([SECRET, SECRET.encode(), [SECRET], {"a": SECRET}, (SECRET, 1)])
nested = st.recursive(
    st.dictionaries(names, secrets, min_size=1, max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=8,
)


def written(format: LogFormat, message: str, fields: dict[str, Any]) -> str:
    stream = io.StringIO()
    record = logging.makeLogRecord({"name": "n", "msg": message, **fields})
    LogHandler(stream, FORMATTERS[format]()).handle(record)
    return stream.getvalue()


class Login(NamedTuple):
    user: str
    password: str


@given(names, secrets, st.sampled_from(["json", "text"]))
def test_a_field_is_masked_by_its_name(name: str, secret: object, format: LogFormat) -> None:
    line = written(format, "x", {name: secret})
    assert "hunter2" not in line
    assert MASK in line


@given(nested, st.sampled_from(["json", "text"]))
def test_names_inside_of_a_field_count_too(value: object, format: LogFormat) -> None:
    assert "hunter2" not in written(format, "x", {"detail": value})


@given(st.dictionaries(st.text(min_size=1), anything), st.text())
def test_whatever_is_logged_is_one_line_of_json(fields: dict[str, Any], message: str) -> None:
    own = {name: value for name, value in fields.items() if name not in vars(STANDARD)}
    line = written("json", message, own)
    assert line.count("\n") == 1
    assert json.loads(line)["level"] == "Level None"


STANDARD = logging.makeLogRecord({"message": "", "asctime": "", "taskName": ""})


@given(anything)
def test_whatever_is_shown_is_json(value: object) -> None:
    json.dumps(shown(value), allow_nan=False)


@pytest.mark.parametrize(
    "text",
    [
        f"Bearer {SECRET}",
        f"https://user:{SECRET}@host/path",
        f"Endpoint=sb://host/;SharedAccessKey={SECRET}",
        f"GET /x?sig={SECRET}",
        f'{{"password": "{SECRET}"}}',
    ],
)
def test_credentials_within_a_text_are_masked(text: str) -> None:
    assert "hunter2" not in str(shown({"note": text}))
    assert "hunter2" not in written("text", text, {})


@given(st.from_regex(r"[\w\-]{0,200}", fullmatch=True))
def test_a_word_is_shown_as_it_is_unless_it_is_looked_through(word: str) -> None:
    """What is passed over for speed is what a search would not have changed."""
    if word.isascii() and "lease" not in word.lower():
        assert shown(word) == word == redacted(word)


def test_the_fields_of_a_named_tuple_have_names() -> None:
    assert shown(Login("ada", SECRET)) == {"user": "ada", "password": MASK}


def test_what_is_absent_is_shown_as_absent() -> None:
    assert shown_field("api_key", None) is None


def test_times_and_durations_are_readable() -> None:
    assert shown(datetime(2026, 1, 27, tzinfo=UTC)) == "2026-01-27T00:00:00+00:00"
    assert shown(timedelta(seconds=90)) == 90.0


def test_many_items_and_deep_ones_are_cut() -> None:
    deep: Any = "bottom"
    for _ in range(50):
        deep = [deep]
    assert "bottom" not in str(shown(deep))
    assert len(str(shown(range(10**6)))) < 100
    assert len(json.dumps(shown(list(range(10**5))))) < 1000


def test_names_that_suggest_nothing_are_no_secrets() -> None:
    plain = (
        "jobId",
        "stepId",
        "tenant_id",
        "attempt_no",
        "state",
        "correlation_id",
        "lane",
        "sha256",
    )
    assert not any(map(is_secret, plain))
