"""`python -m gpusim` is the command line."""

import sys

if __name__ == "__main__":
    try:
        from gpusim.cli import main
    except KeyboardInterrupt:  # before the command line can say so itself
        sys.exit(130)
    main()
