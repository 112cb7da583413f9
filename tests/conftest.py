"""Settings of the whole suite."""

import hypothesis

hypothesis.settings.register_profile("suite", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.load_profile("suite")
