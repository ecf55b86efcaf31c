"""Speed, as ratios: each `bench_NAME.py` compares two things that it measures in the same run.

The last line that a benchmark prints is one JSON object with at least `name`, `ratio`, `target` and
`ok`. `python -m benchmarks` runs all of them and ends with a table.
"""
