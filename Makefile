# Needs Python 3.10 to 3.13 and make; everything else goes into .venv.
# Another interpreter: make test PYTHON=python3.12. Fewer tests: make test PYTEST_ARGS="tests/protocol/test_spec.py -x".

PYTHON ?= python3
PYTHON_OLDEST ?= python3.10
PYTEST_ARGS ?=
SUITE ?=
PAIRS_ARGS ?=
RELEASE_ARGS ?=

# The order of the test files. By default it follows from the commit.
SEED ?=
# One process for each core, at most four: each needs 1 to 2 GB, and takes over tests of the others.
PYTEST := pytest --numprocesses auto --maxprocesses 4 --dist worksteal $(if $(SEED),--seed $(SEED))
# One more where many tests wait for servers and other processes.
MORE := --numprocesses $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count() + 1))')

# Without the compiled files each process would compile all tests again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
OLDEST := .venv-oldest
NIGHTLY := .venv-nightly
ENGINES := .venv-engines
BEAM := .venv-beam
BACKENDS := .venv-backends
STORES := .venv-stores
RUN := $(VENV)/bin/python -m

# Packages only for tests that require `tensorflow` itself, which would be installed next to
# tensorflow-cpu. So they are installed without dependencies; the others are installed already.
ALONE := tensorflow-gnn tensorflow-hub "tf-keras<2.22"

# They fail where a new TensorFlow or Keras no longer does what extensor needs.
PROBES := tests/tf/test_tf_probe.py tests/keras/test_keras_private.py tests/patches

# The name of the stamp has the Python version: another version creates the venv again.
TAG := $(shell $(PYTHON) -c 'import sys; print("py%d%d" % sys.version_info[:2])')
STAMP := $(VENV)/.ready-$(TAG)

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick test-rest test-all durations quick-tests test-oldest test-nightly engines-test backends-test store-servers lint style types format structure bench docs release-check pairs keras-tests pin pin-engines clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP)  ## Make .venv with the pinned packages
	@echo "[setup] $(VENV) is up to date"

demo: $(STAMP)  ## Run the demonstration
	@echo "[demo] starting"
	@$(RUN) demo

# Pyright needs one core, and pytest waits at times: they run side by side.
test: style  ## Check the style, then the types while the quick tests run (four to seven minutes on two cores)
	@$(MAKE) --no-print-directory -j2 types quick
	@echo "[test] passed"

quick: $(STAMP)
	@echo "[test] quick tests, laws, examples of the docs, the built wheel"
	@EXTENSOR_HYPOTHESIS_PROFILE=quick $(RUN) $(PYTEST) --tier quick $(PYTEST_ARGS)

test-rest: $(STAMP)  ## Run all other tests except the slow ones (20 to 30 minutes); CI runs both
	@$(MAKE) --no-print-directory store-servers || echo "[test-rest] no servers of stores: their tests are skipped"
	@echo "[test-rest] servers, damaged files, whole matrices, saved models in other processes"
	@$(RUN) $(PYTEST) $(MORE) --tier rest $(PYTEST_ARGS)
	@echo "[test-rest] passed"

test-all: lint  ## Lint, then run every test, with many more examples of each property (hours)
	@echo "[test-all] everything, with the exhaustive profile"
	@EXTENSOR_HYPOTHESIS_PROFILE=all $(RUN) $(PYTEST) $(PYTEST_ARGS)
	@echo "[test-all] passed"

durations: $(STAMP)  ## Write what each test file costs to build/durations.txt
	@$(RUN) $(PYTEST) -p tests.durations -m "not slow" --quiet $(PYTEST_ARGS)

quick-tests: $(STAMP)  ## Write tests/quick.txt: the quick test of each module (ten minutes)
	@$(RUN) $(PYTEST) -p tests.modules --tier quick --quiet

test-oldest: $(OLDEST)/.ready-py310  ## The tests on the oldest supported releases
	@echo "[test] on the oldest supported releases"
	@$(OLDEST)/bin/python -m $(PYTEST) -m "not slow" $(PYTEST_ARGS)
	@echo "[test] passed"

# tf-nightly has its own keras-nightly, whose files are those of keras: keras must go before it comes.
test-nightly:  ## The tests on the newest pre-releases of TensorFlow and Keras that install
	@echo "[test] making $(NIGHTLY) with the newest pre-releases (about 2 GB each time)"
	@$(PYTHON) -m venv --clear $(NIGHTLY)
	@$(NIGHTLY)/bin/python -m pip install --quiet -e ".[dev,demo]"
	@$(NIGHTLY)/bin/python -m pip uninstall --quiet --yes keras
	@$(NIGHTLY)/bin/python -m pip install --quiet --upgrade tf-nightly \
	  || $(NIGHTLY)/bin/python -m pip install --quiet --upgrade "tensorflow-cpu>=0.dev0" "keras>=0.dev0"
	@$(NIGHTLY)/bin/python -m pip install --quiet --no-deps $(ALONE)
	@$(NIGHTLY)/bin/python -m pip list --format=freeze | grep -iE '^(tf|tensorflow|keras)'
	@echo "[test] what extensor needs of their private names"
	@$(NIGHTLY)/bin/python -m pytest $(PROBES)
	@echo "[test] all tests that are not slow"
	@$(NIGHTLY)/bin/python -m $(PYTEST) -m "not slow" $(PYTEST_ARGS)
	@echo "[test] passed"

