"""The options of `launch.py`, and the manual that explains them."""
