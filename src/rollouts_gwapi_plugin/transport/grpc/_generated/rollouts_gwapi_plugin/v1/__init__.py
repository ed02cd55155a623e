"""Made by `make proto`; do not edit."""
