"""The same work on several devices: what is measured, the results, and how they are shown."""
