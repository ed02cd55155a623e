"""The Go types that we answer with, as the controller's client declares them."""

from rollouts_gwapi_plugin.wire.gob import EMPTY_STRUCT, INT, STRING, UINT, Field, StructOf

# github.com/argoproj/argo-rollouts/utils/plugin/types.RpcError: how a call went.
RPC_ERROR = StructOf("RpcError", (Field("ErrorString", STRING),))
# github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc.VerifyWeightResponse; its RpcVerified is an int.
VERIFY_WEIGHT_RESPONSE = StructOf("VerifyWeightResponse", (Field("Verified", INT), Field("Err", RPC_ERROR)))
# What Type answers.
TYPE = STRING
# The number of the stream that the host shall dial.
BROKER_ID = UINT
# What Control's methods answer.
NOTHING = EMPTY_STRUCT
