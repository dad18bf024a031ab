"""What a notebook shows: tables, figures, progress bars, widgets."""
