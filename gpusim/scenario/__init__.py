"""What a user writes: the scenario language of version 1, its loader and error report, the shipped profiles.

Nothing here knows a process or an event. The names are imported where they are used, because pydantic and
PyYAML take a noticeable part of the start of the command line.
"""
