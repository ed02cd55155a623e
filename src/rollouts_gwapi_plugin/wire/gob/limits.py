"""What a peer may make us keep or do; every number is the most, not the usual.

The largest thing that a controller sends is one Rollout, which etcd keeps below 1.5 MiB; its argument types are some
300 definitions of 20 KiB together.
"""

from dataclasses import dataclass

# One message, and all messages of one value. Five times the largest object that etcd takes by default.
MESSAGE_BYTES = 8 << 20
# Structs and elements that are built for one value. The smallest ones (an empty struct, a nil) cost one byte on the
# wire and up to 250 bytes here: this keeps a value of such below 250 MiB. A Rollout of 1.5 MiB has less than 100,000.
VALUES = 1 << 20
# Levels of structs, containers and interfaces in one value. Each costs one Python frame, of which there are 1000 by
# default; a Rollout has about 20.
NESTING = 256
# Type definitions that a stream may have, and their bytes: they are kept as long as the stream.
TYPES = 4096
DEFINITION_BYTES = 1 << 20
# Where the next message of an unfinished value comes later, the value is read again from its start. This is how many
# bytes may be read again for one value: a peer that sends a large value in very many pieces would cost us quadratic
# time.
REREAD_BYTES = 16 << 20
# As Go: the longest name of a registered type.
INTERFACE_NAME_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one stream."""

    message_bytes: int = MESSAGE_BYTES
    values: int = VALUES
    nesting: int = NESTING
    types: int = TYPES
    definition_bytes: int = DEFINITION_BYTES
    reread_bytes: int = REREAD_BYTES
