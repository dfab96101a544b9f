"""`fieldjax demo`: a gravity wave on an ICON grid, its gradient, and checks of both, as a user would write them.

`shallow_water` is the model, `experiment` what is done with it; the other files check, time, draw and report.
Only the command line imports this room.
"""
