"""What differs between Linux, macOS and Windows, and between x86-64 and ARM: here and nowhere else.

``processors`` says how many processors this process may use, ``processes`` what happens at a fork and what a process is
limited to, ``files`` where a user's cache is and who can write to it, ``code`` the triple, object format and
relocations of machine code and the libraries that it calls. The branches for macOS and Windows follow the documentation
of these systems; ``docs/machines.md`` says what of them has been run.
"""
