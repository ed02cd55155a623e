"""Notes of one reason are one state."""

from rollouts_gwapi_plugin.routes.notes import Note, one_a_reason


def test_notes_of_a_reason_are_joined() -> None:
    """In the order of the first of each, equal texts once; one warning makes all of them a warning."""
    notes = [Note("A", "one", warning=False), Note("B", "x"), Note("A", "two"), Note("A", "one", warning=False)]

    assert (Note("A", "one; two"), Note("B", "x")) == one_a_reason(notes)
    assert (Note("A", "one", warning=False),) == one_a_reason(notes[:1])
    assert () == one_a_reason([])
