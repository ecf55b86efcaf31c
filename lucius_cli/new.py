"""`lucius new`: a service from the skeleton."""

from pathlib import Path
from typing import Annotated

import typer

from lucius_cli.failures import Unsuitable
from lucius_cli.output import JsonFlag, print_json, print_line


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the service, as word-count.")],
    step_type: Annotated[
        str | None, typer.Option(help="The type of step that it does; else NAME in capitals.")
    ] = None,
    package: Annotated[
        str | None, typer.Option(help="The Python package; else NAME with _service.")
    ] = None,
    description: Annotated[
        str | None, typer.Option(help="What the service does, in a sentence.")
    ] = None,
    into: Annotated[
        Path, typer.Option(file_okay=False, help="Where the folder NAME is made.")
    ] = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the files, write none.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a new service from the skeleton, with tests, contract, image, chart and CI."""
    from lucius_cli.skeleton.project import Project
    from lucius_cli.skeleton.source import local_files
    from lucius_cli.skeleton.template import bake, find_template

    template = find_template()
    asked = {"step_type": step_type, "package_name": package, "description": description}
    given = {question: answer for question, answer in asked.items() if answer is not None}
    baked = bake({"service_name": name, **given}, template)
    folder = into / name
    _check_free(folder)
    files = {**baked.files, **local_files(template), **baked.record}
    if not dry_run:
        project = Project(folder)
        for path, text in files.items():
            project.put(path, text)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "template": baked.template,
                "answers": baked.answers,
                "files": sorted(files),
                "written": not dry_run,
            }
        )
    else:
        _tell(folder, sorted(files), dry_run)


def _check_free(folder: Path) -> None:
    if folder.is_symlink():
        raise Unsuitable(f"{folder} is a symbolic link: choose another name, or remove it")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise Unsuitable(f"{folder} is there already: choose another name, or --into another place")


def _tell(folder: Path, files: list[str], dry_run: bool) -> None:
    if dry_run:
        for path in files:
            print_line(f"{folder}/{path}")
        return
    print_line(f"{folder} is ready. Go there, and:")
    print_line("  make test       run its tests")
    print_line("  make contract   judge it by the contract")
    print_line("  make run        run it beside a `lucius up`")
    print_line("README.md says what to replace.")
