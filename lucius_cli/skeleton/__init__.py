"""The skeleton of a service: baked from `skeleton_template`, and kept up to date afterwards.

Every file of the template belongs either to the team that got it or to all services together;
`_yours` in `cookiecutter.json` says which. The first are the team's from the moment that they are
baked. The others are shared: a newer template changes them, and `lucius update` merges.
"""

from lucius_cli.skeleton.baked import BASELINE, Baked
from lucius_cli.skeleton.shared import drift, rewrite
from lucius_cli.skeleton.template import Template, bake, find_template

__all__ = ["BASELINE", "Baked", "Template", "bake", "drift", "find_template", "rewrite"]
