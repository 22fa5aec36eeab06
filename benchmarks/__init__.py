"""What dtq costs, measured on one machine: `python -m benchmarks`, told in docs/performance.md."""
