"""What a run does when: settings, timeline, schedules, step timer, early stop."""
