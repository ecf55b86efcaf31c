"""`lucius update`: each kind of change, and what a dry run says of them."""

import stat
from pathlib import Path

from lucius_cli.skeleton import BASELINE
from lucius_cli.skeleton.baked import read_baseline
from tests.cli.shell import Shell
from tests.skeleton.projects import MAKEFILE, MAKEFILE_BEFORE, NOW, files_in, older, run, write


def changes(shell: Shell, *arguments: str) -> dict[str, str]:
    """What an update says that it does, by file."""
    document = shell("update", *arguments, "--json").json
    return {change["path"]: change["kind"] for change in document["changes"]}


def test_a_shared_file_that_both_have_changed_is_merged(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    with (project / "Makefile").open("a") as file:
        file.write("\nours:\n\ttrue\n")
    assert changes(shell, "word-count") == {"Makefile": "merged"}
    assert (project / "Makefile").read_text() == f"{MAKEFILE}\nours:\n\ttrue\n"


def test_a_conflict_leaves_both_versions_and_is_told(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    ours = MAKEFILE_BEFORE.replace("LUCIUS_SDK ?= lucius\n", "LUCIUS_SDK ?= ../lucius\n")
    (project / "Makefile").write_text(ours)
    told = shell("update", "word-count")
    assert told.code == 1
    assert "look for <<<<<<< yours in Makefile" in told.err
    both = "<<<<<<< yours\nLUCIUS_SDK ?= ../lucius\n=======\nLUCIUS_SDK ?= lucius-sdk\n>>>>>>> "
    assert both in (project / "Makefile").read_text()
    assert read_baseline(project) == NOW


def test_a_file_that_the_team_deleted_stays_deleted(shell: Shell, project: Path) -> None:
    older(project, {"Dockerfile": "FROM scratch\n"})
    (project / "Dockerfile").unlink()
    (project / ".dockerignore").unlink()
    told = shell("update", "word-count")
    assert told.code == 0
    assert "deleted by you, changed by the skeleton" in told.out
    assert ".dockerignore" not in told.out
    assert not (project / "Dockerfile").exists()
    assert not (project / ".dockerignore").exists()


def test_what_the_template_dropped_goes_unless_it_was_changed(shell: Shell, project: Path) -> None:
    dropped = {
        "old/chart/notes.txt": "notes\n",
        "old/kept.txt": "kept\n",
        "samples/old.txt": "old\n",
    }
    older(project, dropped)
    (project / "old/kept.txt").write_text("ours\n")
    assert changes(shell, "word-count") == {
        "old/chart/notes.txt": "removed",
        "old/kept.txt": "kept",
        "samples/old.txt": "kept",
    }
    assert not (project / "old/chart").exists()
    assert (project / "old/kept.txt").read_text() == "ours\n"


def test_a_new_file_that_is_there_already_is_a_conflict_with_both(
    shell: Shell, project: Path
) -> None:
    older(project, {"Dockerfile": None})
    (project / "Dockerfile").write_text("FROM ours\n")
    assert shell("update", "word-count").code == 1
    text = (project / "Dockerfile").read_text()
    assert text.startswith("<<<<<<< yours\nFROM ours\n=======\n# By digest")


def test_a_teams_file_is_replaced_only_while_it_is_as_it_was_baked(
    shell: Shell, project: Path
) -> None:
    older(project, {"README.md": "# word-count\n", "contract.yaml": "contract: 1\n"})
    (project / "contract.yaml").write_text("contract: 1\n# ours\n")
    assert changes(shell, "word-count") == {"README.md": "updated", "contract.yaml": "kept"}
    assert (project / "README.md").read_text() == NOW.files["README.md"]
    assert (project / "contract.yaml").read_text() == "contract: 1\n# ours\n"


def test_modes_and_line_ends_of_a_file_are_kept(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    (project / "Makefile").write_bytes(MAKEFILE_BEFORE.replace("\n", "\r\n").encode())
    (project / "Makefile").chmod(0o755)
    assert changes(shell, "word-count") == {"Makefile": "updated"}
    assert (project / "Makefile").read_bytes() == MAKEFILE.replace("\n", "\r\n").encode()
    assert stat.S_IMODE((project / "Makefile").stat().st_mode) == 0o755


def test_bytes_that_are_no_text_survive_a_merge(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    (project / "Makefile").write_bytes(MAKEFILE_BEFORE.encode() + b"# \xff\xfe\n")
    shell("update", "word-count", "--dry-run")
    assert changes(shell, "word-count") == {"Makefile": "merged"}
    assert (project / "Makefile").read_bytes() == MAKEFILE.encode() + b"# \xff\xfe\n"


def test_a_link_is_left_alone_and_told(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE})
    (project / "Makefile").rename("elsewhere")
    (project / "Makefile").symlink_to(Path("elsewhere").absolute())
    told = shell("update", "word-count")
    assert "no regular file, changed by the skeleton" in told.out
    assert (project / "Makefile").is_symlink()
    assert Path("elsewhere").read_text() == MAKEFILE_BEFORE


def test_a_dry_run_prints_a_diff_and_writes_nothing(shell: Shell, project: Path) -> None:
    dropped = "a tab:\t and a bell: \a\n"
    older(project, {"Makefile": MAKEFILE_BEFORE, "Dockerfile": None, "old.txt": dropped})
    before = files_in(project)
    told = shell("update", "word-count", "--dry-run")
    assert told.code == 0
    assert "-LUCIUS_SDK ?= lucius\n+LUCIUS_SDK ?= lucius-sdk\n" in told.out
    assert "-a tab:\t and a bell: \N{REPLACEMENT CHARACTER}\n" in told.out
    assert files_in(project) == before


def test_the_diff_of_a_dry_run_is_what_an_update_does(shell: Shell, project: Path) -> None:
    older(project, {"Makefile": MAKEFILE_BEFORE, "Dockerfile": None, "old.txt": "old\n"})
    document = shell("update", "word-count", "--dry-run", "--json").json
    assert not document["written"]
    diffs = "".join(change["diff"] for change in document["changes"])
    copy = write(Path("copy"), read_baseline(project))
    Path("update.diff").write_text(diffs)
    patched = run("git", "apply", "--unsafe-paths", "--directory=copy", "update.diff", cwd=Path())
    assert patched.returncode == 0, patched.stderr
    shell("update", "word-count")
    made, expected = files_in(copy), files_in(project)
    assert {**made, BASELINE: b""} == {**expected, BASELINE: b""}


def test_a_dry_run_foretells_conflicts(shell: Shell, project: Path) -> None:
    older(project, {"Dockerfile": None})
    (project / "Dockerfile").write_text("FROM ours\n")
    assert shell("update", "word-count", "--dry-run").code == 1
    assert (project / "Dockerfile").read_text() == "FROM ours\n"
