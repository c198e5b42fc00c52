# `make train` and `make test` are all that a fresh machine needs: both build .venv first.
PYTHON  ?=
DEVICE  ?=
HOROVOD ?=
WORKERS ?= 2
ARGS    ?= --data synthetic --num-epochs 3
TESTS   ?=
PYTHONS ?=
HOSTS   ?= 2
DATA    ?=
JUPYTER_ARGS ?=
RUNS    ?= 20
QUICK   ?=
ONLY    ?=
PORT    ?= 8000
COURSE  ?= course
PEERS   := .venv-peers
SITE    := .venv-site
GRADER  := .venv-nbgrader
PYTEST  := .venv/bin/python -m pytest --dist loadgroup

# Any Python will do to start with; make_venv.py chooses the one for .venv.
START := $(firstword $(foreach name,python3 python3.11 python3.10 python3.12 python3.9 python3.8, \
	$(shell command -v $(name) 2>/dev/null)))

# The packages of the site and of nbgrader want Python 3.11 or later.
LATER = $(shell unset PYTHONHOME PYTHONPATH; for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo $$name && break; done)

# An error begins with what was typed.
FAILED = make $(firstword $(MAKECMDGOALS) $@):

# Variables that are for another Python, or send pip elsewhere, do not count here.
unexport PYTHONHOME PYTHONPATH PYTHONSAFEPATH PIP_TARGET PIP_PREFIX
export PIP_USER := 0

# Kernels are those of .venv, and IPython's settings are its own, whatever is in the home folder.
export JUPYTER_PATH := $(CURDIR)/.venv/share/jupyter
export IPYTHONDIR := $(CURDIR)/build/ipython

.DEFAULT_GOAL := help
.PHONY: help setup train test test-all test-horovod versions notebooks jupyter progress site site-serve assignments cluster chaos bench test-pythons test-bare test-gpu-install lint clean

help:
	@if [ -t 1 ] && [ "$$TERM" != dumb ] && [ -z "$$NO_COLOR" ]; then bold='\033[1m' plain='\033[0m'; fi; \
	echo "New here? make train"; echo; \
	for group in start learn measure maintain; do \
		printf "$$bold%s$$plain\n" "$$group"; \
		awk -F ":.* ## [[]$$group[]] " 'NF == 2 && /^[a-z-]+:/ { printf "  make %-18s%s\n", $$1, $$2 }' \
			$(MAKEFILE_LIST); \
	done

setup: ## [start] build .venv (PYTHON=python3.10, DEVICE=cpu|gpu, HOROVOD=1)
	@test -n "$(START)" || { echo "$(FAILED) no Python found: install Python 3.8 to 3.12" >&2; exit 2; }
	@$(START) tools/make_venv.py --python "$(PYTHON)" --device "$(DEVICE)"
	@$(START) tools/make_horovod.py "$(HOROVOD)"

train: setup ## [start] train with 2 workers on this machine (WORKERS=, ARGS=)
	.venv/bin/python tools/launch.py -n $(WORKERS) -s $(WORKERS) --launcher local \
		".venv/bin/python cifar10_dist/cifar10_dist.py $(ARGS)"
	@echo "Next: make jupyter opens the course; make lists the rest."

# TESTS= runs all that it names, long or not.
test: setup ## [maintain] run the quick tests: 5 minutes, without root (TESTS=)
	@$(PYTEST) --numprocesses 2 $(if $(TESTS),$(TESTS),-m "not long")

# More processes than cores, for long tests wait more than they compute.
test-all: test ## [maintain] run these, then ssh hosts, batch systems and notebooks
	@$(if $(TESTS),,$(PYTEST) --numprocesses 3 -m long)

# Where Horovod is missing, other runs skip these.
test-horovod: HOROVOD := $(or $(HOROVOD),1)
test-horovod: setup ## [maintain] run the tests of Horovod, after make setup HOROVOD=1
	@$(PYTEST) --numprocesses 2 -m horovod

notebooks: setup ## [maintain] run the notebooks and keep what they put out (DATA=)
	@.venv/bin/python tools/refresh_notebooks.py $(if $(DATA),--data "$(DATA)")

