"""nd7: a kernel-enforced sandbox for AI coding agents, with a hash-chained log and a text UI."""
