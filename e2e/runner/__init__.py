"""The runner of the declarative cases.

`case` is what a case file may say, `target` the clusters that it can be told on, `api` reads objects, `actions` does a
stage's doings, `expectations` looks whether they are fulfilled, `story` tells a case from its first stage to its last,
`report` writes down what happened.
"""
