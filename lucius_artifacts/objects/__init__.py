"""Storage for objects: one module or package for each kind of it."""
