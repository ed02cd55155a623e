package main

import (
	"fmt"
	"io"
	"net/rpc"
	"os/exec"
	"strings"
	"sync"
	"time"

	trafficrpc "github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
)

// pluginName is the name under which the controller dispenses traffic routers.
const pluginName = "RpcTrafficRouterPlugin"

// unknownName is one that the host knows and the plugin does not.
const unknownName = "RpcStepPlugin"

// startConfig says how to start the plugin; its zero value, but for Path, is what the controller does.
type startConfig struct {
	Path            string   `json:"path"`
	Args            []string `json:"args"`
	Protocol        string   `json:"protocol"`
	AllowGRPC       bool     `json:"allow_grpc"`
	AutoMTLS        bool     `json:"auto_mtls"`
	Multiplex       bool     `json:"multiplex"`
	CookieValue     string   `json:"cookie_value"`
	ProtocolVersion uint     `json:"protocol_version"`
	Environment     []string `json:"environment"`
	SocketGroup     string   `json:"socket_group"`
	SkipInit        bool     `json:"skip_init"`
}

// text collects output of several goroutines.
type text struct {
	lock    sync.Mutex
	builder strings.Builder
}

func (t *text) Write(data []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.builder.Write(data)
}

func (t *text) lines() []string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return strings.Split(strings.TrimSuffix(t.builder.String(), "\n"), "\n")
}

// netrpcPlugin is the controller's plugin that also keeps the net/rpc client, for calls that the controller never makes.
type netrpcPlugin struct {
	trafficrpc.RpcTrafficRouterPlugin
	running *runningPlugin
}

func (p *netrpcPlugin) Client(broker *goplugin.MuxBroker, client *rpc.Client) (any, error) {
	p.running.rawClient = client
	return p.RpcTrafficRouterPlugin.Client(broker, client)
}

// runningPlugin is a started plugin process with its connection.
type runningPlugin struct {
	config    startConfig
	command   *exec.Cmd
	client    *goplugin.Client
	protocol  goplugin.ClientProtocol
	router    trafficrpc.TrafficRouterPlugin
	rawClient *rpc.Client
	logs      text
	stderr    text
}

func (p *runningPlugin) clientConfig() *goplugin.ClientConfig {
	// go-plugin refuses a name that the host does not know before it asks the plugin.
	plugins := goplugin.PluginSet{pluginName: &netrpcPlugin{running: p}, unknownName: &netrpcPlugin{running: p}}
	if p.config.Protocol == "grpc" {
		plugins = goplugin.PluginSet{pluginName: &grpcPlugin{}}
	}
	cookie, version := p.config.CookieValue, p.config.ProtocolVersion
	if cookie == "" {
		cookie = "trafficrouter"
	}
	if version == 0 {
		version = 1
	}
	config := &goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion:  version,
			MagicCookieKey:   "ARGO_ROLLOUTS_RPC_PLUGIN",
			MagicCookieValue: cookie,
		},
		Plugins:             plugins,
		Managed:             true,
		AutoMTLS:            p.config.AutoMTLS,
		GRPCBrokerMultiplex: p.config.Multiplex,
		Logger:              hclog.New(&hclog.LoggerOptions{JSONFormat: true, Level: hclog.Trace, Output: &p.logs}),
		Stderr:              io.Writer(&p.stderr),
	}
	if p.config.AllowGRPC {
		config.AllowedProtocols = []goplugin.Protocol{goplugin.ProtocolNetRPC, goplugin.ProtocolGRPC}
	}
	if p.config.SocketGroup != "" {
		config.UnixSocketConfig = &goplugin.UnixSocketConfig{Group: p.config.SocketGroup}
	}
	return config
}

// start does what the controller does before it uses a plugin: start, dispense, InitPlugin, ping.
func start(config startConfig) (*runningPlugin, result) {
	p := &runningPlugin{config: config, command: exec.Command(config.Path, config.Args...)}
	p.command.Env = config.Environment
	client := p.clientConfig()
	client.Cmd = p.command
	p.client = goplugin.NewClient(client)
	began := time.Now()
	address, err := p.client.Start()
	answer := result{"handshake_seconds": time.Since(began).Seconds()}
	if p.command.Process != nil {
		answer["pid"] = p.command.Process.Pid
	}
	if err == nil {
		answer["network"], answer["address"] = address.Network(), address.String()
		answer["protocol"] = string(p.client.Protocol())
		err = p.connect()
	}
	if err == nil && !config.SkipInit {
		if failed := p.router.InitPlugin(); failed.HasError() {
			err = failed
		}
	}
	if err == nil {
		err = p.protocol.Ping()
	}
	answer["ready_seconds"] = time.Since(began).Seconds()
	answer["error"] = message(err)
	return p, answer
}

func (p *runningPlugin) connect() error {
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	p.protocol = protocol
	dispensed, err := protocol.Dispense(pluginName)
	if err != nil {
		return err
	}
	router, ok := dispensed.(trafficrpc.TrafficRouterPlugin)
	if !ok {
		return fmt.Errorf("dispensed a %T", dispensed)
	}
	p.router = router
	return nil
}

func (p *runningPlugin) ping() result {
	began := time.Now()
	err := p.protocol.Ping()
	return result{"error": message(err), "seconds": time.Since(began).Seconds()}
}

// dispense asks for a plugin once more; the one of the controller's name is used from then on.
func (p *runningPlugin) dispense(name string) result {
	if name == pluginName {
		return result{"error": message(p.connect())}
	}
	_, err := p.protocol.Dispense(name)
	return result{"error": message(err)}
}

// raw calls a method that the controller does not know, with the nil interface that InitPlugin has as argument.
func (p *runningPlugin) raw(method string) result {
	if p.rawClient == nil {
		return result{"host_error": "there is no net/rpc client"}
	}
	var answer types.RpcError
	done := p.rawClient.Go(method, new(any), &answer, make(chan *rpc.Call, 1))
	select {
	case <-done.Done:
		return result{"error": message(done.Error), "answer": answer.ErrorString}
	case <-time.After(10 * time.Second):
		return result{"host_error": "no answer within 10 s"}
	}
}

// reattach connects a second client to the running process, as go-plugin does it: a probe connection that closes
// without a byte, then a real one.
func (p *runningPlugin) reattach(c call) result {
	second := &runningPlugin{config: p.config}
	client := second.clientConfig()
	client.Reattach = p.client.ReattachConfig()
	second.client = goplugin.NewClient(client)
	if _, err := second.client.Start(); err != nil {
		return result{"error": message(err)}
	}
	if err := second.connect(); err != nil {
		return result{"error": message(err)}
	}
	answer := second.call(c)
	if closer, ok := second.protocol.(*goplugin.RPCClient); ok && c.Method == "close" {
		answer["error"] = message(closer.Close())
	}
	return answer
}

// kill ends the plugin as the controller does when it shuts down.
func (p *runningPlugin) kill() result {
	began := time.Now()
	p.client.Kill()
	answer := result{"seconds": time.Since(began).Seconds(), "exited": p.client.Exited()}
	if state := p.command.ProcessState; state != nil {
		answer["exit_code"], answer["state"] = state.ExitCode(), state.String()
	}
	return answer
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
