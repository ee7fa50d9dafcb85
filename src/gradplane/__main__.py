"""python -m gradplane"""

from gradplane.cli import main

main()
