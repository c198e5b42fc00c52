"""Run the examples in the docstrings of the door; print how many each name has."""

import doctest
import sys

import gluon_dist as gd

import mxnet as mx
import numpy as np

finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
public = {name: getattr(gd, name) for name in gd.__all__ if name != "__version__"}
for name, value in public.items():
    tests = finder.find(value, name, globs={"gd": gd, "mx": mx, "np": np})
    for test in tests:
        runner.run(test)
    print(name, sum(len(test.examples) for test in tests))
sys.exit(bool(runner.summarize(verbose=False).failed))
