"""The conformance suite of LUCIUS: it proves that a platform service, in any language, keeps the
contract.

A service is a black box: a process that is started from its `contract.yaml` with an address of a
bus and a folder. The harness plays the orchestrator (`orchestrator_mock`), serves what the service
reads, and judges by what can be seen from outside:

*   A *run* of the work is a read of a ref that the directive names; the harness counts the reads
    and can hold them, so that "in mid-work" is a state and not a race.
*   *Nothing more comes* is known when the message is settled and a directive that was sent later
    has been answered.
*   Kills, freezes and faults are the harness's own, and named.

Ways in, with the same rule ids: `pytest --pyargs contract_tests --lucius-contract contract.yaml`,
`lucius conform run contract.yaml`, and

    report = await contract_tests.run(contract_tests.load_contract(Path("contract.yaml")))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contract_tests.contract import Contract, ContractUnusable, LoadedContract, load_contract
    from contract_tests.rules import RULES, Level, Need, Rule, rule
    from contract_tests.runner import run
    from contract_tests.verdicts import ExitCode, Outcome, Report, Verdict

__all__ = [
    "RULES",
    "Contract",
    "ContractUnusable",
    "ExitCode",
    "Level",
    "LoadedContract",
    "Need",
    "Outcome",
    "Report",
    "Rule",
    "Verdict",
    "load_contract",
    "rule",
    "run",
]

_HOMES = {
    "contract": ("Contract", "ContractUnusable", "LoadedContract", "load_contract"),
    "rules": ("RULES", "Level", "Need", "Rule", "rule"),
    "runner": ("run",),
    "verdicts": ("ExitCode", "Outcome", "Report", "Verdict"),
}


def __getattr__(name: str) -> Any:
    """Names are imported when they are used: pytest loads this package wherever it is installed,
    and most of those runs judge nothing."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
