"""Files for users."""

from __future__ import annotations

import pytest

from linkwork.output_files import saved, saved_text


def test_files_are_written_whole_or_not_at_all(tmp_path):
    """Whatever ends the writing: no new file is left behind, and an old one stays as it was."""
    path = tmp_path / "results.txt"

    def half(to):
        to.write_text("half")
        raise KeyboardInterrupt

    for before in ([], ["results.txt"]):
        with pytest.raises(KeyboardInterrupt):
            saved(path, half)
        assert [p.name for p in tmp_path.iterdir()] == before
        saved_text(path, "whole")
    path.chmod(0o600)
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    saved_text(link, "again")
    assert link.is_symlink()
    assert path.read_text() == "again"
    assert path.stat().st_mode & 0o777 == 0o600
