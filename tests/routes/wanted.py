"""What the Rollout `shop/web` wants of its routes where a test says nothing else."""

from dataclasses import replace
from typing import Final

from rollouts_gwapi_plugin.routes.desired import Desired

WEB: Final = Desired(rollout="shop/web", rollout_name="web", namespace="shop", stable="s", canary="c")
# With the managed routes of the steps that properties draw.
WEB_MANAGED: Final = replace(WEB, weight=30, managed_names=("m-h", "m-m"))
