"""`python -m oraculo` is the same as `oraculo`."""

from oraculo.cli.main import run

if __name__ == "__main__":
    run()
