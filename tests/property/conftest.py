"""Profiles for these tests: ``--hypothesis-profile=ci`` repeats itself exactly, ``thorough`` looks further."""

from hypothesis import settings

_USUAL = settings.get_profile("dtq")

settings.register_profile("ci", parent=_USUAL, derandomize=True, database=None, max_examples=200)
settings.register_profile("thorough", parent=_USUAL, max_examples=5000, stateful_step_count=200)
