"""The search for the best scheduler and settings for a load.

Runs of the simulator are exact and take some ms, so a search can afford hundreds of them. `space`
has the values that are tried, `goal` what is to be reached, `bench` runs and scores settings and
keeps what has run (`tried`), `search` tries them in four steps. The answer is not the search's: its
best settings meet fresh seeds and other disks first (`blklab.api.tune`).
"""
