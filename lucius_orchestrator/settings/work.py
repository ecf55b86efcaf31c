"""Variables of the work itself: protocols, folders, refs, limits, times."""

from datetime import timedelta

from lucius_contract import timeouts
from lucius_orchestrator.settings.addresses import FOLDERS, ROOT_URI, places, schemes
from lucius_settings.info import SettingInfo
from lucius_settings.kinds import (
    FRACTION,
    PATH,
    SWITCH,
    days,
    in_seconds,
    matching,
    seconds,
    whole,
)

_LENGTH = seconds(timedelta(milliseconds=1), timedelta(days=366))
_MANY = whole(0, 10**9)
_WINDOW = whole(1, 10**6)
_IN_FILE = "what defaults.yaml says"

PLACES = (
    SettingInfo(
        "LUCIUS_PROTOCOLS_DIR",
        "protocols_dir",
        PATH,
        None,
        "The folder with `protocols/`, `tenants.yaml` and `defaults.yaml`.",
        unset="the protocols that are shipped",
    ),
    SettingInfo(
        "LUCIUS_SYSTEM",
        "system",
        matching(
            r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
            "1 to 64 letters, digits, dots, underscores or hyphens, a letter or digit first",
        ),
        "lucius",
        "The folder below the workspace root that holds the folders of tenants.",
    ),
    SettingInfo(
        "LUCIUS_WORKSPACE_ROOT",
        "workspace_root",
        ROOT_URI,
        None,
        "Where jobs have their folders; services must reach it as well.",
        unset="file uri of workspace/ in the data folder",
    ),
    SettingInfo(
        "LUCIUS_WORKSPACE_RETENTION_DAYS",
        "workspace_retention",
        days(0, 36500),
        "30",
        "How long the folder of a job is kept after its end; 0 keeps it for ever.",
    ),
    SettingInfo(
        "LUCIUS_REF_SCHEMES",
        "refs.schemes",
        schemes(),
        None,
        "The schemes that the refs of a request may have.",
        unset="all; all but file where the host is not a loopback host",
    ),
    SettingInfo(
        "LUCIUS_REF_PLACES",
        "refs.places",
        places("hosts, .domains, containers or buckets", None),
        None,
        "What the refs of a request may name, whatever the places of its tenant are.",
        unset="any",
    ),
    SettingInfo(
        "LUCIUS_INPUT_ROOTS",
        "input_roots",
        FOLDERS,
        None,
        "With auth off: folders that inputs may name besides the data folder. Services have a"
        " variable of this name, with what they read.",
        unset="any folder",
    ),
    SettingInfo(
        "LUCIUS_OUTPUT_ROOTS",
        "output_roots",
        FOLDERS,
        None,
        "With auth off: folders that outputs may name besides the data folder. Services have a"
        " variable of this name, with what they publish to.",
        unset="any container and bucket, no other folder of this machine",
    ),
    SettingInfo(
        "LUCIUS_ALLOW_PRIVATE_ADDRESSES",
        "refs.allow_private_addresses",
        SWITCH,
        "off",
        "Whether the refs of a request may name addresses that are not public. Services that read"
        " them need it too.",
    ),
)
LIMITS = (
    SettingInfo(
        "LUCIUS_MAX_INFLIGHT",
        "max_inflight",
        _MANY,
        None,
        "Jobs that may be in flight at once.",
        unset=_IN_FILE,
    ),
    SettingInfo(
        "LUCIUS_MAX_INFLIGHT_PER_TENANT",
        "max_inflight_per_tenant",
        _MANY,
        None,
        "The same for each tenant that has no limit of its own.",
        unset=_IN_FILE,
    ),
    SettingInfo(
        "LUCIUS_MAX_INFLIGHT_BURST",
        "max_inflight_burst",
        _MANY,
        None,
        "The same for all jobs in mode BURST.",
        unset=_IN_FILE,
    ),
    SettingInfo(
        "LUCIUS_MAX_INFLIGHT_DEFAULT",
        "max_inflight_default",
        _MANY,
        None,
        "The same for all jobs in mode DEFAULT.",
        unset=_IN_FILE,
    ),
    SettingInfo(
        "LUCIUS_MAX_PENDING_PER_LANE",
        "max_pending_per_lane",
        whole(1, 10**9),
        "100000",
        "Directives of one service that may wait in one lane; while so many do, no further job"
        " begins there.",
    ),
)
DISPATCH = (
    SettingInfo(
        "LUCIUS_DISPATCH_WINDOW_MIN",
        "dispatch_window.least",
        _WINDOW,
        "1",
        "Directives of a service that may be published and not acknowledged, however slow it is.",
    ),
    SettingInfo(
        "LUCIUS_DISPATCH_WINDOW_MAX",
        "dispatch_window.most",
        _WINDOW,
        "1000",
        "The same, however quick it is.",
    ),
    SettingInfo(
        "LUCIUS_DISPATCH_WINDOW_PER_LANE",
        "dispatch_window_per_lane",
        _WINDOW,
        "1000",
        "The same in one lane. A tenant in mode DEFAULT has one lane.",
    ),
    SettingInfo(
        "LUCIUS_BURST_SHARE",
        "burst_share",
        FRACTION,
        "0.5",
        "What mode BURST gets of the directives that a service takes, while mode DEFAULT waits for"
        " the same service.",
    ),
)
TRIES = (
    SettingInfo(
        "LUCIUS_MAX_ATTEMPTS",
        "step_policy.max_attempts",
        whole(1, 100),
        str(timeouts.MAX_ATTEMPTS),
        "Attempts per step, unless its protocol says otherwise.",
    ),
    SettingInfo(
        "LUCIUS_ACK_TIMEOUT_SECONDS",
        "step_policy.ack_timeout",
        _LENGTH,
        in_seconds(timeouts.ACK_TIMEOUT),
        "From the publish of a directive to its ACK, unless its protocol says otherwise.",
    ),
    SettingInfo(
        "LUCIUS_LEASE_SECONDS",
        "step_policy.lease",
        _LENGTH,
        in_seconds(timeouts.LEASE),
        "How long an attempt may work without a heartbeat, unless its protocol says otherwise.",
    ),
    SettingInfo(
        "LUCIUS_STEP_RESULT_TIMEOUT_SECONDS",
        "step_policy.ceiling",
        _LENGTH,
        in_seconds(timeouts.ATTEMPT_CEILING),
        "How long an attempt may work at all, unless its protocol says otherwise; no less than"
        " the lease.",
    ),
    SettingInfo(
        "LUCIUS_MAX_CLOCK_SKEW",
        "clock_skew",
        seconds(timedelta(0), timedelta(hours=1)),
        in_seconds(timeouts.MAX_CLOCK_SKEW),
        "The most that two clocks may differ.",
    ),
)
