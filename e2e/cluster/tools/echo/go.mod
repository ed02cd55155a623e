// The pods of the cluster: one program answers for all of them. Standard library only.
module rollouts-gwapi-plugin.example/e2e/echo

go 1.26.0
