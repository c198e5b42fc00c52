"""How nbgrader grades the exercises; ``make assignments`` copies this into the course."""

c = get_config()  # noqa: F821  nbgrader gives it

# Seconds that one cell may take, then it is interrupted and the next one runs.
c.ExecutePreprocessor.timeout = 300
# What stands in the place of a solution: nothing, for the exercises bring their own beginning.
c.ClearSolutions.code_stub = {"python": ""}
