"""The pytest plugin: `pytest --pyargs contract_tests --lucius-contract path/to/contract.yaml`.

It is loaded by every pytest of an environment that has LUCIUS, so it imports little before it is
asked for something.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from contract_tests.bench import Bench
    from contract_tests.contract import LoadedContract
    from contract_tests.scenarios import Case
    from contract_tests.verdicts import Outcome

_FIXTURE = "lucius_case"
_INI = "lucius_contracts"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lucius", "conformance of a platform service")
    group.addoption(
        "--lucius-contract",
        action="append",
        default=[],
        metavar="PATH",
        help="contract.yaml of the service to judge; may be repeated",
    )
    group.addoption(
        "--lucius-level",
        choices=["core", "full"],
        default=None,
        help="which rules; else the highest level that the contract claims",
    )
    parser.addini(
        _INI, "contract.yaml files that contract_tests judges by default", type="paths", default=[]
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of each case of each contract."""
    if _FIXTURE not in metafunc.fixturenames:
        return
    from contract_tests.contract import ContractUnusable, load_contract
    from contract_tests.rules import Level
    from contract_tests.runner import default_level
    from contract_tests.scenarios import all_cases

    parameters, names = [], []
    paths = _contracts(metafunc.config)
    for path in paths:
        try:
            loaded = load_contract(path)
        except ContractUnusable as error:
            raise pytest.UsageError(str(error)) from error
        asked = metafunc.config.getoption("--lucius-level")
        level = Level(asked) if asked else default_level(loaded)
        for case in all_cases(loaded.contract, level):
            parameters.append((loaded, case))
            names.append(case.id if len(paths) == 1 else f"{_label(loaded)}:{case.id}")
    metafunc.parametrize(_FIXTURE, parameters, ids=names)


def _label(loaded: "LoadedContract") -> str:
    """`ocr`; `ocr.burst` for what `contract.burst.yaml` says of it."""
    return loaded.contract.service + loaded.path.stem.removeprefix("contract")


def _contracts(config: pytest.Config) -> list[Path]:
    """`UsageError` if there is none: to judge nothing must not look like a pass."""
    given = [Path(path) for path in config.getoption("--lucius-contract")]
    found = given or list(config.getini(_INI))
    if not found:
        raise pytest.UsageError(
            "contract_tests judges a service: name it with --lucius-contract path/to/contract.yaml,"
            f" or as {_INI} in the settings of pytest"
        )
    return found


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A service is not left running beside tests that have nothing to do with it."""
    judged, following = _judged_by(item), nextitem and _judged_by(nextitem)
    benches = getattr(item, "funcargs", {}).get("lucius_benches")
    if benches is not None and judged != following:
        benches.release()


def _judged_by(item: pytest.Item) -> Path | None:
    """The contract that a test is a case of."""
    callspec = getattr(item, "callspec", None)
    case = callspec.params.get(_FIXTURE) if callspec else None
    return None if case is None else case[0].path


class Benches:
    """One bench at a time: the cases of a contract come one after the other, and the bench is
    released after the last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runner = asyncio.Runner()
        self._bench: Bench | None = None
        self._count = 0

    def judge(self, loaded: "LoadedContract", case: "Case") -> "Outcome":
        return self._runner.run(self._judge(loaded, case))

    def release(self) -> None:
        """Stop the service that was judged last."""
        if self._bench is not None:
            self._runner.run(self._bench.close())
            self._bench = None

    def close(self) -> None:
        self.release()
        self._runner.close()

    async def _judge(self, loaded: "LoadedContract", case: "Case") -> "Outcome":
        from contract_tests.bench import Bench
        from contract_tests.runner import judge

        if self._bench is None:
            self._count += 1
            self._bench = Bench(loaded, self._folder / str(self._count))
        return await judge(self._bench, case)


@pytest.fixture(scope="session")
def lucius_benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    benches = Benches(tmp_path_factory.mktemp("lucius"))
    try:
        yield benches
    finally:
        benches.close()
