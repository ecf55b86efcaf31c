"""The digest by the standard encoder is the digest of RFC 8785."""

import hashlib
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from lucius_contract.canonical import digest, omit_nulls
from lucius_contract.errors import ContractError

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
@example({"b": 1, "a": [None, True, {"x": None}], "c": '\x7f\u2028"\\/\n'})
@example({"é": 1, "z": 2, "\U0001f600": 3, "\ufb33": 4})
@example({"n": 2**53 - 1, "m": -(2**53) + 1})
@example({"n": 2**53})
@example({"n": 1.0, "m": 1e21, "z": -0.0})
@example({"lone": "\ud800"})
@example({1: "a"})
@example(({"a": 1},))
def test_it_is_the_same(value: Any) -> None:
    try:
        expected = hashlib.sha256(rfc8785.dumps(omit_nulls(value))).hexdigest()
    except (ValueError, TypeError, AttributeError):
        with pytest.raises((ContractError, TypeError, AttributeError)):
            digest(value)
    else:
        assert digest(value) == expected
