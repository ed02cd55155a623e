"""The picture: asked and measured share of each backend in each cohort over time, as an SVG file."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rollouts_gwapi_plugin.cli.demo.measure import Stage, curve
from rollouts_gwapi_plugin.cli.demo.result import Result

# Wide enough for a share of some dozen requests, narrow enough to see an edge.
BINS = 60
# Told apart without seeing red and green (Okabe and Ito); lost requests are black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#999999")
LOST = "#000000"
LEGEND_COLUMNS = 3

Line = tuple[str, list[tuple[float, float]], list[tuple[float, float]]]


def draw(result: Result, path: Path) -> None:
    """Draw the result into a file; its folder is made. Asked shares are dashed."""
    import pygal
    from pygal.style import Style

    # For maps, which are not drawn here, it hooks into all further imports in a way that Python warns about.
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, pygal.PluginImportFixer)]
    lines = list(_lines(result))
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(lines))]
    chart = pygal.XY(
        title=result.example.title,
        x_title="seconds",
        y_title="% (dashed: asked)",
        range=(0, 100),
        style=Style(
            background="white",
            plot_background="white",
            colors=(*(colour for colour in colours for _ in range(2)), LOST),
            title_font_size=20,
        ),
        legend_at_bottom=True,
        legend_at_bottom_columns=LEGEND_COLUMNS,
        truncate_legend=-1,
        dots_size=2,
        # The default loads a script from the network.
        js=[],
    )
    for name, asked, measured in lines:
        # Without a name: not in the legend.
        chart.add(None, asked, show_dots=False, stroke_style={"width": 3, "dasharray": "6, 6"})
        chart.add(name, measured)
    chart.add("lost requests", [(answer.sent, 0) for answer in result.lost], stroke=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(chart.render(is_unicode=True), encoding="utf-8")


def _lines(result: Result) -> Iterator[Line]:
    """Give for each cohort and backend a name, the asked and the measured share in percent."""
    end = max((answer.done for answer in result.answers), default=1.0)
    width = max(0.1, end / BINS)
    services = {one["metadata"]["name"] for one in result.example.manifests if one["kind"] == "Service"}
    told = dict.fromkeys((one.cohort, one.name, one.copies) for one in result.shares if one.name not in services)
    copied = {(name, answer.request_id) for name, answer in result.copies}
    for cohort, name, copies in told:
        answers = [answer for answer in result.answers if answer.cohort == cohort and not answer.lost]
        hits = (
            (answer.sent, (name, answer.request_id) in copied if copies else name in {answer.backend, answer.service})
            for answer in answers
        )
        asked = _steps(((stage.since, _asked(stage, cohort, name, copies=copies)) for stage in result.stages), end)
        yield (
            f"{cohort}: {'copied to ' if copies else ''}{name}",
            [(at, 100 * part) for at, part in asked],
            [(at, 100 * part) for at, part in curve(hits, width)],
        )


def _asked(stage: Stage, cohort: str, name: str, *, copies: bool) -> float:
    asked = stage.asked[cohort]
    return (asked.copies if copies else asked.shares).get(name, 0.0)


def _steps(changes: Iterable[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Return the corners of a curve that keeps its value until the next change."""
    corners: list[tuple[float, float]] = []
    for at, asked in changes:
        if corners:
            corners.append((at, corners[-1][1]))
        corners.append((at, asked))
    return [*corners, (end, corners[-1][1])] if corners else []
