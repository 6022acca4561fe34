"""`python -m linkwork`: the command line, where its script is not on the path."""

from linkwork.cli.main import main

if __name__ == "__main__":
    main()
