"""What nd7 knows about each agent."""
