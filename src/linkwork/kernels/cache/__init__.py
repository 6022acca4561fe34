"""What is kept on disk: object code, programs and small results, by content."""
