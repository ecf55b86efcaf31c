"""The Helm chart, as the real helm reads it."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.skeleton.projects import ODD_NAMES, fresh, recorded, run

Values = Mapping[str, Any]
NONE: Values = {}


@pytest.fixture
def service(tmp_path: Path) -> Path:
    return fresh(tmp_path)


def helm(service: Path, release: str, values: Values) -> subprocess.CompletedProcess[str]:
    given = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
    return run("helm", "template", release, "deploy/chart", *given, cwd=service)


def rendered(service: Path, values: Values = NONE, release: str = "words") -> dict[str, Any]:
    """The objects of an installation, by their kind."""
    made = helm(service, release, values)
    assert made.returncode == 0, made.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(made.stdout) if each}


def refused(service: Path, values: Values) -> str:
    made = helm(service, "words", values)
    assert made.returncode != 0
    return made.stderr


def pod(objects: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = objects["Deployment"]["spec"]["template"]["spec"]
    return found


def environment(objects: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod(objects)["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


@pytest.mark.parametrize("name", ["word-count", *ODD_NAMES])
def test_helm_finds_nothing_wrong(tmp_path: Path, name: str) -> None:
    service = fresh(tmp_path, service_name=name)
    linted = run("helm", "lint", "--strict", "deploy/chart", cwd=service)
    assert linted.returncode == 0, linted.stdout
    objects = rendered(service, release=name)
    assert set(objects) == {
        "Deployment",
        "PodDisruptionBudget",
        "ScaledObject",
        "TriggerAuthentication",
    }
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/name"] == name


def test_the_service_is_told_what_the_values_say(service: Path) -> None:
    objects = rendered(service, {"concurrency": 16, "lanes": "0,3", "graceSeconds": 120})
    told = environment(objects)
    assert told["LUCIUS_CONCURRENCY"] == "16"
    assert told["LUCIUS_LANES"] == "0,3"
    assert told["LUCIUS_GRACE_SECONDS"] == "120"
    assert told["LUCIUS_HEALTH_HOST"] == "0.0.0.0"  # noqa: S104
    assert pod(objects)["terminationGracePeriodSeconds"] == 135


def test_it_runs_without_rights_on_a_root_that_cannot_be_written_to(service: Path) -> None:
    spec = pod(rendered(service))
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {"/workspace", "/tmp"}  # noqa: S108


def test_the_probes_ask_where_the_service_answers(service: Path) -> None:
    (container,) = pod(rendered(service))["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz/live"
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz/ready"
    port = str(container["ports"][0]["containerPort"])
    assert environment(rendered(service))["LUCIUS_HEALTH_PORT"] == port


@pytest.mark.parametrize(
    ("lanes", "numbers"),
    [
        ("0-15", list(range(16))),
        ("0,3, 8-10", [0, 3, 8, 9, 10]),
        ("7", [7]),
        (7, [7]),
        ("2,1-3", [2, 1, 3]),
    ],
)
def test_every_lane_that_is_served_has_one_trigger(
    service: Path, lanes: str | int, numbers: list[int]
) -> None:
    triggers = rendered(service, {"lanes": lanes, "concurrency": 5})["ScaledObject"]["spec"][
        "triggers"
    ]
    told = [trigger["metadata"] for trigger in triggers]
    assert [each["topicName"] for each in told] == [f"global-bus-p{number}" for number in numbers]
    assert {each["subscriptionName"] for each in told} == {"word-count"}
    assert {each["messageCount"] for each in told} == {"5"}


def test_what_waits_is_counted_over_all_lanes_together(service: Path) -> None:
    spec = rendered(service, {"lanes": "0,14-15", "concurrency": 5})["ScaledObject"]["spec"]
    assert spec["advanced"]["scalingModifiers"] == {"formula": "p0 + p14 + p15", "target": "5"}
    assert [trigger["name"] for trigger in spec["triggers"]] == ["p0", "p14", "p15"]


def test_values_of_an_earlier_skeleton_are_still_enough(service: Path) -> None:
    (service / "deploy/chart/values.yaml").write_text(recorded(1).files["deploy/chart/values.yaml"])
    assert rendered(service)["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("lanes", ["16", "0-16", "a", "", -1, "3-1"])
def test_lanes_that_there_are_not_are_refused(service: Path, lanes: str | int) -> None:
    assert "lanes" in refused(service, {"lanes": lanes})


@pytest.mark.parametrize("value", [0, "4", 2000])
def test_a_concurrency_that_the_service_would_refuse_is_refused(service: Path, value: Any) -> None:
    assert "concurrency" in refused(service, {"concurrency": value})


def test_with_a_connection_string_service_and_scaler_read_one_secret(service: Path) -> None:
    objects = rendered(service, {"bus.connectionSecret": {"name": "bus", "key": "text"}})
    assert environment(objects)["LUCIUS_SERVICEBUS_CONNECTION"] == {
        "secretKeyRef": {"name": "bus", "key": "text"}
    }
    assert objects["TriggerAuthentication"]["spec"] == {
        "secretTargetRef": [{"parameter": "connection", "name": "bus", "key": "text"}]
    }


def test_with_an_identity_there_is_no_secret_of_the_bus(service: Path) -> None:
    values = {"bus.namespace": "acme.servicebus.windows.net", "identity.clientId": "0d-1f"}
    objects = rendered(service, values)
    told = environment(objects)
    assert told["LUCIUS_SERVICEBUS_NAMESPACE"] == "acme.servicebus.windows.net"
    assert "LUCIUS_SERVICEBUS_CONNECTION" not in told
    assert objects["TriggerAuthentication"]["spec"] == {
        "podIdentity": {"provider": "azure-workload", "identityId": "0d-1f"}
    }
    first = objects["ScaledObject"]["spec"]["triggers"][0]
    assert first["metadata"]["namespace"] == "acme"
    account = objects["ServiceAccount"]["metadata"]
    assert account["annotations"] == {"azure.workload.identity/client-id": "0d-1f"}
    assert pod(objects)["serviceAccountName"] == account["name"]
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert labels["azure.workload.identity/use"] == "true"


def test_without_a_way_to_the_bus_it_is_refused(service: Path) -> None:
    told = refused(service, {"bus.connectionSecret": None})
    assert "bus needs a namespace or a connectionSecret" in told


def test_scaling_can_be_switched_off(service: Path) -> None:
    objects = rendered(service, {"replicas": 3, "scaling.enabled": False})
    assert set(objects) == {"Deployment", "PodDisruptionBudget"}
    assert objects["Deployment"]["spec"]["replicas"] == 3
    assert "replicas" not in rendered(service)["Deployment"]["spec"]


def test_a_team_adds_variables_of_its_own(service: Path) -> None:
    objects = rendered(
        service, {"environment": {"OCR_LANGUAGES": "eng", "OCR_PAGES": 3}, "secrets": ["llm"]}
    )
    told = environment(objects)
    assert (told["OCR_LANGUAGES"], told["OCR_PAGES"]) == ("eng", "3")
    (container,) = pod(objects)["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": "llm"}}]
