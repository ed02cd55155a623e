"""A host that plays the Argo Rollouts controller: starts a plugin and sends it the controller's calls.

The pure part says what the controller does with what it knows (`cluster`, `desired`, `sequence`, `scaling`,
`progress`, `actions`); it follows rollout/canary.go, trafficrouting.go, service.go and sync.go of Argo Rollouts 1.9.
The rest starts a plugin as a child process, speaks its protocol and carries the actions out.
"""
