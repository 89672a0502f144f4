"""`python -m tco`."""

from tco.cli import app

if __name__ == "__main__":
    app(prog_name="tco")
