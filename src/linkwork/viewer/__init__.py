"""Viewing robots: a live viewer in the browser (viser), and replays as one self-contained HTML file."""
