# The project's commands. Those that start something install what they need first;
# where nothing is missing that takes a moment.

CARGO := ./scripts/cargo
BUILT := $(or $(CARGO_TARGET_DIR),./target)/release

.PHONY: help setup run test test-full campaign bench lab deb fuzz docs book clean

help:
	@echo "make run     a host with guests and traffic, from one file; Ctrl-C ends it"
	@echo "make test    the checks and tests that guard a change; CRATE=suimon-vmq runs"
	@echo "             those of one crate, TEST=NAME tests of any tier with that name, and"
	@echo "             ALL=1 also those that passed before and whose programs are unchanged"
	@echo "make test-full   every test; PART=lab runs one part of them"
	@echo "make campaign PART=swarm   open-ended runs; \`cargo xtask\` lists the parts"
	@echo "make bench   Suimon beside its peers; writes docs/benchmarks.md, or measures"
	@echo "             one part only; PART=node-line"
	@echo "make lab     runs published experiments on this host; PLAN names one"
	@echo "make deb     a Debian package of what was built"
	@echo "make fuzz    fuzzes what reads hostile input, one minute for each target"
	@echo "make docs    writes what is generated from the code"
	@echo "make book    the documents as pages for a browser, target/book/index.html"
	@echo "make setup   installs what is missing"
	@echo "make clean   deletes what was built"

# Fails if a variable is given to a target that does not have it. It would start a long run.
refuse = $(foreach name,$(1),$(if $(filter command,$(origin $(name))),$(error make $@ has no $(name)=; see make help)))

# Fails if PART names a part that the given list of xtask/src/tiers.rs does not have. xtask would
# say so too, but only once everything is installed and built.
parts = $(shell sed -n '/const $(1):/,/^];/s/.*name: "\([a-z]*\)".*/\1/p' xtask/src/tiers.rs)
check_parts = $(foreach name,$(filter-out $(call parts,$(1)),$(PART)),$(error no part $(name); the parts are $(call parts,$(1))))

setup:
	@./scripts/setup
	@./scripts/nextest
	@./scripts/openapi-tools

# The profile `demo` is chosen for build time. The guest's kernel is the one for use.
run:
	@./scripts/setup run
	@./scripts/console
	@$(CARGO) build --profile demo --no-default-features -p suimond -p suimon -p suimon-lab -p suimon-first-light \
		--bin suimond --bin suimon --bin suimon-lab --bin first-light
	@exec $(BUILT:release=demo)/first-light

test:
	$(call refuse,PART PLAN)
	@./scripts/setup $(if $(TEST),full,test)
	@./scripts/nextest
	@$(CARGO) xtask test $(if $(ALL),--all) $(if $(CRATE),--package $(CRATE)) $(if $(TEST),--test '$(TEST)')

test-full:
	$(call refuse,ALL CRATE TEST PLAN)
	$(call check_parts,FULL)
	@$(MAKE) --no-print-directory setup
	@$(CARGO) xtask test-full $(PART)

campaign:
	$(call refuse,ALL CRATE TEST PLAN)
	$(if $(PART),,$(error name a campaign with PART=; the campaigns are $(call parts,CAMPAIGNS)))
	$(call check_parts,CAMPAIGNS)
	@$(MAKE) --no-print-directory setup
	@$(CARGO) xtask campaign $(PART)

bench:
	$(call refuse,CRATE TEST PLAN)
	@$(MAKE) --no-print-directory setup
	@$(CARGO) build --release --quiet -p suimond -p suimon -p suimon-bench -p suimon-disk-tests
	@$(CARGO) build --release --quiet -p suimon-vhost-user --example disk_speed
	@$(CARGO) build --release --quiet -p suimond --example node_line
	@exec $(BUILT)/bench $(PART)

# All plans that come with the lab unless PLAN names some.
lab: setup
	@$(CARGO) build --release --quiet -p suimond -p suimon -p suimon-sim -p suimon-lab
	@$(CARGO) build --release --quiet -p suimon-vhost-user --example disk_speed
	@exec $(BUILT)/suimon-lab run $(or $(PLAN),$$($(BUILT)/suimon-lab list --json | jq -r '.[].id'))

# The package goes to target/deb.
deb: setup
	@./scripts/console
	@$(CARGO) build --release --quiet -p suimond -p suimon -p suimon-lab -p suimon-sim
	@./scripts/deb $(BUILT) target/deb

fuzz:
	@./scripts/setup test
	@./scripts/fuzz

docs:
	@$(CARGO) xtask docs

book: setup
	@$(CARGO) xtask book

clean:
	@$(CARGO) clean
