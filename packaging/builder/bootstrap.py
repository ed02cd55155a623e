"""First code in the tree (`main.pyc`): finds the packages and hands over to the program.

If the program can't even be imported (a tree that was damaged on disk), the launcher is executed again with the
reason, so that the host is told it over the plugin protocol.
"""

import os
import sys


def start() -> int:
    """Run the program; its exit code."""
    root = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would be the slowest import here
    sys.path.append(f"{root}/lib/python3.11/site-packages")
    try:
        if "ARGO_ROLLOUTS_RPC_PLUGIN" in os.environ:
            import rollouts_gwapi_plugin.serve  # noqa: F401, PLC0415 - its failure is what we are here for
        from rollouts_gwapi_plugin.__main__ import main  # noqa: PLC0415 - as above
    except (ImportError, SyntaxError, EOFError, ValueError, OSError) as error:
        launcher = os.environ.get("ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE", "")
        if not launcher or "ROLLOUTS_GWAPI_PLUGIN_FAILURE" in os.environ:
            raise
        reason = f"{type(error).__name__}: {error}"
        os.execve(launcher, [launcher, *sys.argv[1:]], {**os.environ, "ROLLOUTS_GWAPI_PLUGIN_FAILURE": reason})  # noqa: S606 - our own path
    return main()


if __name__ == "__main__":
    sys.exit(start())
