"""The HTTP API: translate, call a use case, translate back."""
