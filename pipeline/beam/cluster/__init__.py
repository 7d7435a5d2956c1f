"""Jobs on clusters: submitted, canceled, their failures, and what their workers have installed."""
