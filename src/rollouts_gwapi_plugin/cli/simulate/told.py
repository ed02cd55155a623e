"""How a simulation is told: each call that did something with its diffs, and what is left in the end."""

from rich.console import Console
from rich.text import Text

from rollouts_gwapi_plugin.cli.printing import console, print_json, show_difference
from rollouts_gwapi_plugin.cli.simulate.stage import Made
from rollouts_gwapi_plugin.cli.simulate.whole import Simulation
from rollouts_gwapi_plugin.model.base import JsonObject


def tell(simulation: Simulation, output: str) -> None:
    """Print a simulation."""
    if output == "json":
        print_json(_json(simulation))
        return
    to = console()
    to.print(Text(f"Rollout {simulation.rollout}", style="bold"), soft_wrap=True)
    for one in simulation.made:
        if one.tells_something:
            _tell_call(to, one)
    writes = sum(len(one.changes) for one in simulation.made)
    where = f" in {simulation.reconciles} reconciles" if simulation.reconciles else ""
    to.print(f"{len(simulation.made)} calls{where} changed routes {writes} times", soft_wrap=True)
    if simulation.problem:
        to.print(Text(f"it can't go on: {simulation.problem}", style="bold red"), soft_wrap=True)
    if not simulation.left:
        to.print("in the end the routes are as they were before", soft_wrap=True)
    if not simulation.reconciles and writes == len(simulation.left):
        # Each route was changed once, and that is what was just shown.
        return
    for name, diff in simulation.left:
        to.print(f"in the end {name} differs from before:", soft_wrap=True)
        show_difference(to, diff)


def _tell_call(to: Console, one: Made) -> None:
    to.print(Text(f"{one.step}  ", style="cyan").append(one.call, style="bold not cyan"), soft_wrap=True)
    if one.error:
        to.print(Text(f"  error: {one.error}", style="bold red"), soft_wrap=True)
    for note in one.notes:
        to.print(Text(f"  {note}", style="yellow"), soft_wrap=True)
    for name, diff in one.changes:
        to.print(f"  {name}", soft_wrap=True)
        show_difference(to, diff)


def _json(simulation: Simulation) -> JsonObject:
    return {
        "rollout": simulation.rollout,
        "reconciles": simulation.reconciles,
        "problem": simulation.problem,
        "calls": [
            {
                "step": one.step,
                "call": one.call,
                "error": one.error,
                "notes": list(one.notes),
                "changes": [{"route": name, "diff": diff} for name, diff in one.changes],
            }
            for one in simulation.made
        ],
        "left": [{"route": name, "diff": diff} for name, diff in simulation.left],
    }
