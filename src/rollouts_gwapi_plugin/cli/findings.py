"""What a check has found: one line of text for people, one object for machines, one exit code for scripts."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from rich.text import Text

from rollouts_gwapi_plugin.cli.printing import console, print_json
from rollouts_gwapi_plugin.model.base import Frozen

# What scripts see; 2 is click's, for a wrong command line.
FINE: Final = 0
FOUND: Final = 1


class Severity(Enum):
    """How bad it is: an error makes a call of the plugin fail, a warning makes it do less than was asked for."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}
_STYLES: Final = {
    Severity.OK: "green",
    Severity.INFO: "blue",
    Severity.WARNING: "yellow",
    Severity.ERROR: "bold red",
}


class Finding(Frozen):
    """One result of one check; `subject` is what was looked at."""

    severity: Severity
    subject: str
    check: str
    text: str


def passed(subject: str, check: str, text: str) -> Finding:
    """Return a check that found nothing wrong."""
    return Finding(severity=Severity.OK, subject=subject, check=check, text=text)


def noted(subject: str, check: str, text: str) -> Finding:
    """Return what is worth knowing."""
    return Finding(severity=Severity.INFO, subject=subject, check=check, text=text)


def warned(subject: str, check: str, text: str) -> Finding:
    """Return what makes the plugin do less than was asked for."""
    return Finding(severity=Severity.WARNING, subject=subject, check=check, text=text)


def failed(subject: str, check: str, text: str) -> Finding:
    """Return what makes a call fail."""
    return Finding(severity=Severity.ERROR, subject=subject, check=check, text=text)


def exit_code(findings: Iterable[Finding], *, strict: bool = False) -> int:
    """Return FOUND if there is an error, or if asked to be strict a warning."""
    limit = _RANK[Severity.WARNING if strict else Severity.ERROR]
    return FOUND if any(_RANK[finding.severity] >= limit for finding in findings) else FINE


def report(findings: Sequence[Finding], output: str) -> None:
    """Print the findings, grouped by subject in the order of their first one."""
    if output == "json":
        print_json([finding.model_dump(mode="json") for finding in findings])
        return
    to = console()
    for subject in dict.fromkeys(finding.subject for finding in findings):
        to.print(Text(subject, style="bold"), soft_wrap=True)
        for finding in findings:
            if finding.subject == subject:
                line = Text("  ").append(f"{finding.severity.value:<8}", _STYLES[finding.severity])
                to.print(line.append(f"{finding.check}: {finding.text}"), soft_wrap=True)
    counts = {severity: sum(finding.severity is severity for finding in findings) for severity in Severity}
    to.print(f"errors: {counts[Severity.ERROR]}, warnings: {counts[Severity.WARNING]}")
