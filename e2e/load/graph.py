"""One case as a picture: asked and measured share of the canary over time, failures, and where each stage began."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pygal
from pygal.style import CleanStyle

from e2e.load.record import Record

# A bucket holds some ten requests of a cohort at the usual rate: fine enough to see a step, coarse enough for a share.
BUCKET_SECONDS = 0.5


@dataclass(frozen=True)
class Picture:
    """What is drawn; times are seconds of the machine's monotonic clock."""

    title: str
    records: Sequence[Record]
    asked: Sequence[tuple[float, float]]  # when, percent
    stages: Sequence[tuple[float, str]]


def draw(picture: Picture, path: Path) -> None:
    """Write the SVG file."""
    if not picture.records:
        return
    start = min(record.began for record in picture.records)
    end = max(record.ended for record in picture.records)
    chart = pygal.XY(
        title=picture.title,
        style=CleanStyle,
        width=1200,
        height=500,
        range=(0, 100),
        xrange=(0, end - start),
        dots_size=1,
        x_title="seconds",
        y_title="percent of answers",
        legend_at_bottom=True,
        x_label_rotation=30,
        js=(),
    )
    chart.x_labels = [
        {"value": max(0.0, at - start), "label": f"{max(0.0, at - start):.0f} s: {name}"} for at, name in picture.stages
    ]
    chart.add("asked of the route", _steps(picture.asked, start, end), stroke_style={"dasharray": "6, 4", "width": 2})
    for name, points in _shares(picture.records, start).items():
        chart.add(name, points)
    losses = _losses(picture.records, start)
    chart.add(f"failed ({sum(record.error != '' for record in picture.records)})", losses, stroke=False, dots_size=3)
    chart.render_to_file(str(path))


def _steps(asked: Sequence[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for at, percent in asked:
        when = max(0.0, at - start)
        if points:
            points.append((when, points[-1][1]))
        points.append((when, percent))
    return [*points, (end - start, points[-1][1])] if points else []


def _shares(records: Sequence[Record], start: float) -> dict[str, list[tuple[float, float]]]:
    """Return a line a cohort and version, the version that came first left out: it is what the others leave."""
    buckets: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    first = next((record.version for record in records if record.version), "")
    for record in records:
        if not record.error:
            buckets[record.cohort][int((record.began - start) / BUCKET_SECONDS)].append(record.version)
    lines: dict[str, list[tuple[float, float]]] = {}
    for cohort, slots in buckets.items():
        seen = {version for versions in slots.values() for version in versions}
        for version in sorted(seen - {first}):
            lines[f"{cohort}: {version}"] = [
                ((slot + 0.5) * BUCKET_SECONDS, 100 * versions.count(version) / len(versions))
                for slot, versions in sorted(slots.items())
            ]
    return lines


def _losses(records: Sequence[Record], start: float) -> list[tuple[float, float]]:
    return [(record.began - start, 0.0) for record in records if record.error]
