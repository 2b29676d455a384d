"""One module a command of nd7; imported only when that command runs."""
