"""How nbgrader grades the exercises; ``make assignments`` copies this into the course."""

c = get_config()  # noqa: F821  nbgrader gives it

# Seconds that one cell may take, then it is interrupted and the next one runs.
c.ExecutePreprocessor.timeout = 300
# And seconds until the kernel must have said that it was interrupted: MXNet first ends its work.
c.ExecutePreprocessor.iopub_timeout = 60
# What stands in the place of a solution: nothing, for the exercises bring their own beginning.
c.ClearSolutions.code_stub = {"python": ""}
