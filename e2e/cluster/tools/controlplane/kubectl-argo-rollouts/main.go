// The kubectl plugin of Argo Rollouts without its dashboard: the dashboard embeds files that the Go module lacks.
package main

import (
	"os"

	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/abort"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/get"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/list"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/pause"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/promote"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/restart"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/retry"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/set"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/status"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/undo"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/cmd/version"
	"github.com/argoproj/argo-rollouts/pkg/kubectl-argo-rollouts/options"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func main() {
	streams := genericclioptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	o := options.NewArgoRolloutsOptions(streams)
	root := &cobra.Command{
		Use:               "kubectl-argo-rollouts COMMAND",
		Short:             "Manage Argo Rollouts",
		SilenceUsage:      true,
		PersistentPreRunE: o.PersistentPreRunE,
		RunE:              func(c *cobra.Command, _ []string) error { return o.UsageErr(c) },
	}
	o.AddKubectlFlags(root)
	root.AddCommand(
		abort.NewCmdAbort(o), get.NewCmdGet(o), list.NewCmdList(o), pause.NewCmdPause(o), promote.NewCmdPromote(o),
		restart.NewCmdRestart(o), retry.NewCmdRetry(o), set.NewCmdSet(o), status.NewCmdStatus(o), undo.NewCmdUndo(o),
		version.NewCmdVersion(o),
	)
	if root.Execute() != nil {
		os.Exit(1)
	}
}
