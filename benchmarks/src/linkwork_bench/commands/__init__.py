"""The commands of `linkwork bench`, one file for each kind."""
