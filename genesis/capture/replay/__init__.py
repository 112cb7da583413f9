"""Replaying a recorded call."""