# JupyterLab wants to be told that root may start it, and not to ask about its news and versions
# (tools/lab_settings), nor to list the language servers that are not here.
jupyter: setup ## [start] open the notebooks in JupyterLab (JUPYTER_ARGS=)
	@JUPYTER_CONFIG_PATH="$(CURDIR)/tools/lab_settings" \
		exec .venv/bin/python tools/open_notebooks.py $(if $(filter 0,$(shell id -u)),--allow-root) \
		--ServerApp.root_dir="$(CURDIR)" --LabApp.news_url=None \
		--log-level=WARN --LabApp.log_level=WARN $(JUPYTER_ARGS) \
		--LanguageServerManager.autodetect=False \
		--LabApp.default_url=/lab/tree/notebooks/00-start-here.ipynb

progress: ## [learn] show which of the notebooks' exercises you have solved
	@test -n "$(START)" || { echo "$(FAILED) no Python found: install Python 3.8 to 3.12" >&2; exit 2; }
	@$(START) notebooks/progress.py

$(SITE)/built: docs/site/requirements.txt
$(GRADER)/built: docs/teaching/requirements.txt
$(SITE)/built $(GRADER)/built:
	@test -n "$(LATER)" || { echo "$(FAILED) $(@D) needs Python 3.11 or later" >&2; exit 2; }
	@$(LATER) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --requirement $<
	@touch $@

# Not after setup: of .venv it needs only the programs' --help.
site: $(SITE)/built ## [learn] make web pages in build/site: Python 3.11 (URL=)
	@$(SITE)/bin/python tools/make_site.py $(if $(URL),--url "$(URL)")

site-serve: site ## [learn] make them and show them on this machine (PORT=8000)
	@exec $(SITE)/bin/python -m http.server --bind 127.0.0.1 --directory build/site $(PORT)

assignments: $(GRADER)/built ## [learn] make nbgrader's course of the exercises (COURSE=)
	@$(GRADER)/bin/python tools/make_assignments.py "$(COURSE)"

cluster: setup ## [learn] simulate ssh hosts here, as root (HOSTS=, WITH=slurm)
	@.venv/bin/python tools/cluster.py up --hosts $(HOSTS) $(if $(WITH),--with $(WITH))

chaos: setup ## [measure] disturb jobs at random: nothing is left (RUNS=)
	@LAUNCH_CHAOS_RUNS=$(RUNS) .venv/bin/python -m pytest tests/launcher/test_launch_chaos.py
	@PYTHONPATH=cifar10_dist:tools:tests/programs .venv/bin/python tests/training_chaos.py $(RUNS)

# PyTorch has an environment of its own: it wants another NumPy.
$(PEERS)/built: benchmarks/peers/requirements-peers.txt
	@$(START) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --requirement $<
	@touch $@

# A mistake is told before PyTorch is installed.
BENCH = .venv/bin/python benchmarks/bench.py $(if $(QUICK),--quick) \
	$(addprefix --only ,$(ONLY)) $(if $(DATA),--data "$(DATA)")
bench: setup ## [measure] measure beside PyTorch (QUICK=1, ONLY=workers-32, DATA=)
	@$(BENCH) --list >/dev/null
	@$(MAKE) --no-print-directory $(PEERS)/built
	@$(BENCH)

test-pythons: setup ## [measure] train on every Python from 3.8 to 3.12 here (PYTHONS=)
	@.venv/bin/python tests/smoke_pythons.py $(PYTHONS)

test-bare: ## [measure] train and test on a bare Debian, as root (SUITE=bookworm)
	@TESTS="$(TESTS)" sh tests/bare_machine/run.sh

test-gpu-install: ## [measure] install the GPU packages and import them: 2 GB, no GPU
	@sh tests/gpu_install/run.sh "$(START)"

versions: setup ## [measure] print the versions of other programs (docs/tried.md)
	@.venv/bin/python tests/versions.py

lint: setup ## [maintain] check style and types; print how long things are
	@.venv/bin/python -m ruff check .
	@.venv/bin/python -m ruff format --check .
	@.venv/bin/python -m mypy
	@.venv/bin/python tests/lengths.py

clean: ## [maintain] remove .venv and everything built
	rm -rf .venv .venv-peers .venv-site .venv-nbgrader .venv.lock .venv.before build *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
