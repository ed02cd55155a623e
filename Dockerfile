# The released executable and nothing else: no shell, no libc. `make image` builds it for amd64 and arm64 from dist/.
# It is meant for an init container: `args: [install, /shared]` copies the plugin into a volume (docs/install.md).
FROM scratch
ARG TARGETARCH
COPY dist/rollouts-gwapi-plugin-linux-${TARGETARCH} /rollouts-gwapi-plugin
# The controller's own user.
USER 999:999
ENTRYPOINT ["/rollouts-gwapi-plugin"]
