"""`python -m rollouts_gwapi_plugin`, and the console script."""

import sys


def main() -> int:
    """Serve under the host's magic cookie or where asked to, else run the command line."""
    from rollouts_gwapi_plugin.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
