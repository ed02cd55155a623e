"""What traffic to make: a cohort is a kind of client, with its own protocol, headers and rate."""

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Protocol = Literal["http", "grpc", "tcp", "tls", "udp"]


class Cohort(BaseModel):
    """Clients of one kind; `rate` is requests (new connections for tcp and tls, new ports for udp) a second."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    protocol: Protocol = "http"
    address: str = "127.0.0.1"
    port: int = 80
    host: str = ""
    method: str = "GET"
    path: str = "/"
    headers: dict[str, str] = Field(default_factory=dict)
    rate: float = 20.0
    status: int = 200
    # A request that takes longer has failed; the slowest machine of the tests answers in a tenth of it.
    timeout: float = 10.0


def save(cohorts: list[Cohort], path: Path) -> None:
    """Write what `load` reads."""
    path.write_text(json.dumps([cohort.model_dump() for cohort in cohorts], indent=1))


def load(path: Path) -> list[Cohort]:
    """Read the cohorts that the generator is asked for."""
    return [Cohort.model_validate(item) for item in json.loads(path.read_text())]
