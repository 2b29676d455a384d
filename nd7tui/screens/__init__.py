"""The screens of the text UI."""
