"""What is left of a Rollout that is gone: the commands that are advised for it give it back; D29."""

import shlex

from tests.cli.town import Town

from rollouts_gwapi_plugin.routes.label import ANNOTATION

SERVICES = ("--weights", "--stable", "s", "--canary", "c")


def advised(text: str) -> list[str]:
    """Return the words of the first command in a text."""
    return shlex.split(text.split("`")[1])


def test_what_the_doctor_advises_gives_it_back(elsewhere: Town) -> None:
    """The command finds the routes of another namespace than the Rollout's, and the weights by its Services."""
    (line,) = [one for one in elsewhere.bad() if " left over: " in one]
    words = advised(line)

    code, text, _ = elsewhere.run(*words, *SERVICES, "--yes")

    assert words == ["cleanup", "-n", "app", "web", "--route-namespace", "shop"]
    assert "`--weights --stable SERVICE --canary SERVICE`" in line
    assert (code, text.splitlines()[-1]) == (0, "Rollout app/web: all is given back")
    assert elsewhere.shop.rules() == ["s=100 c=0"]
    assert ANNOTATION not in (elsewhere.api.read("HTTPRoute", "shop", "web")["metadata"].get("annotations") or {})


def test_nothing_in_one_namespace_is_not_nothing(elsewhere: Town) -> None:
    """Where nothing was found, it is told where it was looked for."""
    by_name = elsewhere.run("cleanup", "app/web", "--yes")[1]
    of_all = elsewhere.run("cleanup", "-n", "app", "--all-deleted", "--yes")[1]

    assert "nothing of it was found on routes of namespace app; --route-namespace names another" in by_name
    assert "has left anything behind on routes of namespace app; --route-namespace names another" in of_all


def test_unknown_services_of_all(elsewhere: Town) -> None:
    """--all-deleted names the whole command that gives back the weights, and no Service without a name."""
    code, text, _ = elsewhere.run("cleanup", "--all-deleted", "--weights", "--yes")

    assert code == 1
    assert "cleanup -n app web --route-namespace shop --weights --stable SERVICE --canary SERVICE" in text
    assert "Service  " not in text


def test_a_record_of_another_name_is_in_the_command(elsewhere: Town) -> None:
    """A ConfigMap that is not the usual one is named in the command."""
    shop = elsewhere.shop
    shop.config, shop.managed = {**shop.config, "configMap": "mine"}, ["canary"]
    shop.header("canary")

    (line,) = [one for one in elsewhere.bad() if " left over: " in one]

    assert advised(line)[4:] == ["--route-namespace", "shop", "--config-map", "mine"]


def test_the_doctor_on_a_rollout_without_the_plugin(sound: Town) -> None:
    """A Rollout that stands without the plugin is not called gone."""
    sound.shop.weight(30)
    sound.configure(plugins={})

    (line,) = [one for one in sound.bad() if " left over: " in one]

    assert line.startswith("warning left over: it does not name the plugin any more, and something of it is left")
