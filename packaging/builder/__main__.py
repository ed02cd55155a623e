"""`python -m builder`: the build's command line, called by the Makefile."""

import sys
from pathlib import Path

import click

from builder import debian
from builder.executable import Figures, Options, make_executable
from builder.image import make_image
from builder.manifests import refresh
from builder.places import ARCHITECTURES, DIST, GO_PLUGIN_NAME, NAME, BuildError, version
from builder.release import check_clean, make_release


@click.group()
def build() -> None:
    """Build what is released."""


@build.command()
@click.option("--arch", "name", type=click.Choice(list(ARCHITECTURES)), default="amd64", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=DIST, show_default=True)
def binary(name: str, output: Path) -> None:
    """Build the executable."""
    target = output / f"{NAME}-linux-{name}"
    figures = make_executable(target, ARCHITECTURES[name], Options())
    (output / f"{GO_PLUGIN_NAME}-linux-{name}").write_bytes(target.read_bytes())
    report(figures)


def report(figures: Figures) -> None:
    """Print what was built."""
    click.echo(
        f"{figures.architecture}: {figures.file_bytes / 2**20:.1f} MiB file, {figures.unpacked_bytes / 2**20:.1f} MiB "
        f"in {figures.unpacked_files} files once unpacked, sha256 {figures.sha256}"
    )


@build.command()
@click.option("--output", type=click.Path(path_type=Path), default=DIST, show_default=True)
def image(output: Path) -> None:
    """Build the image of the executables that `binary` left in the output folder."""
    executables = {name: output / f"{NAME}-linux-{name}" for name in ARCHITECTURES}
    present = {name: path for name, path in executables.items() if path.exists()}
    if not present:
        raise BuildError(f"there is no executable in {output}: `make binary` first")
    target = output / f"{NAME}-{version()}-image.tar"
    make_image(present, target)
    click.echo(f"{', '.join(present)}: {target}, {target.stat().st_size / 2**20:.1f} MiB")


@build.command()
@click.option("--output", type=click.Path(path_type=Path), default=DIST, show_default=True)
@click.option("--trial", is_flag=True, help="Also from a tree with changes, and with newer Debian packages.")
def release(output: Path, *, trial: bool) -> None:
    """Build everything that is released."""
    if not trial:
        check_clean()
    for figures in make_release(output, Options(strict=not trial)):
        report(figures)


@build.command()
def manifests() -> None:
    """Write examples/install and the manifests in docs/."""
    refresh()


@build.command()
def lock() -> None:
    """Pin the newest Debian packages in packaging/debian.lock."""
    debian.write_lock()


if __name__ == "__main__":
    try:
        build()
    except BuildError as error:
        sys.exit(f"error: {error}")
