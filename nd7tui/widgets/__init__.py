"""The widgets of the text UI."""
