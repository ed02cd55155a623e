from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RpcError(_message.Message):
    __slots__ = ("error_string",)
    ERROR_STRING_FIELD_NUMBER: _ClassVar[int]
    error_string: str
    def __init__(self, error_string: _Optional[str] = ...) -> None: ...

class InitPluginRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateHashRequest(_message.Message):
    __slots__ = ("rollout", "canary_hash", "stable_hash", "additional_destinations")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    CANARY_HASH_FIELD_NUMBER: _ClassVar[int]
    STABLE_HASH_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    rollout: bytes
    canary_hash: str
    stable_hash: str
    additional_destinations: _containers.RepeatedCompositeFieldContainer[WeightDestination]
    def __init__(self, rollout: _Optional[bytes] = ..., canary_hash: _Optional[str] = ..., stable_hash: _Optional[str] = ..., additional_destinations: _Optional[_Iterable[_Union[WeightDestination, _Mapping]]] = ...) -> None: ...

class SetWeightRequest(_message.Message):
    __slots__ = ("rollout", "desired_weight", "additional_destinations")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    DESIRED_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    rollout: bytes
    desired_weight: int
    additional_destinations: _containers.RepeatedCompositeFieldContainer[WeightDestination]
    def __init__(self, rollout: _Optional[bytes] = ..., desired_weight: _Optional[int] = ..., additional_destinations: _Optional[_Iterable[_Union[WeightDestination, _Mapping]]] = ...) -> None: ...

class VerifyWeightRequest(_message.Message):
    __slots__ = ("rollout", "desired_weight", "additional_destinations")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    DESIRED_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ADDITIONAL_DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    rollout: bytes
    desired_weight: int
    additional_destinations: _containers.RepeatedCompositeFieldContainer[WeightDestination]
    def __init__(self, rollout: _Optional[bytes] = ..., desired_weight: _Optional[int] = ..., additional_destinations: _Optional[_Iterable[_Union[WeightDestination, _Mapping]]] = ...) -> None: ...

class SetHeaderRouteRequest(_message.Message):
    __slots__ = ("rollout", "header_route")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    HEADER_ROUTE_FIELD_NUMBER: _ClassVar[int]
    rollout: bytes
    header_route: SetHeaderRoute
    def __init__(self, rollout: _Optional[bytes] = ..., header_route: _Optional[_Union[SetHeaderRoute, _Mapping]] = ...) -> None: ...

class SetMirrorRouteRequest(_message.Message):
    __slots__ = ("rollout", "mirror_route")
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    MIRROR_ROUTE_FIELD_NUMBER: _ClassVar[int]
    rollout: bytes
    mirror_route: SetMirrorRoute
    def __init__(self, rollout: _Optional[bytes] = ..., mirror_route: _Optional[_Union[SetMirrorRoute, _Mapping]] = ...) -> None: ...

class RemoveManagedRoutesRequest(_message.Message):
    __slots__ = ("rollout",)
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    rollout: bytes
    def __init__(self, rollout: _Optional[bytes] = ...) -> None: ...

class TypeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TypeResponse(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: str
    def __init__(self, type: _Optional[str] = ...) -> None: ...

class VerifyWeightResponse(_message.Message):
    __slots__ = ("verified", "err")
    class Verified(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NOT_VERIFIED: _ClassVar[VerifyWeightResponse.Verified]
        VERIFIED: _ClassVar[VerifyWeightResponse.Verified]
        NOT_IMPLEMENTED: _ClassVar[VerifyWeightResponse.Verified]
    NOT_VERIFIED: VerifyWeightResponse.Verified
    VERIFIED: VerifyWeightResponse.Verified
    NOT_IMPLEMENTED: VerifyWeightResponse.Verified
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    ERR_FIELD_NUMBER: _ClassVar[int]
    verified: VerifyWeightResponse.Verified
    err: RpcError
    def __init__(self, verified: _Optional[_Union[VerifyWeightResponse.Verified, str]] = ..., err: _Optional[_Union[RpcError, _Mapping]] = ...) -> None: ...

class WeightDestination(_message.Message):
    __slots__ = ("service_name", "pod_template_hash", "weight")
    SERVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_TEMPLATE_HASH_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    service_name: str
    pod_template_hash: str
    weight: int
    def __init__(self, service_name: _Optional[str] = ..., pod_template_hash: _Optional[str] = ..., weight: _Optional[int] = ...) -> None: ...

class StringMatch(_message.Message):
    __slots__ = ("exact", "prefix", "regex")
    EXACT_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    exact: str
    prefix: str
    regex: str
    def __init__(self, exact: _Optional[str] = ..., prefix: _Optional[str] = ..., regex: _Optional[str] = ...) -> None: ...

class SetHeaderRoute(_message.Message):
    __slots__ = ("name", "match")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    match: _containers.RepeatedCompositeFieldContainer[HeaderRoutingMatch]
    def __init__(self, name: _Optional[str] = ..., match: _Optional[_Iterable[_Union[HeaderRoutingMatch, _Mapping]]] = ...) -> None: ...

class HeaderRoutingMatch(_message.Message):
    __slots__ = ("header_name", "header_value")
    HEADER_NAME_FIELD_NUMBER: _ClassVar[int]
    HEADER_VALUE_FIELD_NUMBER: _ClassVar[int]
    header_name: str
    header_value: StringMatch
    def __init__(self, header_name: _Optional[str] = ..., header_value: _Optional[_Union[StringMatch, _Mapping]] = ...) -> None: ...

class SetMirrorRoute(_message.Message):
    __slots__ = ("name", "match", "percentage")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    PERCENTAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    match: _containers.RepeatedCompositeFieldContainer[RouteMatch]
    percentage: int
    def __init__(self, name: _Optional[str] = ..., match: _Optional[_Iterable[_Union[RouteMatch, _Mapping]]] = ..., percentage: _Optional[int] = ...) -> None: ...

class RouteMatch(_message.Message):
    __slots__ = ("method", "path", "headers")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMatch
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMatch, _Mapping]] = ...) -> None: ...
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    method: StringMatch
    path: StringMatch
    headers: _containers.MessageMap[str, StringMatch]
    def __init__(self, method: _Optional[_Union[StringMatch, _Mapping]] = ..., path: _Optional[_Union[StringMatch, _Mapping]] = ..., headers: _Optional[_Mapping[str, StringMatch]] = ...) -> None: ...
