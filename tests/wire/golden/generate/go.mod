module rollouts-gwapi-plugin/golden

go 1.24