engines-test: $(ENGINES)/.ready-$(TAG) $(BEAM)/.ready-$(TAG)  ## Run arrow_function on Ray, Spark, Daft and Beam
	@echo "[engines-test] Ray Data, Spark (needs Java 17), Daft"
	@$(ENGINES)/bin/python -m pytest engines/test_ray.py engines/test_ray_train.py engines/test_spark.py engines/test_daft.py $(PYTEST_ARGS)
	@echo "[engines-test] Beam"
	@$(BEAM)/bin/python -m pytest engines/test_beam.py $(PYTEST_ARGS)
	@echo "[engines-test] passed"

backends-test: $(BACKENDS)/.ready-$(TAG)  ## Train with Keras on TensorFlow, JAX and PyTorch from xt.data.arrays
	@echo "[backends-test] Keras on TensorFlow, JAX, PyTorch and NumPy"
	@$(BACKENDS)/bin/python -m pytest backends $(PYTEST_ARGS)
	@echo "[backends-test] passed"

# Beside the packages of the tests, and without pins, pip would look for versions for minutes.
store-servers: $(STORES)/.ready-$(TAG)  ## Install the servers of S3, Azure and Google that the tests of stores start

lint: style types  ## Check style, types and imports

style: $(STAMP)
	@echo "[lint] ruff check"
	@$(RUN) ruff check --quiet .
	@echo "[lint] ruff format"
	@$(RUN) ruff format --quiet --check .
	@echo "[lint] imports between the layers"
	@$(VENV)/bin/lint-imports --no-cache --no-logo

types: $(STAMP)
	@echo "[lint] pyright"
	@$(RUN) pyright

format: $(STAMP)  ## Format the code and apply the fixes of ruff
	@echo "[format] ruff"
	@$(RUN) ruff check --quiet --fix-only .
	@$(RUN) ruff format .

structure: $(STAMP)  ## Write the lists of public names and of test files, and the picture of the layers
	@$(RUN) structure

bench: $(STAMP)  ## Run the benchmarks
	@echo "[bench] starting"
	@$(RUN) bench

docs: $(VENV)/.docs-$(TAG)  ## Draw the pictures, run the tutorials and build the site in build/site (Python 3.11 or newer)
	@echo "[docs] pictures"
	@$(RUN) structure
	@$(RUN) pictures
	@echo "[docs] site (the tutorials are run: about three minutes the first time)"
	@$(RUN) sphinx -b html -q -W --keep-going -d build/doctrees docs build/site
	@echo "[docs] open build/site/index.html"

release-check: $(STAMP)  ## Build the last commit twice, check the files, install the wheel with each extra on each Python
	@$(RUN) release $(RELEASE_ARGS)

pairs: $(STAMP)  ## Name the tests of SUITE=folder that pass only without extensor imported
	@test -n "$(SUITE)" || { echo "[pairs] of which folder? make pairs SUITE=folder"; exit 2; }
	@$(RUN) pairs "$(SUITE)" $(PAIRS_ARGS)

keras-tests: $(STAMP)  ## Run the tests in SUITE=folder, a source of Keras, with our classes
	@test -n "$(SUITE)" || { echo "[keras-tests] of which source? make keras-tests SUITE=folder"; exit 2; }
	@$(RUN) pairs.keras_tests "$(SUITE)"

pin:  ## Pin the newest releases for this Python in constraints/
	@echo "[pin] resolving for $(TAG)"
	@set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv "$$scratch"; \
	"$$scratch/bin/python" -m pip install --quiet --upgrade setuptools -e ".[tf-cpu,dev,demo]"; \
	"$$scratch/bin/python" -m pip install --quiet --no-deps $(ALONE); \
	{ echo "# Written by \`make pin\`."; \
	  "$$scratch/bin/python" -m pip freeze --all --exclude pip --exclude-editable | sort -f; \
	} > constraints/$(TAG).txt
	@echo "[pin] wrote constraints/$(TAG).txt"

pin-engines:  ## Pin the newest releases of the engines and backends for this Python in constraints/
	$(call pin_engine,engines,$(IN_ENGINES))
	$(call pin_engine,beam,$(IN_BEAM))
	$(call pin_engine,backends,$(IN_BACKENDS))

