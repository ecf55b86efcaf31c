"""Variables of the bus: the namespace that processes share, or the port of the one inside."""

from lucius_contract.routing import LANES, REPLY_SUBSCRIPTION, REPLY_TOPIC_PREFIX
from lucius_settings.connections import CONNECTION, NAMESPACE
from lucius_settings.info import SettingInfo
from lucius_settings.kinds import exactly, whole

_CONTRACT = "the contract fixes it for everybody on the bus"
_INSIDE = "none: an emulator of Service Bus inside `lucius up`"
BUS = (
    SettingInfo(
        "LUCIUS_SERVICEBUS_CONNECTION",
        "servicebus_connection",
        CONNECTION,
        None,
        "The Service Bus namespace, Azure's or an emulator's. Services have a variable of the same"
        " name.",
        secret=True,
        unset=_INSIDE,
    ),
    SettingInfo(
        "LUCIUS_SERVICEBUS_NAMESPACE",
        "servicebus_namespace",
        NAMESPACE,
        None,
        "The same by name, with the managed identity of the process instead of a key.",
        unset=_INSIDE,
    ),
    SettingInfo(
        "LUCIUS_BUS_PORT",
        "bus_port",
        whole(0, 65535),
        "5672",
        "The port of the emulator inside `lucius up`, on 127.0.0.1; 0 takes a free one.",
    ),
    SettingInfo(
        "LUCIUS_SERVICEBUS_LANES",
        None,
        exactly(str(LANES), _CONTRACT),
        str(LANES),
        "The number of lanes.",
    ),
    SettingInfo(
        "LUCIUS_SERVICEBUS_REPLY_PREFIX",
        None,
        exactly(REPLY_TOPIC_PREFIX, _CONTRACT),
        REPLY_TOPIC_PREFIX,
        "The name of a reply topic without its lane.",
    ),
    SettingInfo(
        "LUCIUS_SERVICEBUS_REPLY_SUBSCRIPTION",
        None,
        exactly(REPLY_SUBSCRIPTION, _CONTRACT),
        REPLY_SUBSCRIPTION,
        "The subscription through which replies are received.",
    ),
)
