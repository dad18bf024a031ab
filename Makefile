VENV ?= .venv
PYTHON ?= python3
RUN := $(VENV)/bin/python
BRANCH ?= lessons

lab: $(VENV)/ready ## open JupyterLab on copies of the lessons that are yours: my-lessons
	$(RUN) tools/copies.py my-lessons
	$(RUN) -m jupyter lab my-lessons $(if $(filter 0,$(shell id -u)),--allow-root)

check: lint ## lint, types, and every test that needs no other process, browser or notebook
	$(RUN) -m pytest -n 2 -m "not process and not browser and not notebook" tests

test: lint ## lint, types, every test, and every lesson as a test
	# More workers than there are cores, and threads that wait leave theirs to another worker.
	OMP_WAIT_POLICY=PASSIVE $(RUN) -m pytest -n 4 --dist loadfile --no-loadscope-reorder

lint: export MYPY_CACHE_DIR := $(VENV)/mypy
lint: $(VENV)/ready ## ruff and the types alone
	$(RUN) -m ruff check . && $(RUN) -m ruff format --check . && $(RUN) -m mypy

notebooks: $(VENV)/ready ## execute every lesson and write its outputs
	$(RUN) -m jupyter nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.record_timing=False --ExecutePreprocessor.store_widget_state=False notebooks/*.ipynb
	$(RUN) tools/picture.py

wheel: $(VENV)/ready ## build the wheel that the set-up cell of a hosted notebook installs
	$(RUN) -m build --wheel --no-isolation

doctor.pyz: ## the doctor in one file, for any Python from 3.8 on: python doctor.pyz
	$(PYTHON) tools/doctor_file.py $@

# As they were written: what a name holds is neither run by make nor by the shell.
override REPO := $(value REPO)
override BRANCH := $(value BRANCH)
export REPO BRANCH
badges: ## write the address of a repository into every launch link: make badges REPO=owner/name
	$(PYTHON) tools/badges.py

test-matrix: $(VENV)/ready ## run every lesson with the packages of hosted notebooks, each in a fresh environment; long
	$(RUN) tests/matrix/run.py

gpu: ## everything that only a real GPU can show, eight minutes at a time: make gpu, or make gpu DRY=1 on a CPU
	$(if $(and $(filter file,$(origin PYTHON)),$(wildcard $(VENV)/ready)),$(RUN),$(PYTHON)) tools/gpu/run.py $(if $(DRY),--dry)

slides: $(VENV)/ready ## every lesson as slides, in one file each that needs no network: tools/slides/*.html
	$(RUN) -m jupyter nbconvert --config tools/slides/config.py notebooks/*.ipynb

book: $(VENV)/ready ## every lesson, the glossary, the teacher's guide and the reference as static pages: tools/book/html
	$(RUN) tools/book/build.py

# Also again when the Python that it was made with has gone.
$(VENV)/ready: pyproject.toml constraints.txt tools/install.py $(shell test -x $(RUN) || echo again)
	$(PYTHON) tools/install.py $(VENV)

.PHONY: again lab check test lint notebooks wheel doctor.pyz badges test-matrix gpu slides book
