.DEFAULT_GOAL := help
.PHONY: start test test-chaos test-soak test-search test-metrics check bench up down clean migrate-db demo logs help

# For the containers. DOCKER_COMPOSE=docker-compose uses the older standalone program.
DOCKER_COMPOSE ?= docker compose
COMPOSE = cd deploy && $(DOCKER_COMPOSE)
RUNNERS ?= 1

start: ## start everything on this machine, with the demo; stop with Ctrl-C
	npm start

test: ## run the tests, without the longest
	npm test

test-chaos: ## kill, freeze and cut off runners at every point, in every way
	npm run test:chaos

test-soak: ## long random tests, and large loads
	npm run test:soak

test-search: ## run the search suite on real servers
	npm run test:search

test-metrics: ## check metrics, alerts and dashboard with promtool
	npm run test:metrics

check: ## formatting, types, unused code and all tests: run it before each commit
	npm run check

bench: ## measure how fast it is
	npm run bench

up: deploy/.env ## build and start everything in containers; RUNNERS=3 starts three runners
	$(COMPOSE) up -d --build --scale etl_runner=$(RUNNERS)

down: deploy/.env ## stop and remove the containers; the data stays
	$(COMPOSE) down

clean: ## remove the containers with their data, and what was built or fetched here
	if [ -f deploy/.env ]; then $(COMPOSE) down --volumes --remove-orphans; fi
	rm -rf dist .cache

migrate-db: deploy/.env ## bring the containers' database to this version's schema
	$(COMPOSE) run --rm etl_migrate

demo: deploy/.env ## run the demo scenario in the containers
	DOCKER_COMPOSE="$(DOCKER_COMPOSE)" sh deploy/demo.sh

logs: deploy/.env ## follow the containers' logs
	$(COMPOSE) logs -f --tail=100

deploy/.env:
	sh deploy/create-env.sh

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
