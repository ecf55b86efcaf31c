"""Which expressions are understood, and what is said about the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.rules import Facts, RuleError, SqlFilter
from tests.emulator.rules.judging import is_match


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1=1", True),
        ("1=0", False),
        ("a = 1 OR a = 2 AND a = 3", True),
        ("(a = 1 OR a = 2) AND a = 3", False),
        ("NOT a = 2 AND a = 1", True),
        ("NOT (a = 2 AND a = 1)", True),
        ("NOT NOT a = 1", True),
        ("NOT NOT NOT a = 1", False),
        ("((((a)) = (1)))", True),
        ("a=1and a=1", True),
        ("a = 1 or a = 2", True),
        ("(a = 1) AND (((a + 1) * 2) = 4)", True),
        ("\t a\n=\r1 ", True),
        ("a not in(2,3) And a iS nOt nUlL", True),
    ],
)
def test_precedence_spacing_and_letter_case(expression: str, expected: bool) -> None:
    assert is_match(expression, a=1) is expected


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("simple", "simple"),
        ("größe_1", "größe_1"),
        ("[Property With Space]", "Property With Space"),
        ("[HR-EmployeeID]", "HR-EmployeeID"),
        ("[a]]b]", "a]b"),
        ('"Contoso & Northwind"', "Contoso & Northwind"),
        ('"a""b"', 'a"b'),
        ('"http://example.com/Name"', "http://example.com/Name"),
        ("[and]", "and"),
        ("user.[not]", "not"),
        ("[user].color", "color"),
        ("[sys.Label]", "sys.Label"),
        ("p", "p"),
        ("sys", "sys"),
    ],
)
def test_names(written: str, name: str) -> None:
    facts = Facts({name: "yes"})
    assert SqlFilter(f"{written} = 'yes' AND EXISTS({written})").matches(facts)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("", "a value is expected at position 0, not 'the end'"),
        ("color", "position 0 stands alone"),
        ("TRUE", "stands alone"),
        ("a = 1 AND b", "position 10 stands alone"),
        ("a OR b = 1", "position 0 stands alone"),
        ("NOT a", "position 4 stands alone"),
        ("a = ", "a value is expected at position 4"),
        ("a == 1", "a value is expected at position 3"),
        ("a = 1 b = 2", "the end is expected at position 6"),
        ("a = 1 = 1", "is expected at position 6"),
        ("(a = 1) = TRUE", "not a condition"),
        ("(a = 1) + 1 = 2", "not a condition"),
        ("-(a = 1) = 2", "not a condition"),
        ("(a = 1) IN (1)", "not a condition"),
        ("a IN ((a = 1))", "not a condition"),
        ("(a = 1", r"\) is expected at position 6"),
        ("a = 1)", "is expected at position 5"),
        ("a IN ()", "a value is expected at position 6"),
        ("a IN 1", r"\( is expected at position 5"),
        ("a IN (1, )", "a value is expected"),
        ("a NOT 1", "IN or LIKE is expected at position 6"),
        ("a IS 1", "NULL is expected"),
        ("1 IS NULL", "position 0 is none"),
        ("EXISTS a", r"\( is expected"),
        ("EXISTS(1)", "the name of a property is expected at position 7"),
        ("EXISTS(a = 1)", r"\) is expected"),
        ("a = 'open", "the text is empty or not closed, from position 4 on"),
        ("[open = 1", "the name is empty or not closed, from position 0 on"),
        ("[] = 1", "the name is empty or not closed"),
        ('"" = 1', "the name is empty or not closed"),
        ("a = #", "'#' at position 4 is not part of the language"),
        ("_a = 1", "is not part of the language"),
        ("a = 1; DROP", "';' at position 5"),
        ("and = 1", "a value is expected at position 0"),
        ("other.name = 1", "neither sys. nor user."),
        ("a.b.c = 1", "neither sys. nor user."),
        ("sys.EnqueuedTimeUtc = 1", "sys.EnqueuedTimeUtc at position 4 is not supported"),
        ("user. = 1", "the name of a property"),
        ("newid() = 1", r"newid\(\) at position 0 is not supported"),
        ("a = @x", "@x at position 4 has no value"),
        ("a = 9223372036854775808", "too large"),
        ("a = 1E999", "too large"),
        ("a = 1x", "is expected at position 5"),
        ("a BETWEEN 1 AND 2", "position 0 stands alone"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_position(
    expression: str, complaint: str
) -> None:
    with pytest.raises(RuleError, match=complaint):
        SqlFilter(expression)


def test_a_parameter_must_be_comparable() -> None:
    with pytest.raises(RuleError, match="@x cannot be compared: it is a list"):
        SqlFilter("a = @x", {"@x": [1]})


def test_an_expression_may_have_1024_characters() -> None:
    exact = f"a = '{'x' * 1018}'"
    assert len(exact) == 1024
    assert SqlFilter(exact).matches(Facts({"a": "x" * 1018}))
    with pytest.raises(RuleError, match="1025 characters, 1024 are allowed"):
        SqlFilter(exact + " ")


def test_parentheses_nest_to_a_bound() -> None:
    assert is_match("(" * 32 + "a = 1" + ")" * 32, a=1)
    assert is_match(" AND ".join(["(a = (1))"] * 70), a=1)
    with pytest.raises(RuleError, match="more than 32 parentheses"):
        SqlFilter("(" * 33 + "a = 1" + ")" * 33)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("NOT " * 254 + "a = 1", True),
        ("-" * 1000 + "a = 1", True),
        ("+".join(["a"] * 500) + "=500", True),
        ("*".join(["a"] * 500) + "=1", True),
        (" OR ".join(["a=2"] * 140 + ["a=1"]), True),
        (" AND ".join(["a=1"] * 120 + ["a=2"]), False),
        (f"a IN ({','.join(['2'] * 500)})", False),
        ("1+2*(" * 32 + "a" + ")" * 32 + " > 0", True),
        ("1=2 OR 1=1 AND NOT(" * 32 + "a=1" + ")" * 32, True),
        ("-" * 990 + "(" * 10 + "a = 1" + ")" * 10, None),
    ],
)
def test_long_chains_do_not_exhaust_the_stack(expression: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(RuleError):
            SqlFilter(expression)
    else:
        assert is_match(expression, a=1) is expected


_SYMBOLS = st.sampled_from(["(", ")", "=", "<>", "<", "+", "-", "*", "/", "%", ",", "."])
_OPERANDS = st.sampled_from(
    ["a", "sys", "user", "Label", "[b]", '"c"', "'d'", "@p", "1", "2.5", "property", "NULL", "TRUE"]
)
_KEYWORDS = st.sampled_from(["AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "IS", "EXISTS"])
_WORDS = _SYMBOLS | _OPERANDS | _KEYWORDS


@given(st.lists(_WORDS, max_size=40).map(" ".join) | st.text(max_size=60))
def test_nothing_but_a_rule_error_comes_of_any_text(text: str) -> None:
    try:
        made = SqlFilter(text, {"@p": 1})
    except RuleError:
        return
    assert isinstance(made.expression, str)
