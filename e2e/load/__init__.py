"""Constant traffic in several cohorts, every answer kept with its time; shares, losses and a graph made from them.

`cohort` says what traffic to make, `clients` makes one request a protocol, `generator` keeps the rate, `record` is what
is kept of an answer, `traffic` reads the records back and judges them, `graph` draws them. The generator runs as a
process of its own (`python -m e2e.load SPEC RECORDS`), so that whoever watches does not disturb its clock.
"""
