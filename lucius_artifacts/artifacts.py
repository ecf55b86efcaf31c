"""All use cases over one catalogue and one storage, for those who serve them."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from lucius_artifacts.collection.collector import Collector
from lucius_artifacts.collection.explaining import Explainer
from lucius_artifacts.collection.schedule import Schedule
from lucius_artifacts.collection.workspaces import WorkspaceCollector
from lucius_artifacts.listing import Listing
from lucius_artifacts.policies import AllowAll
from lucius_artifacts.ports.catalogue import Catalogue
from lucius_artifacts.ports.jobs import Jobs
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.ports.policy import Policy
from lucius_artifacts.ports.workspaces import Workspaces
from lucius_artifacts.publishing import Publishing
from lucius_artifacts.reading import Reading
from lucius_artifacts.signing import UrlSigner
from lucius_artifacts.telemetry import Telemetry
from lucius_artifacts.told import ToldCatalogue
from lucius_artifacts.uploading import Uploads
from lucius_artifacts.verifying import Verifications
from lucius_artifacts.world import Limits, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a deployment wants it."""

    limits: Limits = field(default_factory=Limits)
    schedule: Schedule = field(default_factory=Schedule)
    policy: Policy = field(default_factory=AllowAll)
    workspace_retention: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """`signer` says whether an address of an object is good; None where clients talk to the storage
    itself, and nobody serves objects here."""

    catalogue: Catalogue
    objects: Objects
    uploads: Uploads
    verifications: Verifications
    publishing: Publishing
    reading: Reading
    listing: Listing
    collector: Collector
    explainer: Explainer
    telemetry: Telemetry
    signer: UrlSigner | None = None

    @classmethod
    def over(
        cls,
        catalogue: Catalogue,
        objects: Objects,
        jobs: Jobs,
        world: World,
        rules: Rules | None = None,
        *,
        telemetry: Telemetry | None = None,
        signer: UrlSigner | None = None,
        workspaces: Workspaces | None = None,
    ) -> Self:
        """Without `workspaces` those of jobs are left alone."""
        rules, voice = rules or Rules(), telemetry or Telemetry()
        folders = None
        if workspaces is not None:
            folders = WorkspaceCollector(workspaces, jobs, world, rules.workspace_retention)
        rows, limits, schedule = ToldCatalogue(catalogue, voice), rules.limits, rules.schedule
        uploads = Uploads(rows, objects, world, limits)
        return cls(
            catalogue=rows,
            objects=objects,
            uploads=uploads,
            verifications=Verifications(uploads),
            publishing=Publishing(rows, rules.policy, world, limits),
            reading=Reading(rows, objects, world, limits),
            listing=Listing(rows),
            collector=Collector(rows, objects, uploads, jobs, world, schedule, folders),
            explainer=Explainer(rows, world, schedule, folders),
            telemetry=voice,
            signer=signer,
        )
