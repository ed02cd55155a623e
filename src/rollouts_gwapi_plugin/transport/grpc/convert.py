"""From protobuf messages to the names that the models read, and from answers to protobuf messages.

The messages' field names are the models' own, so one generic step converts them; the Rollout in them is JSON. Fields
that were not sent are absent, with one exception of proto3: a number without presence is absent when it is 0, and the
models read an absent weight as 0.
"""

import json
from typing import Protocol

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.transport.calls import Answer
from rollouts_gwapi_plugin.transport.grpc._generated.rollouts_gwapi_plugin.v1 import traffic_router_pb2 as pb


class RolloutRequest(Protocol):
    """Every request about a Rollout has it as JSON."""

    rollout: bytes


def arguments(request: RolloutRequest) -> JsonObject:
    """Turn a request into the dict that the call's model reads.

    Raises:
        ConfigError: The Rollout in it is not a JSON object.

    """
    if not isinstance(request, Message):
        raise TypeError(f"{type(request).__name__} is not a protobuf message")
    fields: JsonObject = MessageToDict(request, preserving_proto_field_name=True)
    fields["rollout"] = _rollout(request.rollout)
    return fields


def _rollout(raw: bytes) -> JsonObject:
    try:
        rollout = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the Rollout in the request is not JSON: {error}; {len(raw)} bytes were sent") from error
    if not isinstance(rollout, dict):
        raise ConfigError(f"the Rollout in the request is a JSON {type(rollout).__name__}, not an object")
    return rollout


def rpc_error(answer: Answer) -> pb.RpcError:
    """Make the reply of a call that only succeeds or fails."""
    return pb.RpcError(error_string=answer.error)


def type_response(answer: Answer) -> pb.TypeResponse:
    """Make the reply of Type."""
    return pb.TypeResponse(type=answer.text)


def verify_response(answer: Answer) -> pb.VerifyWeightResponse:
    """Make the reply of VerifyWeight."""
    verified = pb.VerifyWeightResponse.Verified.Name(answer.verified)
    return pb.VerifyWeightResponse(verified=verified, err=pb.RpcError(error_string=answer.error))