clean:  ## Remove the environments and everything that was built
	@echo "[clean] removing environments, builds and caches"
	@rm -rf $(VENV) $(OLDEST) $(NIGHTLY) $(ENGINES) $(BEAM) $(BACKENDS) $(STORES) build dist .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The engines are no extras: extensor does not import them. Beam pins pyarrow and protobuf.
IN_ENGINES := "ray[data,train]" "pyspark>=4" "pandas<3" daft cloudpickle pytest hypothesis
IN_BEAM := apache-beam cloudpickle pytest hypothesis
# PyTorch's build for Linux on PyPI brings CUDA, 5 GB; its own index of builds for CPUs does not.
IN_BACKENDS := jax torch pytest hypothesis

# $(call pin_engine,name of the constraints,packages)
define pin_engine
	@echo "[pin-engines] resolving $(1) for $(TAG)"
	@set -e; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTHON) -m venv "$$scratch"; \
	"$$scratch/bin/python" -m pip install --quiet -e ".[tf-cpu,keras]" $(2); \
	{ echo "# Written by \`make pin-engines\`."; \
	  "$$scratch/bin/python" -m pip freeze --all --exclude pip --exclude-editable \
	  | grep -v '^nvidia-' | sed 's/+cpu$$//' | sort -f; \
	} > constraints/$(1)-$(TAG).txt
	@echo "[pin-engines] wrote constraints/$(1)-$(TAG).txt"
endef

# $(call install_engine,venv,constraints,packages)
define install_engine
	@test -e $@ || { echo "[setup] making $(1)"; $(PYTHON) -m venv --clear $(1); }
	@echo "[setup] installing the packages of $(2) (about 2 GB the first time)"
	@$(1)/bin/python -m pip install --quiet -c $(2) -e ".[tf-cpu,keras]" $(3)
	@touch $@
endef

# $(call install,interpreter,venv,constraints). If the stamp exists but is old, the venv is kept.
define install
	@test -e $@ || { echo "[setup] making $(2) with $(1)"; $(1) -m venv --clear $(2); }
	@echo "[setup] installing the packages of $(3) (TensorFlow among them: about 1 GB the first time)"
	@$(2)/bin/python -m pip install --quiet -c $(3) -e ".[tf-cpu,dev,demo]"
	@$(2)/bin/python -m pip install --quiet -c $(3) --no-deps $(ALONE)
	@touch $@
endef

$(STAMP): pyproject.toml constraints/$(TAG).txt
	$(call install,$(PYTHON),$(VENV),constraints/$(TAG).txt)

$(VENV)/.docs-$(TAG): $(STAMP)
	@echo "[docs] installing Sphinx and what it needs"
	@$(VENV)/bin/python -m pip install --quiet -c constraints/$(TAG).txt -e ".[tf-cpu,docs]"
	@touch $@

$(OLDEST)/.ready-py310: pyproject.toml constraints/oldest-py310.txt
	$(call install,$(PYTHON_OLDEST),$(OLDEST),constraints/oldest-py310.txt)

$(ENGINES)/.ready-$(TAG): pyproject.toml constraints/engines-$(TAG).txt
	$(call install_engine,$(ENGINES),constraints/engines-$(TAG).txt,$(IN_ENGINES))

$(STORES)/.ready-$(TAG): $(wildcard constraints/stores-$(TAG).txt)
	@echo "[setup] making $(STORES) with moto, gcp-storage-emulator and, by npm, s3rver and azurite"
	@$(PYTHON) -m venv --clear $(STORES)
	@$(STORES)/bin/python -m pip install --quiet $(addprefix -c ,$(wildcard constraints/stores-$(TAG).txt)) "moto[server]==5.2.5" gcp-storage-emulator
	@npm install --silent --prefix $(STORES) s3rver@3.7.1 azurite@3.35.0 || echo "[setup] no npm: the tests of s3rver and azurite are skipped"
	@touch $@

$(BEAM)/.ready-$(TAG): pyproject.toml constraints/beam-$(TAG).txt
	$(call install_engine,$(BEAM),constraints/beam-$(TAG).txt,$(IN_BEAM))

$(BACKENDS)/.ready-$(TAG): pyproject.toml constraints/backends-$(TAG).txt
	$(call install_engine,$(BACKENDS),constraints/backends-$(TAG).txt,$(IN_BACKENDS))

constraints/engines-%.txt constraints/beam-%.txt constraints/backends-%.txt:
	@echo "[setup] these packages are not pinned for '$*'. Try PYTHON=python3.11, or make pin-engines"
	@exit 1

constraints/%.txt:
	@echo "[setup] $(PYTHON) is '$*': extensor needs Python 3.10 to 3.13. Try: make PYTHON=python3.12"
	@exit 1
