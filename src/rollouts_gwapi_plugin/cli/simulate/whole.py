"""A whole simulation: from manifests to everything that was called, and what is left in the end."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from rollouts_gwapi_plugin.cli.manifests import Manifest
from rollouts_gwapi_plugin.cli.printing import counted
from rollouts_gwapi_plugin.cli.simulate.played import check_played
from rollouts_gwapi_plugin.cli.simulate.single_calls import make_calls
from rollouts_gwapi_plugin.cli.simulate.stage import Made, Stage, changes_between
from rollouts_gwapi_plugin.cli.simulate.story import Story
from rollouts_gwapi_plugin.cli.subject import configuration, read_rollout
from rollouts_gwapi_plugin.errors import ConfigError


@dataclass(frozen=True)
class Wish:
    """The command line."""

    calls: tuple[str, ...]
    abort_after: int | None
    plugin_name: str | None


@dataclass(frozen=True)
class Simulation:
    """What happened; `left` is how the routes differ in the end from before the update (or the first call)."""

    rollout: str
    made: tuple[Made, ...]
    left: tuple[tuple[str, str], ...]
    reconciles: int = 0
    problem: str = ""

    @property
    def failed(self) -> bool:
        """Whether a call failed, or the story did not come to its end."""
        return bool(self.problem or any(one.error for one in self.made))


def run(manifests: Sequence[Manifest], wish: Wish) -> Simulation:
    """Simulate.

    Raises:
        BadParameter: the command line does not fit the Rollout.
        ConfigError: there is not one Rollout among the manifests, or what it says can't be played.

    """
    rollouts = [manifest for manifest in manifests if manifest.kind == "Rollout"]
    if len(rollouts) != 1:
        names = ", ".join(map(str, rollouts)) or "none"
        raise ConfigError(f"one Rollout is needed, the files have {names}")
    raw = rollouts[0].value
    rollout = read_rollout(raw)
    if rollout.spec.strategy.canary is None:
        raise ConfigError(f"Rollout {rollout.key} has no canary strategy, so no plugin is called for it")
    configuration(rollout, wish.plugin_name)
    check_played(raw)
    if wish.abort_after is not None and wish.abort_after >= len(rollout.canary.steps):
        text = f"{wish.abort_after}: the Rollout has {counted(len(rollout.canary.steps), 'step')}, from 0"
        raise click.BadParameter(text, param_hint="--abort-after")
    with Stage(manifests, wish.plugin_name) as stage:
        if wish.calls:
            before = stage.routes()
            make_calls(stage, raw, wish.calls)
            left = changes_between(before, stage.routes())
            return Simulation(rollout.key, tuple(stage.made), tuple(left))
        story = Story(stage, raw, wish.abort_after)
        story.play()
        left = changes_between(story.before, stage.routes())
        return Simulation(rollout.key, tuple(stage.made), tuple(left), story.reconciles, story.problem)
