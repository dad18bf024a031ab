VENV ?= .venv
PYTHON ?= python3
LESSONS ?= my-lessons
RUN := $(VENV)/bin/python
$(if $(word 2,$(VENV)),$(error VENV has a space in its path, which make cannot take: choose another folder))
# A Python that you name is the one that runs.
THIS := $(if $(filter file,$(origin PYTHON)),,--this-python)

lab: env ## open JupyterLab on your own copies of the lessons, in my-lessons (or LESSONS=folder)
	@$(RUN) tools/copies.py "$(LESSONS)"
	@echo "Your lessons are in $(LESSONS). Ctrl+C stops JupyterLab, and \`make lab\` opens it again."
	@$(RUN) -m jupyter lab --log-level WARN --config tools/lab/config.py --LabApp.workspaces_dir="$(LESSONS)/.workspaces" "$(LESSONS)" $(if $(filter 0,$(shell id -u)),--allow-root)

env: $(VENV)/ready-learn ## build the environment, and open nothing

help: ## list what make can do
	@sed -n 's/^\([a-z][a-z.-]*\):[^#]*## /make \1|/p' Makefile | awk -F '|' '{ printf "%-18s %s\n", $$1, $$2 }'

check: $(VENV)/ready-test ## lint, types, and every short test that needs no other process, browser or notebook
	$(RUN) tools/check.py

# More workers than there are cores, because many tests wait for another process.
TEST := -m pytest -n 4 --dist loadfile --no-loadscope-reorder

test: lint ## lint, types, every test but the slow ones, and every lesson as a test
	$(RUN) $(TEST) -m "not slow"

test-slow: $(VENV)/ready-test ## the tests that kill, install, start XLA, a server or a lesson anew, or compare hundreds
	$(RUN) $(TEST) -m slow tests

newest: ## the newest release of every package: tests without a browser, and each lesson as one file
	$(PYTHON) tools/install.py $(VENV)-newest newest $(THIS)
	$(VENV)-newest/bin/python tools/newest.py

lint: $(VENV)/ready-test ## ruff and the types alone
	$(RUN) tools/check.py lint

notebooks: $(VENV)/ready-test ## execute every lesson and write its outputs
	@left=$$(git ls-files --others --ignored --exclude-standard notebooks | grep -v __pycache__ || true); \
	  if [ -n "$$left" ]; then echo "$$left"; echo "These files of earlier runs would change the outputs."; \
	  echo "Move them away, or delete them all: git clean -fdX notebooks"; exit 1; fi
	$(RUN) -m jupyter nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.record_timing=False --ExecutePreprocessor.store_widget_state=False notebooks/*.ipynb
	git clean -fdXq notebooks # what the lessons wrote just now: there was nothing before

picture: $(VENV)/ready-test page ## take the README's picture again, in a real browser
	$(RUN) tools/picture.py build/worth-it.html

wheel: $(VENV)/ready-test ## build the course's wheel: dist/
	$(RUN) -m build --wheel --no-isolation

standalone: $(VENV)/ready-test ## every lesson as one file that carries the course inside it: standalone/
	$(RUN) tools/standalone.py

page: $(VENV)/ready-learn ## the page "Is it worth it?", one file without a server: build/worth-it.html
	$(RUN) tools/page/build.py build/worth-it.html

# npm brings the type checker and the linter of the page's JavaScript.
lint-page: ## types and rules of the page's modules
	cd tools/page && npm install --silent --no-package-lock --no-audit --no-fund && npm run --silent check

doctor.pyz: ## the doctor in one file, for any Python from 3.11 on: python doctor.pyz
	$(PYTHON) tools/doctor_file.py $@

setup-cell: $(VENV)/ready-test ## write the set-up cell, and the launch links if there is an address, into every lesson
	$(RUN) tools/setup_cell.py

gpu: ## everything that only a real GPU can show: make gpu, or make gpu DRY=1 on a CPU
	$(if $(and $(filter file,$(origin PYTHON)),$(wildcard $(VENV)/ready-*)),$(RUN),$(PYTHON)) tools/gpu.py $(if $(DRY),--dry) $(if $(OUT),--out "$(OUT)")

slides: $(VENV)/ready-test ## every lesson as slides, in one file each that needs no network: tools/slides/*.html
	$(RUN) -m jupyter nbconvert --log-level WARN --config tools/slides/config.py notebooks/*.ipynb
	@echo "$$(ls tools/slides/*.slides.html | wc -l) lessons as slides. Open tools/slides/00_start_here.slides.html."

book: $(VENV)/ready-test ## every lesson, the glossary, the teacher's guide and the reference as static pages: tools/book/html
	$(RUN) tools/book/build.py

# Also again when the Python that it was made with has gone.
$(VENV)/ready-%: pyproject.toml constraints.txt tools/install.py $(shell test -x $(RUN) || echo again)
	$(PYTHON) tools/install.py $(VENV) $* $(THIS)

.PHONY: again lab env help check test test-slow newest lint notebooks picture wheel standalone page lint-page doctor.pyz setup-cell gpu slides book
