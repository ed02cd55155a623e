module rollouts-gwapi-plugin/launcher

go 1.26.0

require (
	github.com/hashicorp/yamux v0.1.2
	github.com/klauspost/compress v1.20.4
	golang.org/x/sys v0.50.0
)
