"""Everything that works without a UI; never imports textual or rich."""
