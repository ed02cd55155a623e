"""Argo Rollouts traffic router plugin for the Kubernetes Gateway API."""

__version__ = "0.1.0"
