PYTHON := .venv/bin/python
TYPES = cd src && ../$(PYTHON) -m mypy --config-file ../pyproject.toml -p gradplane

# Every run starts some processes; without bytecode files each would compile all its modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-sim demo test lint style types docs conformance bench bench-against attack fuzz clean

install:
	@scripts/install

# What `gradplane run` on the simulated network needs, and reports: a third of the packages.
install-sim:
	@scripts/install view

# The demo: four workers on Mininet train through a P4 switch that sums their gradients. It needs
# less than the tests do.
demo:
	@scripts/install notebook,sweep,view
	@$(PYTHON) -m gradplane run experiments/thc-star.toml

# At its end: which tests were skipped and why (tests/conftest.py), the slowest, and what the type
# checker complains of, which runs beside them: alone it would keep one processor busy only. After a
# crash the other process ends the run; with a new process in its place, xdist would wait for ever.
test: style
	@mkdir -p .cache
	@($(TYPES)) >.cache/types 2>&1 & types=$$!; \
	$(PYTHON) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0 \
		--durations=20 --durations-min=10 -rfE; \
	tests=$$?; wait $$types || { cat .cache/types; exit 1; }; exit $$tests

lint: style types

style: install
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

# mypy runs in src/, where the link `codecs` does not hide the standard library's module of that name.
types: install
	$(TYPES)

# The documentation as a site, in site/. Warnings, such as a link to nowhere, are errors.
docs: install
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "built site/; to read it: .venv/bin/mkdocs serve"

# docs/p4runtime-conformance.md: what the P4Runtime specification asks, and the tests of it.
conformance: install
	$(PYTHON) scripts/conformance.py

# Speeds, as ratios against baselines measured in the same run.
bench: install
	$(PYTHON) benchmarks/switch_memory.py
	$(PYTHON) benchmarks/switch_tables.py
	$(PYTHON) benchmarks/switch_ports.py
	$(PYTHON) benchmarks/switch_cores.py
	$(PYTHON) benchmarks/program_costs.py
	$(PYTHON) benchmarks/bmv2.py
	$(PYTHON) benchmarks/iperf.py
	$(PYTHON) benchmarks/bmv2_compilers.py
	$(PYTHON) benchmarks/hosts.py
	$(PYTHON) benchmarks/scale.py
	$(PYTHON) benchmarks/tos_compress.py
	$(PYTHON) benchmarks/codecs.py
	$(PYTHON) benchmarks/thc_accuracy.py
	$(PYTHON) benchmarks/cpu_seconds.py

# This tree beside another commit, in turn, in processor time and memory: make bench-against
# REF=v0.1.0, or with ROWS="start fit" for these alone.
REF ?= HEAD
bench-against: install
	$(PYTHON) benchmarks/against.py $(REF) $(ROWS)

# One bad client against the others: how long their requests take meanwhile. For an hour:
# make attack MINUTES=60
attack: install
	$(PYTHON) tests/attack/attack.py $(if $(MINUTES),--minutes $(MINUTES))

# With random seeds, which are printed: the property tests, whose failures are shrunk; interpreter
# against JIT on random programs, tables and packets; hostile P4 source; hostile gRPC; random schedules
# over random trees of switches; whole runs with random faults.
fuzz: install
	$(PYTHON) tests/fuzz_properties.py --seconds 300
	$(PYTHON) tests/switch/jit/fuzz_jit.py --seconds 900
	$(PYTHON) tests/switch/fuzz_source.py --seconds 300
	$(PYTHON) tests/switch/fuzz_grpc.py --seconds 120
	$(PYTHON) tests/aggregations/fuzz_levels.py --seconds 300
	$(PYTHON) tests/aggregations/fuzz_shared.py --seconds 300
	$(PYTHON) tests/runs/fuzz_faults.py --seconds 600
	$(PYTHON) tests/runs/fuzz_faults.py --seconds 300 --net mininet

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .hypothesis runs site build dist src/*.egg-info
