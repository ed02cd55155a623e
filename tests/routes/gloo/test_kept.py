"""What the annotation of a RouteTable keeps: text that UTF-8 can't spell."""

from dataclasses import replace

from rollouts_gwapi_plugin.routes.gloo.kept import ANNOTATION, Kept, Original, dump_annotation, parse_annotation


def test_half_a_surrogate_stays_the_escape_that_it_was() -> None:
    """What is kept for another Rollout is written again as it was read, whatever text is in it."""
    other = r'"shop/x\ud800":[{"name":"\udcff"}]'
    annotations = {ANNOTATION: f'{{"version":1,"rollouts":{{{other}}}}}'}
    found = parse_annotation(annotations, "shop/web", "RouteTable shop/x")
    own = (Kept("http", "a", "p", Original(100)),)
    written = dump_annotation(annotations, replace(found, own=own), "shop/web", "RouteTable shop/x")

    assert other in written[ANNOTATION]
    assert written[ANNOTATION].isascii()
