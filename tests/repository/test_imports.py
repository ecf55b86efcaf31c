"""Importing the contract stays light: a service pays for what it uses."""

import subprocess
import sys

ALLOWED = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
PROBE = """
import sys
before = set(sys.modules)
import lucius_contract.messages, lucius_contract.envelope, lucius_contract.transitions
import lucius_contract.timeouts, lucius_contract.ids, lucius_contract.audit
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(name for name in loaded - set(sys.stdlib_module_names) if name[0] != "_"))
"""


def test_the_contract_loads_pydantic_and_rfc8785_and_nothing_else() -> None:
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) - ALLOWED <= {"lucius_contract", "rfc8785"}


def test_the_outbox_loads_no_driver_that_is_not_used() -> None:
    probe = PROBE.replace(
        "import lucius_contract.messages, lucius_contract.envelope, lucius_contract.transitions\n"
        "import lucius_contract.timeouts, lucius_contract.ids, lucius_contract.audit\n",
        "import lucius_outbox, lucius_outbox.sqlite\n",
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["lucius_outbox"]
