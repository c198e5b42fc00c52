"""`python -m gluon_launch`."""

from gluon_launch.main import run

if __name__ == "__main__":
    run()
