// Nothing: a precompiled header belongs to a library, and that needs a file.
