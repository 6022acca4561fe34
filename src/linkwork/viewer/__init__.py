"""Looking at robots: a live viewer in the browser (viser), and replays as one HTML file that needs nothing else."""
