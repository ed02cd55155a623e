"""End-to-end tests: a real cluster without docker, a load generator, declarative cases and their runner."""
