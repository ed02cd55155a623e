"""Destinations of experiments: Services beside the pair, on the port that stable's destination has (decision D31)."""

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.routes.desired import Desired, Destination
from rollouts_gwapi_plugin.routes.gloo.destination import SERVICE, kind_of, port_of
from rollouts_gwapi_plugin.routes.weights import ExperimentError


def experiment_destination(
    asked: Destination, stable: JsonObject, table_namespace: str, desired: Desired
) -> JsonObject:
    """Return the destination of an experiment's Service, without a weight.

    Raises:
        ExperimentError: none of the Service's ports fits stable's.

    """
    ref: JsonObject = {"name": asked.name}
    if kind_of(stable) == SERVICE:
        ref |= {key: value for key, value in (stable.get("ref") or {}).items() if key in {"namespace", "cluster"}}
    elif desired.namespace != table_namespace:
        ref["namespace"] = desired.namespace
    port = _port(asked, port_of(stable), desired)
    return {"ref": ref} | ({"port": port} if port else {})


def _port(asked: Destination, own: str | int | None, desired: Desired) -> JsonObject | None:
    """Return the Service's port for stable's: the same number or name, else the other's name, else its only port."""
    ports = asked.ports or ()
    numbers, port_names = [port.port for port in ports], [port.name for port in ports]
    if own is None and len(ports) == 1:
        return None
    if isinstance(own, str) and own in port_names:
        return {"name": own}
    if isinstance(own, int) and own in numbers:
        return {"number": own}
    mapped = {port.name for port in desired.stable_ports if port.port == own and port.name}
    by_name = [port.port for port in ports if port.name in mapped]
    if by_name or len(numbers) == 1:
        return {"number": (by_name or numbers)[0]}
    listing = ", ".join(f"{port.port} ({port.name})" if port.name else str(port.port) for port in ports) or "no ports"
    wanted = "stable's destination names no port" if own is None else f"none fits port {own} of stable's destination"
    raise ExperimentError(
        f"experiment Service {desired.namespace}/{asked.name}: {wanted}; it has {listing}. Name the container port as"
        f" stable's port is named, or expose {own or 'one port only'}"
    )
