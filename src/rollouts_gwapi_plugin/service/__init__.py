"""The eight calls of the controller, put together from reconcilers and the API."""
