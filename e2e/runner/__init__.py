"""The runner of the declarative cases.

`case` is what a case file may say, `target` the clusters that it can be told on, `api` reads objects, `match` compares
them with what is expected. `actions` does a stage's doings, `expectations` looks whether they are fulfilled, `received`
counts what pods got, copies among it. `story` tells a case from its first stage to its last, `telling` holds what
happened, `report` writes that down.
"""
