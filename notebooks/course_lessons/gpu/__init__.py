"""What lesson 2 shows beside its code: pictures, the reader's own step, exercises."""
