"""`python -m gpusim.native` builds the compiled twins for this Python; `--remove` takes them away."""

import sys

from gpusim.native.build import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
