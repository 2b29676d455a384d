"""The Linux sandbox: Landlock floor, seccomp filter, listener, emulation."""
