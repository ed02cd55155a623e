"""The flags of `serve`, in every form that Go's flag package reads: `-name=value`, `--name value` and so on.

They come from the ConfigMap argo-rollouts-config (`args:`), so the Go plugin's flags keep their names. Before the
handshake nothing else is known, so a wrong flag ends the process with a line that the host logs.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.settings import DEFAULT_BURST, DEFAULT_QPS, ServiceSettings

# The launcher of the one-file executable replaces itself by the interpreter; its own path is what names the plugin.
EXECUTABLE_VARIABLE = "ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE"
MAX_PORT = 65_535

EXPLANATION = """\
This is a plugin of Argo Rollouts; the controller starts it, not a person. To use it, name it in the ConfigMap
argo-rollouts-config, in the controller's namespace, and restart the controller:

  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: argo-rollouts-config
    namespace: argo-rollouts
  data:
    trafficRouterPlugins: |-
      - name: argoproj-labs/gatewayAPI
        location: file://{executable}

Then a Rollout names its routes under spec.strategy.canary.trafficRouting.plugins.argoproj-labs/gatewayAPI.
`rollouts-gwapi-plugin serve --help` lists what `args:` may hold; `rollouts-gwapi-plugin --help` lists the commands for
people.
"""


@dataclass(frozen=True)
class Flags:
    """What the process was told on its command line."""

    transport: Literal["netrpc", "grpc"]
    log_format: Literal["json", "text"]
    log_level: Literal["debug", "info", "warn", "error"]
    service: ServiceSettings


class _Parser(argparse.ArgumentParser):
    """Raises instead of writing a usage text, which the host would log line by line."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"wrong arguments: {message}; `serve --help` lists the right ones")


def parse(arguments: list[str], environ: Mapping[str, str] = os.environ) -> Flags:
    """Read the flags.

    Raises:
        ConfigError: A flag is unknown, or its value can't be used.
        SystemExit: Help was asked for, and printed.

    """
    found = _parser().parse_args(arguments)
    executable = environ.get(EXECUTABLE_VARIABLE) or os.path.abspath(sys.argv[0])  # noqa: PTH100 - a link is not resolved: its own name is the plugin's
    settings = ServiceSettings(
        kubeconfig=found.kubeconfig or None,
        qps=found.qps,
        burst=found.burst,
        plugin_name=found.plugin_name or None,
        executable=executable,
        allowed_namespaces=found.allowed_namespaces,
        metrics_port=found.metrics_port,
    )
    return Flags(found.transport, found.log_format, found.log_level, settings)


def explanation(environ: Mapping[str, str] = os.environ) -> str:
    """Tell a person who started the plugin what it is."""
    executable = environ.get(EXECUTABLE_VARIABLE) or os.path.abspath(sys.argv[0])  # noqa: PTH100 - as above
    return EXPLANATION.format(executable=executable)


def _namespaces(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{port} is no port from 1 to {MAX_PORT}")
    return port


# Name, attribute, and what argparse knows of it.
FLAGS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "transport",
        "transport",
        {"choices": ("netrpc", "grpc"), "default": "netrpc", "help": "the stock controller has netrpc, the default"},
    ),
    (
        "kubeClientQPS",
        "qps",
        {"type": float, "default": DEFAULT_QPS, "metavar": "N", "help": "API requests a second (%(default)s)"},
    ),
    (
        "kubeClientBurst",
        "burst",
        {"type": int, "default": DEFAULT_BURST, "metavar": "N", "help": "API requests at once (%(default)s)"},
    ),
    (
        "logformat",
        "log_format",
        {"choices": ("json", "text"), "default": "json", "help": "the controller's log reads json, the default"},
    ),
    (
        "log-level",
        "log_level",
        {"choices": ("debug", "info", "warn", "error"), "default": "info", "help": "what is logged (%(default)s)"},
    ),
    (
        "kubeconfig",
        "kubeconfig",
        {"metavar": "FILE", "help": "else KUBECONFIG, the Pod's service account, ~/.kube/config"},
    ),
    (
        "plugin-name",
        "plugin_name",
        {"metavar": "ORG/NAME", "help": "the plugin's key in Rollouts, where the executable's path does not say it"},
    ),
    (
        "allowed-namespaces",
        "allowed_namespaces",
        {
            "type": _namespaces,
            "metavar": "A,B",
            "help": "namespaces whose routes a Rollout of another namespace may change; empty: none; not given: all",
        },
    ),
    (
        "metrics-port",
        "metrics_port",
        {"type": _port, "metavar": "PORT", "help": "serve Prometheus metrics on this port; not given: no metrics"},
    ),
)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="rollouts-gwapi-plugin serve",
        description="Serve as a plugin of the Argo Rollouts controller. One dash or two, `=` or a space: all are read.",
        allow_abbrev=False,
    )
    for name, attribute, options in FLAGS:
        # Go reads one dash as two.
        parser.add_argument(f"--{name}", f"-{name}", dest=attribute, **options)
    return parser
