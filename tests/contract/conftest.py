"""The scripts are documents: they are run by the tests, not collected."""

collect_ignore = ["scripts"]
