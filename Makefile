.DEFAULT_GOAL := help
.PHONY: start test test-search test-metrics check bench help

start: ## start everything on this machine, with the demo; stop with Ctrl-C
	npm start

test: ## run all tests
	npm test

test-search: ## run the search suite on real servers
	npm run test:search

test-metrics: ## check metrics, alerts and dashboard with promtool
	npm run test:metrics

check: ## formatting, types, unused code and all tests: run it before each commit
	npm run check

bench: ## measure how fast it is
	npm run bench

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
