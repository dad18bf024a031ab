VENV ?= .venv
PYTHON ?= python3
RUN := $(VENV)/bin/python

lab: $(VENV)/ready ## open JupyterLab on the lessons
	$(RUN) -m jupyter lab notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

test: $(VENV)/ready ## run every test, and every lesson as a test
	$(RUN) -m ruff check . && $(RUN) -m ruff format --check .
	$(RUN) -m pytest

notebooks: $(VENV)/ready ## execute every lesson and write its outputs
	$(RUN) -m jupyter nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.record_timing=False --ExecutePreprocessor.store_widget_state=False notebooks/*.ipynb

slides: $(VENV)/ready ## every lesson as slides, in one file each that needs no network: slides/*.html
	$(RUN) -m jupyter nbconvert --config slides/config.py notebooks/*.ipynb

$(VENV)/ready: pyproject.toml constraints.txt course_utils/install.py
	$(PYTHON) course_utils/install.py $(VENV)

.PHONY: lab test notebooks slides
