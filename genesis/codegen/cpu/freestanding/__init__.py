"""Programs as object files, which run without Python and without this library."""
