"""Choose between serving and the command line; a command's module is imported when it is run.

Under the host's magic cookie nothing of the command line is imported: start-up time is the host's waiting time.
"""

import os

# The host sets this for every plugin that it starts (go-plugin's magic cookie of Argo Rollouts). It is that of
# `wire.goplugin.handshake`, as a test says: a command must not import that for it.
COOKIE_NAME = "ARGO_ROLLOUTS_RPC_PLUGIN"
COMMANDS = {
    "adopt": "adopt:adopt",
    "cleanup": "cleanup:cleanup",
    "decode": "decode:decode",
    "demo": "demo:demo",
    "devserver": "devserver:devserver",
    "doctor": "doctor:doctor",
    "install": "install:install",
    "lint": "lint:lint",
    "simulate": "simulate:simulate",
    "status": "status:status",
    "version": "version:version",
}


def run(arguments: list[str]) -> int:
    """Run with the arguments that follow the program's name; return the exit code."""
    wants_serve = not arguments or arguments[0] == "serve" or (COOKIE_NAME in os.environ and arguments[0][:1] == "-")
    if wants_serve:
        from rollouts_gwapi_plugin.serve import run as serve

        return serve(arguments[1:] if arguments[:1] == ["serve"] else arguments)
    from rollouts_gwapi_plugin.cli.group import main

    return main(arguments, COMMANDS)
