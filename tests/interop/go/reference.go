package main

import (
	"fmt"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	trafficrpc "github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
	goplugin "github.com/hashicorp/go-plugin"
)

// referenceRouter is a plugin in Go that routes nothing: its answers show what arrived. With it the host of this
// package is checked against Go's own server, and our host's side of the protocol, too.
type referenceRouter struct{}

func said(format string, values ...any) types.RpcError {
	return types.RpcError{ErrorString: fmt.Sprintf(format, values...)}
}

func (referenceRouter) InitPlugin() types.RpcError { return types.RpcError{} }

func (referenceRouter) UpdateHash(
	_ *v1alpha1.Rollout, canaryHash, stableHash string, destinations []v1alpha1.WeightDestination,
) types.RpcError {
	return said("hash %s %s %d", canaryHash, stableHash, len(destinations))
}

func (referenceRouter) SetWeight(
	rollout *v1alpha1.Rollout, weight int32, destinations []v1alpha1.WeightDestination,
) types.RpcError {
	switch {
	case rollout.Name == "":
		return types.RpcError{}
	case weight < 0: // a slow call
		time.Sleep(time.Duration(-weight) * time.Millisecond)
	}
	return said("%s/%s weight %d %d", rollout.Namespace, rollout.Name, weight, len(destinations))
}

func (referenceRouter) SetHeaderRoute(_ *v1alpha1.Rollout, route *v1alpha1.SetHeaderRoute) types.RpcError {
	return said("header %s %d", route.Name, len(route.Match))
}

func (referenceRouter) SetMirrorRoute(_ *v1alpha1.Rollout, route *v1alpha1.SetMirrorRoute) types.RpcError {
	return said("mirror %s %d", route.Name, len(route.Match))
}

func (referenceRouter) VerifyWeight(
	_ *v1alpha1.Rollout, weight int32, _ []v1alpha1.WeightDestination,
) (types.RpcVerified, types.RpcError) {
	if weight == 20 {
		return types.Verified, types.RpcError{}
	}
	return types.NotVerified, said("weight is not %d", weight)
}

func (referenceRouter) RemoveManagedRoutes(rollout *v1alpha1.Rollout) types.RpcError {
	return said("remove %s", rollout.Name)
}

func (referenceRouter) Type() string { return "Reference" }

func serveReference() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: 1, MagicCookieKey: "ARGO_ROLLOUTS_RPC_PLUGIN", MagicCookieValue: "trafficrouter",
		},
		Plugins: goplugin.PluginSet{pluginName: &trafficrpc.RpcTrafficRouterPlugin{Impl: referenceRouter{}}},
	})
}
