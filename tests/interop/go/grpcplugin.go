package main

import (
	"context"
	"encoding/json"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "rollouts-gwapi-plugin/interop/trafficrouter/v1"
)

const service = "/rollouts_gwapi_plugin.v1.TrafficRouter/"

// grpcPlugin is what a controller that speaks gRPC would have beside its net/rpc plugin.
type grpcPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (*grpcPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return nil
}

func (*grpcPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, connection *grpc.ClientConn) (any, error) {
	return &grpcRouter{connection: connection}, nil
}

// grpcRouter implements the controller's TrafficRouterPlugin over gRPC.
type grpcRouter struct {
	connection *grpc.ClientConn
}

func (r *grpcRouter) invoke(method string, request, answer proto.Message) string {
	if err := r.connection.Invoke(context.Background(), service+method, request, answer); err != nil {
		return method + " grpc call error: " + err.Error()
	}
	return ""
}

func (r *grpcRouter) simple(method string, request proto.Message) types.RpcError {
	answer := &pb.RpcError{}
	if failed := r.invoke(method, request, answer); failed != "" {
		return types.RpcError{ErrorString: failed}
	}
	return types.RpcError{ErrorString: answer.GetErrorString()}
}

func (r *grpcRouter) InitPlugin() types.RpcError {
	return r.simple("InitPlugin", &pb.InitPluginRequest{})
}

func (r *grpcRouter) UpdateHash(
	rollout *v1alpha1.Rollout, canaryHash, stableHash string, destinations []v1alpha1.WeightDestination,
) types.RpcError {
	return r.simple("UpdateHash", &pb.UpdateHashRequest{
		Rollout: rolloutJSON(rollout), CanaryHash: canaryHash, StableHash: stableHash,
		AdditionalDestinations: weightDestinations(destinations),
	})
}

func (r *grpcRouter) SetWeight(
	rollout *v1alpha1.Rollout, weight int32, destinations []v1alpha1.WeightDestination,
) types.RpcError {
	return r.simple("SetWeight", &pb.SetWeightRequest{
		Rollout: rolloutJSON(rollout), DesiredWeight: weight, AdditionalDestinations: weightDestinations(destinations),
	})
}

func (r *grpcRouter) SetHeaderRoute(rollout *v1alpha1.Rollout, route *v1alpha1.SetHeaderRoute) types.RpcError {
	converted := &pb.SetHeaderRoute{Name: route.Name}
	for _, match := range route.Match {
		converted.Match = append(converted.Match, &pb.HeaderRoutingMatch{
			HeaderName: match.HeaderName, HeaderValue: stringMatch(match.HeaderValue),
		})
	}
	return r.simple("SetHeaderRoute", &pb.SetHeaderRouteRequest{Rollout: rolloutJSON(rollout), HeaderRoute: converted})
}

func (r *grpcRouter) SetMirrorRoute(rollout *v1alpha1.Rollout, route *v1alpha1.SetMirrorRoute) types.RpcError {
	converted := &pb.SetMirrorRoute{Name: route.Name, Percentage: route.Percentage}
	for _, match := range route.Match {
		headers := map[string]*pb.StringMatch{}
		for name, value := range match.Headers {
			headers[name] = stringMatch(&value)
		}
		converted.Match = append(converted.Match, &pb.RouteMatch{
			Method: stringMatch(match.Method), Path: stringMatch(match.Path), Headers: headers,
		})
	}
	return r.simple("SetMirrorRoute", &pb.SetMirrorRouteRequest{Rollout: rolloutJSON(rollout), MirrorRoute: converted})
}

func (r *grpcRouter) VerifyWeight(
	rollout *v1alpha1.Rollout, weight int32, destinations []v1alpha1.WeightDestination,
) (types.RpcVerified, types.RpcError) {
	answer := &pb.VerifyWeightResponse{}
	failed := r.invoke("VerifyWeight", &pb.VerifyWeightRequest{
		Rollout: rolloutJSON(rollout), DesiredWeight: weight, AdditionalDestinations: weightDestinations(destinations),
	}, answer)
	if failed != "" {
		return types.NotVerified, types.RpcError{ErrorString: failed}
	}
	return types.RpcVerified(answer.GetVerified()), types.RpcError{ErrorString: answer.GetErr().GetErrorString()}
}

func (r *grpcRouter) RemoveManagedRoutes(rollout *v1alpha1.Rollout) types.RpcError {
	return r.simple("RemoveManagedRoutes", &pb.RemoveManagedRoutesRequest{Rollout: rolloutJSON(rollout)})
}

func (r *grpcRouter) Type() string {
	answer := &pb.TypeResponse{}
	if failed := r.invoke("Type", &pb.TypeRequest{}, answer); failed != "" {
		return failed
	}
	return answer.GetType()
}

func rolloutJSON(rollout *v1alpha1.Rollout) []byte {
	data, err := json.Marshal(rollout)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return data
}

func weightDestinations(destinations []v1alpha1.WeightDestination) []*pb.WeightDestination {
	var converted []*pb.WeightDestination
	for _, destination := range destinations {
		converted = append(converted, &pb.WeightDestination{
			ServiceName: destination.ServiceName, PodTemplateHash: destination.PodTemplateHash, Weight: destination.Weight,
		})
	}
	return converted
}

func stringMatch(match *v1alpha1.StringMatch) *pb.StringMatch {
	if match == nil {
		return nil
	}
	return &pb.StringMatch{Exact: match.Exact, Prefix: match.Prefix, Regex: match.Regex}
}
