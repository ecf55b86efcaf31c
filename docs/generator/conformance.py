"""The reference page of the rules and of `contract.yaml`."""

from collections.abc import Iterator
from typing import Any

from contract_tests.contract import Contract, Sample, SampleFile
from contract_tests.explaining import scenario_text, scenarios_of
from contract_tests.rules import RULES, Rule
from contract_tests.verdicts import ExitCode, Verdict
from docs.generator.markdown import page, table
from orchestrator_mock.faults import FAULTS

_EXITS = {
    ExitCode.CONFORMANT: "conformant: every rule of the level was judged and kept",
    ExitCode.NOT_CONFORMANT: "not conformant, or the baseline is stale",
    ExitCode.USAGE: "the command was used wrongly, or `contract.yaml` cannot be used",
    ExitCode.HARNESS: "the harness or its environment failed: that is no verdict",
    ExitCode.INCOMPLETE: "incomplete: nothing failed, but some rules were not judged",
}
_VERDICTS = {
    Verdict.PASS: "what the rule forbids did not happen, what it demands did",
    Verdict.FAIL: "the service broke the rule; the timeline shows how",
    Verdict.SKIPPED: "the contract declares that the service lacks what the rule is about",
    Verdict.FAULT: "the rule could not be judged",
}


def conformance_page() -> str:
    return page(
        "Conformance: rules, verdicts, contract.yaml",
        "The rules that `lucius conform` judges a service by. `lucius conform explain LC-07` prints"
        " what stands here for one of them; [the service contract](service-contract.md) says the"
        " same as promises.",
        "## Rules",
        table(
            ("rule", "level", "statement"),
            [(f"[{r.id}](#{r.id.lower()})", r.level, r.statement) for r in RULES],
        ),
        *(part for rule in RULES for part in _rule(rule)),
        "## Verdicts and exit codes",
        table(("verdict", "meaning"), [(str(v), text) for v, text in _VERDICTS.items()]),
        table(("exit code", "meaning"), [(str(int(c)), text) for c, text in _EXITS.items()]),
        "## contract.yaml",
        " ".join((Contract.__doc__ or "").split()),
        _fields(Contract),
        "A sample (`valid`, `invalid`, `slow`):",
        _fields(Sample),
        "A file of a sample:",
        _fields(SampleFile),
    )


def mock_page() -> str:
    return page(
        "Faults of the mock",
        "What `POST /faults`, a script and `Mock.add_fault` know by name. A fault strikes `count`"
        " times, or until it is cleared where `count` is null; `types` narrows a fault of"
        " callbacks to types of replies.",
        table(
            ("name", "where", "what happens"), [(f"`{f.name}`", f.place, f.meaning) for f in FAULTS]
        ),
    )


def _rule(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id}"
    yield rule.statement
    yield rule.why
    yield table(
        ("scenario", "what happens"),
        [(f"`{rule.id}/{s.name}`", scenario_text(s)) for s in scenarios_of(rule)],
    )
    needs = f" Skipped without {', '.join(rule.needs)}." if rule.needs else ""
    anchor = rule.clause.lower().replace(" ", "-")
    yield (
        f"When it fails: {rule.causes}{needs} Clause:"
        f" [{rule.clause}](service-contract.md#{anchor})."
    )


def _fields(model: Any) -> str:
    rows = []
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else f"`{_shown(field.default)}`"
        rows.append((f"`{name}`", default, " ".join((field.description or "").split())))
    return table(("member", "default", "meaning"), rows)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(str(each) for each in value) + "]"
    return "none" if value is None else str(value)
