"""The picture: asked against measured share over time, as an SVG file."""

from pathlib import Path

from rollouts_gwapi_plugin.cli.demo.measure import curve
from rollouts_gwapi_plugin.cli.demo.play import Result

# Wide enough for a share of some dozen requests, narrow enough to see an edge.
BINS = 60
# Asked, measured, lost; told apart without seeing red and green.
COLOURS = ("#e08e0b", "#0f5fa8", "#b3001b")


def draw(result: Result, path: Path) -> None:
    """Draw the result into a file; its folder is made."""
    import pygal
    from pygal.style import Style

    end = max((answer.done for answer in result.answers), default=1.0)
    width = max(0.1, end / BINS)
    chart = pygal.XY(
        title=result.example.title,
        x_title="seconds",
        y_title=f"share of version {result.version}, %",
        range=(0, 100),
        style=Style(background="white", plot_background="white", colors=COLOURS, title_font_size=20),
        legend_at_bottom=True,
        legend_at_bottom_columns=3,
        dots_size=2,
        # The default loads a script from the network.
        js=[],
    )
    chart.add("asked", _steps(result.timeline, end), show_dots=False, stroke_style={"width": 3})
    chart.add("measured", [(at, 100 * part) for at, part in curve(list(result.answers), result.version, width)])
    chart.add("lost requests", [(answer.sent, 0) for answer in result.lost], stroke=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(chart.render(is_unicode=True), encoding="utf-8")


def _steps(timeline: tuple[tuple[float, float], ...], end: float) -> list[tuple[float, float]]:
    """Return the corners of a curve that keeps its value until the next change."""
    corners: list[tuple[float, float]] = []
    for at, asked in timeline:
        if corners:
            corners.append((at, corners[-1][1]))
        corners.append((at, 100 * asked))
    return [*corners, (end, corners[-1][1])] if corners else []
